"""Wide rows of brokers: configuration, rack and log dirs."""

from kafka_audit.policy import Policy
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects import missing
from spark_jobs.subjects.broker_facts import broker_facts, unread_of
from spark_jobs.subjects.configs import config_by

_KINDS = ("broker_configs", "log_dirs", "replica_sizes")


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each broker of the brokers dataset, the ones that are not alive included."""
    rows = (
        evidence.table("brokers")
        .join(config_by(evidence, "broker_configs", "broker_id"), on="broker_id", how="left")
        .join(_log_dirs(evidence), on="broker_id", how="left")
        .crossJoin(F.broadcast(broker_facts(evidence).select("unread")))
        .withColumn("resource", F.col("broker_id").cast("string"))
    )
    broker = F.concat(F.lit("broker "), F.col("resource"))
    no_reply = F.when(~F.col("alive"), F.concat(broker, F.lit(" is not registered in the cluster"))).otherwise(
        F.concat(F.lit("nothing was read from "), broker)
    )
    said = {name: unread_of(name, F.col("broker_id")) for name in _KINDS}
    of_row = missing.extra(
        broker_configs=F.coalesce(said["broker_configs"], F.when(F.col("config").isNull(), no_reply)),
        log_dirs=F.coalesce(said["log_dirs"], F.col("log_dirs_error"), F.when(F.col("log_dirs").isNull(), no_reply)),
        replica_sizes=F.coalesce(said["replica_sizes"], said["log_dirs"], F.when(F.col("log_dirs").isNull(), no_reply)),
    )
    return rows.withColumn("errors", missing.joined(of_row, missing.whole_datasets(evidence)))


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
