"""What the commit history shows of a group and of its partitions, where the offsets topic was read."""

from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows.groups import GROUP_BEHAVIOUR, PARTITION_BEHAVIOUR
from kafka_audit.collect.clocks import CLOCKS_APART_MS
from kafka_audit.store.behaviour_tables import GROUP_PARTITIONS, GROUPS, MOST_HOURS_OLD, Behaviour
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.tiers import matches_any

_TIME = "yyyy-MM-dd HH:mm:ss'Z'"


def with_group_behaviour(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``behaviour`` and ``behaviour_reason`` (kafka_audit.catalogue.rows.groups) by group_id."""
    used = evidence.used_behaviour
    if used.path is None:
        return _without(rows, used, GROUP_BEHAVIOUR)
    groups = evidence.tables.read_whole(used.table(GROUPS)).where(~F.coalesce("removed", F.lit(False)))
    return _joined(rows, groups.withColumns(_about(used)), GROUP_BEHAVIOUR, evidence, "the group", "group_id")


def with_partition_behaviour(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``behaviour`` and ``behaviour_reason`` by group_id, topic and partition."""
    used = evidence.used_behaviour
    if used.path is None:
        return _without(rows, used, PARTITION_BEHAVIOUR)
    partitions = evidence.tables.read_whole(used.table(GROUP_PARTITIONS))
    ages = {
        "as_of_ms": F.coalesce(_age(evidence, "read_to"), F.lit(evidence.taken_ms - round(used.end.timestamp() * 1000))),
        "lost_ms": _age(evidence, "lost_until"),
        "own_expiry": F.col("expire_time").isNotNull(),
        "last_commit_ms": _age_of_commit(evidence, "last_commit"),
        "moved_ms": _age_of_commit(evidence, "last_progress"),
        "empty_ms": _age(evidence, "empty_since"),
        "last_rewind_at": F.date_format("last_rewind", _TIME),
    }
    what = "a commit of the group on this partition"
    values = partitions.withColumns({**_about(used), **ages})
    return _joined(rows, values, PARTITION_BEHAVIOUR, evidence, what, "group_id", "topic", "partition")


def group_table(evidence: Evidence) -> DataFrame | None:
    """What the report shows of the groups in the audit's scope, one row for each; None without a commit history.

    Columns of groups.parquet (spark_jobs.commit_history.describe.group_behaviour), and over its partitions: interval_low_ms, interval_ms,
    interval_high_ms, longest_gap_ms, largest_rewind, gaps_over_session, expired, deleted, topic_deleted and removed_unknown bigint,
    last_rewind and last_removed text in UTC, removed_reason of the newest removal. And of how its records were read, text in UTC:
    incomplete_until and lost_until, where records, or even newest ones, of the window are missing before; held_back_since, where an open
    transaction hides what came after.
    """
    used = evidence.used_behaviour
    if used.path is None:
        return None
    groups, partitions = (evidence.tables.read_whole(used.table(name)) for name in (GROUPS, GROUP_PARTITIONS))
    counts = {name: F.count_if(F.col("removed") == kind) for name, kind in _REMOVALS.items()}
    figures = partitions.groupBy("group_id").agg(
        F.min("interval_low_ms").alias("interval_low_ms"),
        F.percentile_approx("interval_ms", 0.5, 1000).alias("interval_ms"),
        F.max("interval_high_ms").alias("interval_high_ms"),
        F.max("longest_gap_ms").alias("longest_gap_ms"),
        F.count_if("gap_over_session").alias("gaps_over_session"),
        F.max("largest_rewind").alias("largest_rewind"),
        F.date_format(F.max("last_rewind"), _TIME).alias("last_rewind"),
        F.date_format(F.max("removed_at"), _TIME).alias("last_removed"),
        F.max_by("removed_reason", "removed_at").alias("removed_reason"),
        *[count.alias(name) for name, count in counts.items()],
    )
    own = groups.where(matches_any(F.col("group_id"), evidence.group_scope)).select(*_SHOWN, *_reading(used))
    return own.join(figures, on="group_id", how="left")


_REMOVALS = {"expired": "expired", "deleted": "deleted", "topic_deleted": "topic_deleted", "removed_unknown": "unknown"}
_SHOWN = (
    *("group_id", "group_type", "removed", "member_count", "static_members", "most_members", "assignor", "session_timeout_ms"),
    *("rebalance_timeout_ms", "generations", "rebalances", "longest_rebalance_ms", "partitions", "commits", "unchanged", "rewinds"),
    *("jumps", "recreations", "transactional", "auto_commit", "auto_commit_interval_ms", "auto_commit_confidence", "auto_commit_reason"),
)


def _reading(used: Behaviour) -> list[Column]:
    shown = {
        "incomplete_until": ("complete_since", F.col("complete_since") > F.lit(used.start)),
        "lost_until": ("lost_until", F.col("lost_until") > F.lit(used.start)),
        "held_back_since": ("read_to", F.col("read_to") < F.lit(used.end)),
    }
    return [F.when(holds, F.date_format(time, _TIME)).alias(name) for name, (time, holds) in shown.items()]


def _age(evidence: Evidence, column: str) -> Column:
    return F.lit(evidence.taken_ms) - F.unix_millis(column)


def _age_of_commit(evidence: Evidence, column: str) -> Column:
    """NULL for a commit from the future: the coordinator's clock, which dated it, is ahead, so its age is not known."""
    age = _age(evidence, column)
    return F.when(age >= -CLOCKS_APART_MS, age)


def _without(rows: DataFrame, used: Behaviour, ddl: str) -> DataFrame:
    return rows.withColumns({"behaviour": F.lit(None).cast(ddl), "behaviour_reason": F.lit(used.reason)})


def _joined(rows: DataFrame, values: DataFrame, ddl: str, evidence: Evidence, what: str, *keys: str) -> DataFrame:
    """Adds the columns of ``values`` as ``behaviour``: none where an open transaction has held back a group's records for too long."""
    used = evidence.used_behaviour
    old = F.coalesce(_age(evidence, "read_to") > MOST_HOURS_OLD * 3_600_000, F.lit(False))
    why = "what was written since is held back by an open transaction in the partition of the offsets topic that the group belongs to"
    said = F.concat(F.lit("the commit history of the group ends "), F.date_format("read_to", _TIME), F.lit(f": {why}"))
    found = values.select(*keys, F.when(~old, _struct(ddl)).alias("behaviour"), F.when(old, said).alias("_held_back"))
    nothing = F.lit(f"the commit history up to {_as_text(used.end)} shows nothing of {what}")
    reason = F.when(F.col("behaviour").isNull(), F.coalesce("_held_back", nothing))
    return rows.join(found, on=list(keys), how="left").withColumn("behaviour_reason", reason).drop("_held_back")


def _about(used: Behaviour) -> dict[str, Column]:
    """Up to when and for how long the group's partition of the offsets topic was read without a hole; 0 h where that is not known."""
    since = F.greatest(F.lit(used.observed_from), "complete_since")
    hours = (F.unix_millis("read_to") - F.unix_millis(since)) / 3_600_000
    return {
        "as_of": F.coalesce(F.date_format("read_to", _TIME), F.lit(_as_text(used.end))),
        "hours": F.greatest(F.coalesce(hours, F.lit(0.0)), F.lit(0.0)),
        "window_hours": F.lit(used.window_hours),
    }


def _struct(ddl: str) -> Column:
    names = [field.split(":")[0] for field in ddl.removeprefix("struct<").removesuffix(">").split(",")]
    return F.struct(*names).cast(ddl)


def _as_text(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ")
