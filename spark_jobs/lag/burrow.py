"""LinkedIn Burrow's evaluator on the same samples, so that users of both can compare (core/internal/evaluator/caching.go).

Burrow reads every commit from ``__consumer_offsets``; samples show where a commit stood. A sample counts as a commit where the offset is
another one than in the sample before, where the group had members, who commit whether they move or not, and where it is the first one.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.lag.positions import offsets_between

INTERVALS = 10
"""Burrow's default for the commits and for the log ends that it keeps of a partition."""


def with_burrow(rows: DataFrame, taken_ms: int) -> DataFrame:
    """Adds ``burrow`` (kafka_audit.catalogue.rows), of a snapshot taken at ``taken_ms``, in milliseconds since the epoch.

    Needs has_commit, topic_exists, committed, log_start, log_end, lag, samples_by_age (spark_jobs.lag.movement), and ages_with_members
    array<int>.
    """
    before = rows.columns
    samples = F.filter("samples_by_age", lambda one: one["is_own"] & one["lag"].isNotNull())
    rows = rows.withColumn("kept_ends", F.when(F.col("lag").isNotNull(), samples))
    ages = F.transform("kept_ends", lambda one: one["age"])

    def counts(one: Column) -> Column:
        had_members = F.coalesce(F.array_contains("ages_with_members", one["age"]), F.lit(False))
        return one["moved"] | had_members | ~F.array_contains(ages, one["age"] + 1)

    rows = rows.withColumn("kept", F.slice(F.filter("kept_ends", counts), 1, INTERVALS))
    rows = rows.withColumns(
        {
            "kept_offsets": F.transform("kept", lambda one: one["committed"]),
            "kept_lags": F.transform("kept", lambda one: offsets_between(one["committed"], one["log_end"])),
            "recently_level": F.exists(
                F.slice("kept_ends", 1, INTERVALS), lambda one: offsets_between(F.col("committed"), one["log_end"]) == 0
            ),
        }
    )
    known = F.col("has_commit") & F.col("topic_exists") & F.col("log_end").isNotNull() & (F.size("kept") > 0)
    return rows.select(*before, F.when(known, _status(taken_ms)).alias("burrow"))


def _status(taken_ms: int) -> Column:
    """What calculatePartitionStatus answers, in its order; commits stand newest first."""
    last, first = F.get("kept", F.lit(0))["taken_ms"], F.element_at("kept", -1)["taken_ms"]
    stopped = (F.lit(taken_ms) - last) > (last - first)
    older = F.slice("kept_lags", 2, INTERVALS)
    falls = F.exists(F.zip_with("kept_lags", older, lambda lag, before: lag < before), lambda one: F.coalesce(one, F.lit(False)))
    return (
        F.when(offsets_between(F.col("committed"), F.col("log_end")) == 0, "OK")
        .when(stopped & ~F.col("recently_level"), "STOP")
        .when(_went_back(), "REWIND")
        .when(F.array_min("kept_lags") == 0, "OK")
        .when(F.size(F.array_distinct("kept_offsets")) == 1, "STALL")
        .when(~falls, "WARN")
        .otherwise("OK")
    )


def _went_back() -> Column:
    """Whether the first step back among the commits has not been made good."""
    start = F.struct(*[F.lit(-1).cast("bigint").alias(name) for name in ("offset", "lost")], F.lit(False).alias("recovered"))

    def further(seen: Column, offset: Column) -> Column:
        found, back = seen["lost"] >= 0, offsets_between(offset, seen["offset"]) > 0
        return F.struct(
            offset.alias("offset"),
            F.when(~found & back, seen["offset"]).otherwise(seen["lost"]).alias("lost"),
            (seen["recovered"] | (found & (offsets_between(offset, seen["lost"]) == 0))).alias("recovered"),
        )

    end = F.aggregate(F.reverse("kept_offsets"), start, further)
    return (end["lost"] >= 0) & ~end["recovered"]
