"""Wide rows of brokers: configuration, throttles, log dirs, free space on disks, and how soon they are full at the pace of the last day."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.collect.config_keys import THROTTLE_RATE_KEYS
from kafka_audit.policy import Policy
from kafka_audit.store.samples import DAY_MS
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts, reassigning_partitions
from spark_jobs.rows.broker.configs import config_by
from spark_jobs.rows.broker.controllers import controllers
from spark_jobs.rows.broker.hosted_partitions import with_leaderships, with_odd_replicas

_PACE_MS = 23 * 3_600_000  # a day, less what a daily schedule may jitter: a shorter look would take the busy hours for the whole day
_NEVER_DAYS = 3650.0
_NO_THROTTLE = "9223372036854775807"
_KNOW_CORDONS = 30  # metadata.version 4.3-IV0 (KIP-1066)
_SINCE_4_0 = 2  # KIP-1073 gave DescribeCluster version 2 in 4.0
_RELEASE = ("broker_id", "describe_cluster_version")  # older snapshots lack the latter


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each broker of the brokers dataset, the ones that are not alive included."""
    facts = broker_facts(evidence)
    rows = (
        evidence.table("brokers")
        .join(config_by("broker_id", evidence.table("broker_configs")), on="broker_id", how="left")
        .join(_log_dirs(evidence), on="broker_id", how="left")
        .join(_disk_space(evidence), on="broker_id", how="left")
    )
    rows = rows.transform(with_leaderships, evidence).transform(with_odd_replicas, evidence)
    name = F.concat(F.lit("broker "), F.col("broker_id").cast("string"))
    dead, silent = F.concat(name, F.lit(" is not registered in the cluster")), F.concat(F.lit("nothing was read from "), name)
    no_reply = F.when(~F.col("alive"), dead).otherwise(silent)
    without_config = F.when(F.col("config").isNull(), no_reply)
    without_dirs = F.when(F.col("log_dirs").isNull(), F.coalesce("log_dirs_error", no_reply))
    said = {dataset: facts.unread_of(dataset, F.col("broker_id")) for dataset in ("broker_configs", "log_dirs", "replica_sizes")}
    of_row = missing.extra(
        broker_configs=missing.first_known(said["broker_configs"], without_config),
        partitions=evidence.contradicted("partitions"),
        log_dirs=missing.first_known(said["log_dirs"], F.col("log_dirs_error"), without_dirs),
        replica_sizes=missing.first_known(said["replica_sizes"], said["log_dirs"], without_dirs),
    )
    errors = missing.joined(of_row, missing.whole_datasets(evidence))
    return rows.withColumns(
        {
            "resource": F.col("broker_id").cast("string"),
            "replication_throttles": _throttles(),
            "may_be_active_controller": controllers(evidence).may_be_active(F.col("broker_id")),
            "cordoned_log_dirs": _cordoned(evidence),
            "reassigning_partitions": F.lit(reassigning_partitions(evidence)).cast("bigint"),
            "errors": errors,
        }
    )


def _throttles() -> Column:
    """The rates that the dynamic configuration sets, as texts; NULL when the configuration was not read.

    Brokers read these rates from nowhere else. KafkaConfig does not define them, and DescribeConfigs answers what it defines and what is
    set (ConfigHelperUtils): a rate that is not listed is not set. The largest number stands for none, too.
    """
    texts = []
    for key in sorted(THROTTLE_RATE_KEYS):
        entry = F.col("config")[key]
        dynamic = F.col("config").isNotNull() & F.coalesce(entry["source"].startswith("DYNAMIC_"), F.lit(False))
        text = F.concat(F.lit(f"{key}="), F.coalesce(entry["value"], F.lit("unknown")), F.lit(" (bytes per second)"))
        texts.append(F.when(dynamic & ~entry["value"].eqNullSafe(_NO_THROTTLE), text))
    return F.when(F.col("config").isNotNull(), F.array_compact(F.array(*texts)))


def _cordoned(evidence: Evidence) -> Column:
    """The distinct log dirs that cordoned.log.dirs names.

    Brokers from 4.3 on always list that setting, and older ones do not have it. So a broker that does not list it has no cordoned log dir
    if it is known to be older; else the column is NULL.
    """
    entry, value = F.col("config")["cordoned.log.dirs"], F.col("config")["cordoned.log.dirs"]["value"]
    none = F.array().cast("array<string>")
    named = F.array_distinct(F.split(F.trim(value), r"\s*,\s*"))
    unlisted = F.when(_before_cordons(evidence), none)
    return F.when(F.col("config").isNotNull(), F.when(entry.isNull(), unlisted).when(value == "", none).otherwise(named))


def _before_cordons(evidence: Evidence) -> Column:
    """Whether the broker is known to be of a release before 4.3: by what all brokers support, or by its own API versions."""
    told = [one for row in evidence.small("cluster", "features") for one in row["features"] or () if one["name"] == "metadata.version"]
    if any(one["supported_max"] is not None and one["supported_max"] < _KNOW_CORDONS for one in told):
        return F.lit(True)
    versions = {row["broker_id"]: row.get("describe_cluster_version") for row in evidence.small("brokers", *_RELEASE)}
    old = [broker for broker, version in versions.items() if version is not None and version < _SINCE_4_0]
    return F.col("broker_id").isin(*old) if old else F.lit(False)


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


def _disk_space(evidence: Evidence) -> DataFrame:
    """broker_id and the columns fullest_log_dir to pace_ms of a broker (kafka_audit.catalogue.rows).

    The pace is the growth of what a volume holds since the newest snapshot that is about a day older (KIP-827), so a volume that was
    enlarged in between does not look as if it had been emptied.
    """
    measured = F.col("error").isNull() & (F.col("total_bytes") > 0) & (F.col("usable_bytes") >= 0)
    current = F.col("snapshot_id") == F.lit(evidence.snapshot.snapshot_id)
    day_old = F.col("taken_ms") <= F.lit(evidence.taken_ms - _PACE_MS)
    held = (F.col("total_bytes") - F.col("usable_bytes")).alias("held")
    dirs = (
        evidence.series("log_dirs", "broker_id", "path", "error", "total_bytes", "usable_bytes")
        .where(F.col("path").isNotNull())
        .groupBy("broker_id", "path")
        .agg(
            F.bool_or(current).alias("present"),
            F.max(F.when(current & measured, F.struct("total_bytes", "usable_bytes", held))).alias("now"),
            F.max(F.when(measured & day_old, F.struct("taken_ms", held))).alias("before"),
        )
        .where("present")
    )
    pace_ms = F.coalesce(F.lit(evidence.taken_ms) - F.col("before.taken_ms"), F.lit(0))
    per_day = (F.col("now.held") - F.col("before.held")) * F.lit(float(DAY_MS)) / pace_ms
    days = F.when(per_day > 0, F.least(F.col("now.usable_bytes") / per_day, F.lit(_NEVER_DAYS))).when(per_day <= 0, _NEVER_DAYS)
    share = (F.col("now.usable_bytes") / F.col("now.total_bytes")).alias("share")
    place = F.struct(share, "path", F.col("now.total_bytes").alias("total_bytes"), F.col("now.usable_bytes").alias("usable_bytes"))
    known = F.col("now").isNotNull()
    brokers = dirs.groupBy("broker_id").agg(
        F.min(F.when(known, place)).alias("fullest"),
        F.array_sort(F.collect_list(F.when(~known, F.col("path")))).alias("unmeasured_log_dirs"),
        F.min(F.when(known, days)).alias("days_to_full"),
        F.min(F.when(known, pace_ms)).alias("pace_ms"),
    )
    fullest = (F.col("fullest.path").alias("fullest_log_dir"), "fullest.total_bytes", "fullest.usable_bytes")
    return brokers.select("*", *fullest).drop("fullest")
