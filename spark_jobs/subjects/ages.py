"""The history by age, which is 0 for this snapshot, 1 for the one before, and so on.

Values become arrays by age, with NULL where a snapshot shows none; conditions become sets of ages, held as the bits of a bigint. Both
are one aggregation whose state is plain numbers, and plain arithmetic afterwards: millions of rows of history are neither sorted nor
kept as lists that grow.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.store.layout import Snapshot
from kafka_audit.times import parse_time
from spark_jobs.datasets import Evidence

NEWEST = 60
"""How many snapshots of either kind are looked at, this one included: a bigint has 64 bits. Of a longer history these are the newest."""


def with_age(evidence: Evidence, dataset: str, *columns: str) -> DataFrame:
    """Columns of a dataset over the snapshots, and ``age`` int, which is NULL for snapshots that are too old."""
    ages = F.create_map(*[F.lit(part) for age, one in enumerate(_newest_first(evidence)) for part in (one.snapshot_id, age)])
    return evidence.series(dataset, *columns).select(*columns, ages[F.col("snapshot_id")].alias("age"))


def array_by_age(evidence: Evidence, value: str) -> Column:
    """An aggregate over rows with an age: array by age of a number, which is given as SQL."""
    return F.expr(f"array({', '.join(f'max(if(age = {age}, {value}, null))' for age in ages(evidence))})")


def ages_where(truth: str) -> Column:
    """An aggregate over rows with an age: the set of ages at which a condition in SQL holds."""
    return F.expr(f"bit_or(if({truth}, shiftleft(1L, age), 0L))")


def array_of(evidence: Evidence, value: Callable[[int], str]) -> Column:
    """An array by age from SQL for each age."""
    return F.expr(f"array({', '.join(value(age) for age in ages(evidence))})")


def set_of(evidence: Evidence, truth: Callable[[int], str]) -> Column:
    """The set of ages for which a condition, given as SQL for each age, holds; never NULL."""
    return F.expr(" | ".join(f"if({truth(age)}, {1 << age}L, 0L)" for age in ages(evidence)))


def ages(evidence: Evidence) -> range:
    """All ages there are."""
    return range(len(_newest_first(evidence)))


def smallest(ages: Column) -> Column:
    """The smallest age of a set, as int; NULL when it is empty."""
    return F.when(ages != 0, F.bit_count(ages.bitwiseAND(-ages) - 1)).cast("int")


def largest(ages: Column) -> Column:
    """The largest age of a set, as int; NULL when it is empty."""
    return F.when(ages != 0, F.length(F.bin(ages)) - 1).cast("int")


def below(ages: Column, age: Column) -> Column:
    """The ages of a set that are smaller than ``age``; all of them when that is NULL."""
    bits = F.call_function("shiftleft", F.lit(1).cast("bigint"), age) - 1
    return F.when(age.isNull(), ages).otherwise(ages.bitwiseAND(bits))


def since(evidence: Evidence, age: Column) -> Column:
    """How long before this snapshot the one of that age was taken, in milliseconds as bigint; NULL for NULL."""
    return F.lit(evidence.taken_ms) - time_of(evidence, age)


def in_sequence(evidence: Evidence) -> int:
    """The set of ages that are samples of their own: of snapshots that overlap or were taken twice, the newest counts."""
    chosen, next_began = 1, evidence.taken_ms
    for age, one in enumerate(_newest_first(evidence)[1:], start=1):
        if _ended(one) <= next_began:
            chosen, next_began = chosen | 1 << age, times(evidence)[age]
    return chosen


def time_of(evidence: Evidence, age: Column) -> Column:
    """When the snapshot of that age was taken, in milliseconds since the epoch as bigint."""
    return F.get(F.array(*[F.lit(time).cast("bigint") for time in times(evidence)]), age)


def distances(evidence: Evidence, ages: Column) -> Column:
    """How long before each snapshot of a set of ages its next older one was taken: array<bigint> of milliseconds, newest first."""
    chosen = F.filter(
        F.array(*[F.lit(time).cast("bigint") for time in times(evidence)]),
        lambda _, age: F.call_function("shiftright", ages, age) % 2 == 1,
    )
    return F.array_compact(F.zip_with(chosen, F.slice(chosen, 2, NEWEST), lambda newer, older: newer - older))


def times(evidence: Evidence) -> list[int]:
    """When the snapshots were taken, by age, in milliseconds since the epoch."""
    return [one.taken_ms for one in _newest_first(evidence)]


def _newest_first(evidence: Evidence) -> list[Snapshot]:
    return [evidence.snapshot, *reversed(evidence.history.all)][:NEWEST]


def _ended(snapshot: Snapshot) -> int:
    """When a snapshot was finished, in milliseconds since the epoch; its start, where the manifest does not say."""
    return round(parse_time(snapshot.manifest.get("finished_at") or snapshot.manifest["started_at"]).timestamp() * 1000)
