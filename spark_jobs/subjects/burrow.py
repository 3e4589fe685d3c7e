"""LinkedIn Burrow's evaluator on the same samples, so that users of both can compare (core/internal/evaluator/caching.go).

Burrow reads every commit from ``__consumer_offsets``; samples show where a commit stood. A sample counts as a commit where the offset is
another one than in the sample before, where the group had members, who commit whether they move or not, and where it is the first one.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.ages import ages, times

INTERVALS = 10
"""Burrow's default for the commits and for the log ends that it keeps of a partition."""


def with_burrow(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``burrow`` (kafka_audit.subjects).

    Needs has_commit, topic_exists, committed, log_end, commits, log_ends, and the sets peopled, seen and steps (lag_window).
    """
    seen, before = F.col("seen"), F.call_function("shiftright", F.col("seen"), F.lit(1))
    new = F.col("steps").bitwiseOR(F.bitwise_not(before))
    made = seen.bitwiseAND(F.coalesce("peopled", F.lit(0)).bitwiseOR(new))
    rows = rows.withColumns({"kept_commits": _newest(evidence, made), "kept_ends": _newest(evidence, seen)})
    clock = F.array(*[F.lit(time).cast("bigint") for time in times(evidence)])
    rows = rows.withColumns(
        {
            "kept_offsets": F.transform("kept_commits", lambda age: F.get("commits", age)),
            "kept_lags": F.transform("kept_commits", _lag),
            "kept_times": F.transform("kept_commits", lambda age: F.get(clock, age)),
            "recently_level": F.exists("kept_ends", lambda age: F.get("log_ends", age) <= F.col("committed")),
        }
    )
    known = F.col("has_commit") & F.col("topic_exists") & F.col("log_end").isNotNull() & (F.size("kept_commits") > 0)
    spent = ("kept_commits", "kept_ends", "kept_offsets", "kept_lags", "kept_times", "recently_level")
    return rows.withColumn("burrow", F.when(known, _status(evidence))).drop(*spent)


def _status(evidence: Evidence) -> Column:
    """What calculatePartitionStatus answers, in its order; commits stand newest first."""
    last, first = F.get("kept_times", F.lit(0)), F.element_at("kept_times", -1)
    stopped = (F.lit(evidence.taken_ms) - last) > (last - first)
    older = F.slice("kept_lags", 2, INTERVALS)
    falls = F.exists(F.zip_with("kept_lags", older, lambda lag, before: lag < before), lambda one: F.coalesce(one, F.lit(False)))
    return (
        F.when(F.col("log_end") <= F.col("committed"), "OK")
        .when(stopped & ~F.col("recently_level"), "STOP")
        .when(_went_back(), "REWIND")
        .when(F.array_min("kept_lags") == 0, "OK")
        .when(F.array_min("kept_offsets") == F.array_max("kept_offsets"), "STALL")
        .when(~falls, "WARN")
        .otherwise("OK")
    )


def _went_back() -> Column:
    """Whether the first step back among the commits has not been made good."""
    start = F.struct(*[F.lit(-1).cast("bigint").alias(name) for name in ("offset", "lost")], F.lit(False).alias("recovered"))

    def further(seen: Column, offset: Column) -> Column:
        found = seen["lost"] >= 0
        return F.struct(
            offset.alias("offset"),
            F.when(~found & (offset < seen["offset"]), seen["offset"]).otherwise(seen["lost"]).alias("lost"),
            (seen["recovered"] | (found & (offset >= seen["lost"]))).alias("recovered"),
        )

    end = F.aggregate(F.reverse("kept_offsets"), start, further)
    return (end["lost"] >= 0) & ~end["recovered"]


def _lag(age: Column) -> Column:
    return F.greatest(F.get("log_ends", age) - F.get("commits", age), F.lit(0).cast("bigint"))


def _newest(evidence: Evidence, chosen: Column) -> Column:
    """The smallest ages of a set, at most as many as Burrow keeps."""
    every = F.array(*[F.lit(age) for age in ages(evidence)])
    return F.slice(F.filter(every, lambda age: F.call_function("shiftright", chosen, age) % 2 == 1), 1, INTERVALS)
