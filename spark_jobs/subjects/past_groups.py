"""What earlier snapshots tell of groups: rebalances, how long they have had no members, and their lag over time."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence, shortened
from spark_jobs.subjects.ages import ages, ages_where, below, largest, since, smallest, times, with_age
from spark_jobs.subjects.membership import WITHOUT_MEMBERS

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_UNKNOWN = ("", "Unknown")
_HOUR_MS = 3_600_000
_TREND = 3
"""Two points lie on a line whatever they are; from three on a slope says something."""


@shortened
def past_groups(evidence: Evidence) -> DataFrame:
    """group_id, snapshots int, history_ms bigint, snapshots_rebalancing int, empty_ms and empty_within_ms bigint (kafka_audit.subjects).

    ``peopled``: the ages at which it had members.
    """
    known = f"state is not null and state not in {_UNKNOWN}"
    states = with_age(evidence, "groups", "group_id", "state").groupBy("group_id")
    rows = states.agg(
        ages_where(known).alias("shown"),
        ages_where(f"state in {REBALANCING}").alias("rebalancing"),
        ages_where(f"state in {WITHOUT_MEMBERS}").alias("empty"),
    )
    rows = rows.withColumn("peopled", F.col("shown").bitwiseAND(F.bitwise_not("empty")))
    run = below(F.col("empty"), smallest(F.col("peopled")))
    is_empty = F.col("empty") % 2 == 1
    return rows.select(
        "group_id",
        F.bit_count("shown").cast("int").alias("snapshots"),
        since(evidence, largest(F.col("shown"))).alias("history_ms"),
        F.bit_count("rebalancing").cast("int").alias("snapshots_rebalancing"),
        F.when(is_empty, since(evidence, largest(run))).alias("empty_ms"),
        F.when(is_empty, since(evidence, smallest(F.col("peopled")))).alias("empty_within_ms"),
        "peopled",
    )


def lag_sums(evidence: Evidence, counts: Column) -> dict[str, Column]:
    """Aggregates over a group's partitions where ``counts``: ``lag_sums`` array<bigint> and ``lag_counts`` array<bigint> by age."""
    lags = [F.when(counts, F.get("lags", F.lit(age))) for age in ages(evidence)]
    return {"lag_sums": F.array(*[F.sum(lag) for lag in lags]), "lag_counts": F.array(*[F.count(lag) for lag in lags])}


def lag_growth(evidence: Evidence) -> Column:
    """By how many records an hour ``lag_sums`` grows, as double: the slope of the least-squares line.

    Only snapshots that show the lag of as many partitions as this one are compared, and fewer than three give NULL.
    """
    hours = [F.lit((time - evidence.taken_ms) / _HOUR_MS) for time in times(evidence)]
    points = F.zip_with("lag_sums", "lag_counts", lambda lag, of: F.when(of == F.col("lag_counts")[0], lag.cast("double")))
    points = F.filter(
        F.zip_with(F.array(*hours), points, lambda hour, lag: F.struct(hour.alias("x"), lag.alias("y"))),
        lambda point: point["y"].isNotNull(),
    )

    def add(sums: Column, point: Column) -> Column:
        x, y = point["x"], point["y"]
        return F.struct(
            (sums["n"] + 1).alias("n"),
            (sums["x"] + x).alias("x"),
            (sums["y"] + y).alias("y"),
            (sums["xy"] + x * y).alias("xy"),
            (sums["xx"] + x * x).alias("xx"),
        )

    start = F.struct(*[F.lit(0.0).alias(name) for name in ("n", "x", "y", "xy", "xx")])

    def slope(sums: Column) -> Column:
        n = sums["n"]
        return F.when(n >= _TREND, (n * sums["xy"] - sums["x"] * sums["y"]) / (n * sums["xx"] - sums["x"] * sums["x"]))

    return F.aggregate(points, start, add, slope)
