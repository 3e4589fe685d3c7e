"""Wide rows of brokers: configuration, rack, log dirs and disks."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.broker.configs import config_by
from spark_jobs.rows.broker.disks import disk_space


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each broker of the brokers dataset, the ones that are not alive included."""
    facts = broker_facts(evidence)
    rows = (
        evidence.table("brokers")
        .join(config_by(evidence, "broker_configs", "broker_id"), on="broker_id", how="left")
        .join(_log_dirs(evidence), on="broker_id", how="left")
        .join(disk_space(evidence), on="broker_id", how="left")
    )
    name = F.concat(F.lit("broker "), F.col("broker_id").cast("string"))
    dead, silent = F.concat(name, F.lit(" is not registered in the cluster")), F.concat(F.lit("nothing was read from "), name)
    no_reply = F.when(~F.col("alive"), dead).otherwise(silent)
    without_config = F.when(F.col("config").isNull(), no_reply)
    without_dirs = F.when(F.col("log_dirs").isNull(), F.coalesce("log_dirs_error", no_reply))
    said = {dataset: facts.unread_of(dataset, F.col("broker_id")) for dataset in ("broker_configs", "log_dirs", "replica_sizes")}
    of_row = missing.extra(
        broker_configs=missing.first_known(said["broker_configs"], without_config),
        log_dirs=missing.first_known(said["log_dirs"], F.col("log_dirs_error"), without_dirs),
        replica_sizes=missing.first_known(said["replica_sizes"], said["log_dirs"], without_dirs),
    )
    errors = missing.joined(of_row, missing.whole_datasets(evidence))
    return rows.withColumns({"resource": F.col("broker_id").cast("string"), "errors": errors})


def _log_dirs(evidence: Evidence) -> DataFrame:
    """broker_id, log_dirs int, failed_log_dirs array<string>, log_dirs_error string (the whole request was refused)."""
    is_dir = F.col("path").isNotNull()
    failed = F.when(is_dir & F.col("error").isNotNull(), F.concat_ws(": ", "path", "error"))
    return (
        evidence.table("log_dirs")
        .groupBy("broker_id")
        .agg(
            F.count_if(is_dir).cast("int").alias("dirs"),
            F.array_sort(F.collect_list(failed)).alias("failed"),
            F.min(F.when(~is_dir, F.coalesce(F.col("error"), F.lit("no log dir was reported")))).alias("log_dirs_error"),
        )
        # A refused request reports no dirs at all: that is no broker without dirs.
        .select(
            "broker_id",
            F.when(F.col("dirs") > 0, F.col("dirs")).alias("log_dirs"),
            F.when(F.col("dirs") > 0, F.col("failed")).alias("failed_log_dirs"),
            "log_dirs_error",
        )
    )
