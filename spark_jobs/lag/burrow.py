"""LinkedIn Burrow's evaluator on the same samples, so that users of both can compare (core/internal/evaluator/caching.go).

Burrow reads every commit from ``__consumer_offsets``; samples show where a commit stood. A sample counts as a commit where the offset is
another one than in the sample before, where the group had members, who commit whether they move or not, and where it is the first one.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.lag.in_steps import bound, in_steps
from spark_jobs.lag.positions import offsets_between

INTERVALS = 10
"""Burrow's default for the commits and for the log ends that it keeps of a partition."""


def burrow(own: Column, taken_ms: int) -> Column:
    """The column ``burrow`` (kafka_audit.catalogue.rows), of a snapshot taken at ``taken_ms``, in milliseconds since the epoch.

    ``own``: the samples of their own, newest first (spark_jobs.lag.movement). Needs has_commit, topic_exists, committed, log_end, lag, and
    ages_with_members array<int>.
    """
    committed = F.col("committed")

    def counts(it: Column, one: Column) -> Column:
        had_members = F.coalesce(F.array_contains("ages_with_members", one["age"]), F.lit(False))
        return one["moved"] | had_members | ~F.array_contains(it["ages"], one["age"] + 1)

    known = F.col("has_commit") & F.col("topic_exists") & F.col("log_end").isNotNull()
    return in_steps(
        lambda _: {"ends": F.when(F.col("lag").isNotNull(), F.filter(own, lambda one: one["lag"].isNotNull()))},
        lambda it: {"ages": F.transform(it["ends"], lambda one: one["age"])},
        lambda it: {"kept": F.slice(F.filter(it["ends"], lambda one: counts(it, one)), 1, INTERVALS)},
        lambda it: {
            "offsets": F.transform(it["kept"], lambda one: one["committed"]),
            "lags": F.transform(it["kept"], lambda one: offsets_between(one["committed"], one["log_end"])),
            "recently_level": F.exists(F.slice(it["ends"], 1, INTERVALS), lambda one: offsets_between(committed, one["log_end"]) == 0),
        },
        lambda it: {"status": F.when(known & (F.size(it["kept"]) > 0), _status(it, taken_ms))},
    )["status"]


def _status(it: Column, taken_ms: int) -> Column:
    """What calculatePartitionStatus answers, in its order; commits stand newest first."""
    lags = it["lags"]
    last, first = F.get(it["kept"], F.lit(0))["taken_ms"], F.element_at(it["kept"], -1)["taken_ms"]
    stopped = (F.lit(taken_ms) - last) > (last - first)
    older = F.slice(lags, 2, INTERVALS)
    falls = F.exists(F.zip_with(lags, older, lambda lag, before: lag < before), lambda one: F.coalesce(one, F.lit(False)))
    return (
        F.when(offsets_between(F.col("committed"), F.col("log_end")) == 0, "OK")
        .when(stopped & ~it["recently_level"], "STOP")
        .when(_went_back(it["offsets"]), "REWIND")
        .when(F.array_min(lags) == 0, "OK")
        .when(F.size(F.array_distinct(it["offsets"])) == 1, "STALL")
        .when(~falls, "WARN")
        .otherwise("OK")
    )


def _went_back(offsets: Column) -> Column:
    """Whether the first step back among the commits has not been made good."""
    start = F.struct(*[F.lit(-1).cast("bigint").alias(name) for name in ("offset", "lost")], F.lit(False).alias("recovered"))

    def further(seen: Column, offset: Column) -> Column:
        found, back = seen["lost"] >= 0, offsets_between(offset, seen["offset"]) > 0
        return F.struct(
            offset.alias("offset"),
            F.when(~found & back, seen["offset"]).otherwise(seen["lost"]).alias("lost"),
            (seen["recovered"] | (found & (offsets_between(offset, seen["lost"]) == 0))).alias("recovered"),
        )

    return bound(F.aggregate(F.reverse(offsets), start, further), lambda end: (end["lost"] >= 0) & ~end["recovered"])
