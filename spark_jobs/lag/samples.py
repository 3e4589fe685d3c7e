"""Selects the samples: which snapshots of a cluster count, for the newest movement of groups and for the window of their SLAs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafka_audit.policy import Policy
from kafka_audit.policy.slas import WINDOW_DAYS
from kafka_audit.store.lag_days import LagDay, read_days
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.samples import (
    BRIDGED,
    DAY_MS,
    OTHER_SCOPE,
    Samples,
    bridged_ms,
    day_of,
    first_of_each_interval,
    gaps,
    read_samples,
    scope_of,
)
from kafka_audit.times import parse_time
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import Tables, schema_of, table_of

NEWEST = 60
"""How many snapshots of either kind movement is found in, this one included. Of a longer history these are the newest."""


@dataclass(frozen=True, kw_only=True)
class WindowSamples:
    """The samples from ``first_ms`` to ``last_ms``, all times in epoch milliseconds; the last one is the audit's own snapshot.

    ``days`` are rolled up; ``raw`` are the snapshots of other days, oldest first, the audit's own one last; ``whole`` are earlier whole
    snapshots of intervals that have no other sample. ``times`` are when all of these were taken, and ``record`` names them.
    """

    days: tuple[LagDay, ...]
    raw: tuple[Snapshot, ...]
    whole: tuple[Snapshot, ...]
    times: tuple[int, ...]
    first_ms: int
    last_ms: int
    interval_ms: int
    record: dict[str, Any]


def window_samples(evidence: Evidence, policy: Policy) -> WindowSamples:
    """The samples of the longest window of the policy's SLAs. Snapshots are opened one by one only for days that are not rolled up."""
    days_back = max((sla.window_days for sla in policy.slas), default=WINDOW_DAYS)
    last_ms, interval_ms = evidence.taken_ms, policy.history.offsets.interval_seconds * 1000
    first_ms = last_ms - days_back * DAY_MS
    root, cluster = EvidenceRoot(path=evidence.snapshot.path.parents[2]), str(evidence.snapshot.manifest["cluster"])
    cluster_id = str(evidence.snapshot.manifest.get("cluster_id"))
    found, problems = read_days(root, cluster, day_of(first_ms), day_of(last_ms))
    days = [one for one in found if one.cluster_id == cluster_id]
    problems += [f"{one.path.name}: is of another cluster that had this name" for one in found if one.cluster_id != cluster_id]
    scope, rolled_up = scope_of(evidence.snapshot.manifest), {one.day for one in days}
    samples = read_samples(
        root, cluster, first_ms=first_ms, last_ms=last_ms, interval_ms=interval_ms, cluster_id=cluster_id, scope=scope, skip=rolled_up
    )
    rolled_ms = [source["taken_ms"] for one in days for source in one.sources if first_ms <= source["taken_ms"] < last_ms]
    whole, narrow = _in_free_intervals(evidence, first_ms, interval_ms, [*rolled_ms, *(one.taken_ms for one in samples.used)])
    samples = replace(samples, left_out=(*samples.left_out, *((one.snapshot_id, OTHER_SCOPE) for one in narrow)))
    times = sorted({*rolled_ms, *(one.taken_ms for one in (*samples.used, *whole)), last_ms})
    return WindowSamples(
        days=tuple(days),
        raw=(*samples.used, evidence.snapshot),
        whole=tuple(whole),
        times=tuple(times),
        first_ms=first_ms,
        last_ms=last_ms,
        interval_ms=interval_ms,
        record={**_record(days, samples, problems), "gaps": gaps(times, interval_ms, first_ms, last_ms)},
    )


def _in_free_intervals(evidence: Evidence, first_ms: int, interval_ms: int, taken: Sequence[int]) -> tuple[list[Snapshot], list[Snapshot]]:
    """Earlier whole snapshots of intervals that have no offsets snapshot: those of the audit's scope, and those of another."""
    slots = {at // interval_ms for at in taken}
    earlier = [one for one in evidence.history.snapshots if one.taken_ms >= first_ms and one.taken_ms // interval_ms not in slots]
    own = [one for one in earlier if scope_of(one.manifest) == scope_of(evidence.snapshot.manifest)]
    return first_of_each_interval(own, interval_ms)[0], [one for one in earlier if one not in own]


def _record(days: Sequence[LagDay], samples: Samples, problems: Sequence[str]) -> dict[str, Any]:
    return {
        "days": [{"day": one.day.isoformat(), "manifest_sha256": one.manifest_sha256} for one in days],
        "offsets_snapshots": [{"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256} for one in samples.used],
        "left_out": [{"snapshot_id": name, "reason": reason} for name, reason in samples.left_out],
        "unusable_days": list(problems),
    }


def stands_for(times: Sequence[int], last_ms: int, interval_ms: int) -> list[tuple[int, int]]:
    """(time, how long it stands for) of each sample, in milliseconds: the time to the next one, or ``BRIDGED`` intervals before a gap."""
    pairs = [(at, after - at) for at, after in pairwise([*times, last_ms])]
    return [(at, length if length <= bridged_ms(interval_ms) else BRIDGED * interval_ms) for at, length in pairs]


def before_each(times: Sequence[int], interval_ms: int) -> dict[int, int]:
    """Time of a sample -> that of the sample before it, where there is no gap between them."""
    return {after: before for before, after in pairwise(times) if after - before <= bridged_ms(interval_ms)}


def newest(evidence: Evidence) -> list[Snapshot]:
    """This snapshot and the newest earlier ones of either kind. The place in the list is a snapshot's age: 0 is this one."""
    return [evidence.snapshot, *reversed(evidence.history.all)][:NEWEST]


def in_sequence(snapshots: Sequence[Snapshot]) -> list[bool]:
    """By age, whether a snapshot is a sample of its own: of several that overlap, or of one taken twice, the newest counts."""
    counted, next_began = [], snapshots[0].taken_ms
    for age, one in enumerate(snapshots):
        counted.append(age == 0 or _ended(one) <= next_began)
        if counted[-1]:
            next_began = one.taken_ms
    return counted


def _ended(snapshot: Snapshot) -> int:
    """When a snapshot was finished, in milliseconds since the epoch; its start, where the manifest does not say."""
    return round(parse_time(snapshot.manifest.get("finished_at") or snapshot.manifest["started_at"]).timestamp() * 1000)


def with_age(evidence: Evidence, dataset: str, *columns: str) -> DataFrame:
    """Columns of a dataset over the newest snapshots, and ``age`` int."""
    ids = F.lit([one.snapshot_id for one in newest(evidence)])
    rows = evidence.series(dataset, *columns)
    return rows.select(*columns, (F.array_position(ids, F.col("snapshot_id")) - 1).cast("int").alias("age")).where("age >= 0")


def by_age(evidence: Evidence, value: Column) -> Column:
    """An aggregate over rows with an age, one a sample: array by age of a number or boolean, NULL where there is none."""
    # One plain number for each age: lists would grow by millions of rows of history, and would have to be sorted.
    return F.array(*[F.max(F.when(F.col("age") == age, value)) for age in range(len(newest(evidence)))])


def newest_of(samples: Column) -> Column:
    """The newest of some samples, or NULL."""
    return F.get(samples, F.lit(0))


def oldest_of(samples: Column) -> Column:
    """The oldest of some samples, or NULL."""
    return F.element_at(samples, -1)


def is_newer(sample: Column, limit: Column) -> Column:
    """Whether a sample is newer than another; all are where that is NULL."""
    return F.coalesce(sample["age"] < limit["age"], F.lit(True))


def distances(samples: Column) -> Column:
    """How long before each sample the next older one was taken: array<bigint> of milliseconds, newest first."""
    times = F.transform(samples, lambda one: one["taken_ms"])
    return F.array_compact(F.zip_with(times, F.slice(times, 2, F.size(times)), lambda newer, older: newer - older))


def dataset(tables: Tables, samples: Sequence[Snapshot], name: str, ddl: str) -> DataFrame:
    """The columns of ``ddl`` from the dataset of each sample that has it, and ``snapshot_id``. A sample may have only some of them."""
    having = [one for one in samples if one.dataset(name).is_file()]
    if not having:
        return table_of(tables.spark, [], f"{ddl}, snapshot_id string")
    whole = from_arrow_schema(pq.read_schema(having[-1].dataset(name)))
    # The file's own types: Spark's reader refuses a nested type that is spelt differently.
    typed = StructType([whole[field.name] if field.name in whole.names else field for field in schema_of(ddl)])
    return tables.read_each(typed, name, having)
