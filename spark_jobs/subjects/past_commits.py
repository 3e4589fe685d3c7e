"""What earlier snapshots tell of a group's committed offset: whether it moves, and whether it went back."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence, shortened
from spark_jobs.subjects.ages import array_by_age, array_of, below, in_sequence, largest, set_of, since, smallest, time_of, with_age

_KEYS = ["group_id", "topic", "partition"]
_SETS = {
    "shown": lambda age: f"commits[{age}] is not null",
    "other": lambda age: f"commits[{age}] <> committed",
    "above": lambda age: f"commits[{age}] > committed",
    "unread": lambda age: f"log_ends[{age}] > greatest(committed, log_starts[{age}]) and log_starts[{age}] is not null",
    "read_up": lambda age: f"log_ends[{age}] <= greatest(committed, log_starts[{age}]) and log_starts[{age}] is not null",
}
"""Sets of ages: the commit is known, is another one than at present, is above it; and, of the present one, whether all was read then."""


@shortened
def past_commits(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition and ``commits`` array<bigint>, the committed offset by age."""
    rows = with_age(evidence, "committed_offsets", *_KEYS, "committed").where(F.col("committed") >= 0)
    return rows.groupBy(*_KEYS).agg(array_by_age(evidence, "committed").alias("commits"))


def with_past_commits(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds the columns from ``snapshots`` to ``idle_ms`` (kafka_audit.subjects) and ``lags`` array<bigint>, the lag by age.

    Also ``idle``, the ages of the unbroken run of the present commit with unread records. ``same`` keeps the ages that are samples of
    their own. Needs commits, committed, has_commit, lag, and same, log_starts and log_ends
    (spark_jobs.subjects.past_ends).
    """
    rows = rows.withColumn("same", F.coalesce("same", F.lit(1).cast("bigint")).bitwiseAND(F.lit(in_sequence(evidence)).cast("bigint")))
    rows = rows.withColumns({name: set_of(evidence, truth).bitwiseAND(F.col("same")) for name, truth in _SETS.items()})
    rows = rows.withColumns({"changed": smallest(F.col("other")), "caught_up": smallest(F.col("read_up"))})
    rows = rows.withColumn("run", below(F.col("shown"), F.col("changed")))
    rows = rows.withColumn("idle", below(F.col("run").bitwiseAND(F.col("unread")), F.col("caught_up")))
    facts = {name: F.when(F.col("has_commit"), value) for name, value in _facts(evidence).items()}
    return rows.withColumns(facts).drop(*_SETS, "changed", "caught_up", "run")


def _facts(evidence: Evidence) -> dict[str, Column]:
    behind = F.col("lag") > 0
    in_this_run = F.col("changed").isNull() | (F.col("caught_up") < F.col("changed"))
    seen_above = F.timestamp_millis(time_of(evidence, smallest(F.col("above"))))
    return {
        "snapshots": F.bit_count("shown").cast("int"),
        "history_ms": since(evidence, largest(F.col("shown"))),
        "committed_before": F.array_max(array_of(evidence, _earlier)),
        "committed_before_at": F.date_format(seen_above, "yyyy-MM-dd HH:mm:ss'Z'"),
        "rewinds": F.bit_count(set_of(evidence, lambda age: f"{_same(age)} and {_same(age + 1)} and {_went_back(age)}")).cast("int"),
        "unchanged_ms": since(evidence, largest(F.col("run"))),
        "changed_within_ms": since(evidence, F.col("changed")),
        "caught_up_within_ms": F.when(in_this_run, since(evidence, F.col("caught_up"))),
        "idle_snapshots": F.when(behind, F.bit_count("idle")).when(F.col("lag") == 0, F.lit(0)).cast("int"),
        "idle_ms": F.when(behind, since(evidence, largest(F.col("idle")))).when(F.col("lag") == 0, F.lit(0).cast("bigint")),
        "lags": array_of(evidence, _lag),
    }


def _same(age: int) -> str:
    return f"(same & {1 << age}L) <> 0"


def _earlier(age: int) -> str:
    return f"if({_same(age)}, commits[{age}], null)" if age else "cast(null as bigint)"


def _went_back(age: int) -> str:
    return f"commits[{age}] < get(commits, {age + 1})"


def _lag(age: int) -> str:
    behind = f"log_ends[{age}] - greatest(commits[{age}], log_starts[{age}])"
    # greatest() would pass over a NULL.
    return f"if(commits[{age}] is not null and log_starts[{age}] is not null, if({behind} < 0, 0L, {behind}), null)"
