"""The window of samples that a group partition is judged by: as long as a few commits take, and never fewer than three samples."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.ages import ages, array_of, below, distances, largest, set_of, since, smallest, times
from spark_jobs.subjects.past_ends import per_second

SAMPLES = 3
"""Two samples lie on a line whatever they are."""
COMMITS = 4
"""How many median distances of commits the window is long."""
LONGEST_MS = 7_200_000
"""How long a window may be, and is where no cadence of commits was seen, unless three samples are further apart."""
_HOUR_MS = 3_600_000
_PUNCTUAL = 0.8
"""A snapshot that is so much of the distance of commits ago counts as one such distance ago: they are not taken to the second."""


def with_window(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds status_window_ms, detected_within_ms, produced_per_s and consumed_per_s (kafka_audit.subjects), and what the statuses need.

    That is: samples int (in the window), all_idle and lag_rises boolean, highest_commit, first_lag, other_lags_most bigint, and end_before
    and lag_before bigint of the newest sample that is a distance of commits ago. And the sets ``seen``, the samples with a lag, and
    ``steps``, those with another commit than the one before. All NULL without a lag. Needs lag, lags, commits, log_ends, ends_at, and the
    sets same and idle.
    """
    sets = {
        "seen": set_of(evidence, lambda age: f"lags[{age}] is not null").bitwiseAND(F.col("same")),
        "steps": set_of(evidence, lambda age: f"commits[{age}] <> get(commits, {age + 1})").bitwiseAND(F.col("same")),
    }
    rows = rows.withColumns({name: F.when(F.col("lag").isNotNull(), value) for name, value in sets.items()})
    rows = rows.withColumn("between_commits", F.sort_array(distances(evidence, F.col("steps"))))
    cadence = F.get("between_commits", F.floor(F.size("between_commits") / 2).cast("int"))
    rows = rows.withColumn("cadence", cadence)
    target = F.least(F.lit(LONGEST_MS).cast("bigint"), F.col("cadence") * COMMITS)
    rows = rows.withColumn("target", F.when(F.col("seen").isNotNull(), target))
    rows = rows.withColumn("older", _without_newest(F.col("seen"))).withColumn("third", smallest(_without_newest(F.col("older"))))
    reached = below(F.col("seen"), F.greatest(_taken_within(evidence, "target"), F.col("third") + 1))
    rows = rows.withColumn("window", F.when(F.col("third").isNull(), F.col("seen")).otherwise(reached))
    recent = below(F.col("seen"), F.greatest(_taken_within(evidence, f"cadence * {_PUNCTUAL}"), F.lit(1)))
    rows = rows.withColumns({"first": largest(F.col("window")), "before": smallest(F.col("seen").bitwiseAND(F.bitwise_not(recent)))})
    widest = F.array_max(distances(evidence, F.col("window")))
    detected = F.greatest(F.col("target"), SAMPLES * widest) + widest
    rows = rows.withColumns({**_facts(evidence), "status_window_ms": since(evidence, F.col("first")), "detected_within_ms": detected})
    return rows.drop("between_commits", "cadence", "target", "older", "third", "window", "first", "before")


def _facts(evidence: Evidence) -> dict[str, Column]:
    window, earlier = F.col("window"), F.col("first") > 0
    commits = array_of(evidence, lambda age: f"if({_in_window(age)}, commits[{age}], null)")
    others = array_of(evidence, lambda age: f"if({_in_window(age)}, lags[{age}], null)" if age else "cast(null as bigint)")
    return {
        "samples": F.bit_count(window).cast("int"),
        "all_idle": (window != 0) & (window.bitwiseAND(F.bitwise_not("idle")) == 0),
        "highest_commit": F.array_max(commits),
        "first_lag": F.when(earlier, F.get("lags", F.col("first"))),
        "other_lags_most": F.array_max(others),
        "lag_before": F.get("lags", F.col("before")),
        "end_before": F.get("log_ends", F.col("before")),
        "lag_rises": F.when(earlier, _rises(evidence)),
        "produced_per_s": F.when(earlier, per_second("log_ends", "first")),
        "consumed_per_s": F.when(earlier, per_second("commits", "first")),
    }


def _in_window(age: int) -> str:
    return f"(window & {1 << age}L) <> 0"


def _without_newest(ages: Column) -> Column:
    """A set without its smallest age."""
    return ages.bitwiseAND(ages - 1)


def _taken_within(evidence: Evidence, limit: str) -> Column:
    """How many snapshots, this one included, were taken within a time, given as SQL, before this one; 0 when it is NULL."""
    return F.expr(" + ".join(f"if({limit} >= {evidence.taken_ms - time}L, 1, 0)" for time in times(evidence)))


def _rises(evidence: Evidence) -> Column:
    """Whether the least-squares line through the lags of the window rises."""
    hours = {age: (time - evidence.taken_ms) / _HOUR_MS for age, time in enumerate(times(evidence))}

    def summed(value: str) -> Column:
        return F.expr(
            " + ".join(f"if({_in_window(age)}, {value.format(x=f'{hours[age]!r}D', y=f'lags[{age}]')}, 0D)" for age in ages(evidence))
        )

    return F.bit_count("window") * summed("{x} * {y}") > summed("{x}") * summed("cast({y} as double)")
