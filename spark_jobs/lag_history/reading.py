"""The samples of a window before an audit: rolled-up days, and snapshots of days that are not rolled up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.lag_days import GROUP_PARTITIONS, GROUPS, LagDay, day_start_ms, read_days
from kafka_audit.lag_samples import (
    DAY_MS,
    OTHER_SCOPE,
    Samples,
    day_of,
    first_of_each_interval,
    gaps,
    read_samples,
    scope_of,
)
from kafka_audit.policy import Policy
from kafka_audit.policy.slas import WINDOW_DAYS
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from spark_jobs.datasets import Evidence
from spark_jobs.lag_history import rows
from spark_jobs.tables import schema_of


@dataclass(frozen=True, kw_only=True)
class LagWindow:
    """Rows (spark_jobs.lag_history.rows) of the samples taken at ``times`` from ``first_ms`` to ``last_ms``, all in epoch milliseconds.

    The last one is the audit's own snapshot.
    """

    group_partitions: DataFrame
    groups: DataFrame
    times: tuple[int, ...]
    first_ms: int
    last_ms: int
    interval_ms: int
    record: dict[str, Any]


def read_window(evidence: Evidence, policy: Policy) -> LagWindow:
    """The longest window of the policy's SLAs. Snapshots are read one by one only for days that are not rolled up."""
    days_back = max((sla.window_days for sla in policy.slas), default=WINDOW_DAYS)
    last_ms, interval_ms = evidence.taken_ms, policy.history.offsets.interval_seconds * 1000
    first_ms = last_ms - days_back * DAY_MS
    root, cluster = EvidenceRoot(path=evidence.snapshot.path.parents[2]), str(evidence.snapshot.manifest["cluster"])
    cluster_id = str(evidence.snapshot.manifest.get("cluster_id"))
    found, problems = read_days(root, cluster, day_of(first_ms), day_of(last_ms))
    days = [one for one in found if one.cluster_id == cluster_id]
    problems += [f"{one.path.name}: is of another cluster that had this name" for one in found if one.cluster_id != cluster_id]
    rolled_up = {one.day: one for one in days}
    scope = scope_of(evidence.snapshot.manifest)
    samples = read_samples(
        root, cluster, first_ms=first_ms, last_ms=last_ms, interval_ms=interval_ms, cluster_id=cluster_id, scope=scope, skip=rolled_up
    )
    rolled_ms = [source["taken_ms"] for one in days for source in one.sources if first_ms <= source["taken_ms"] < last_ms]
    whole, narrow = _in_free_intervals(evidence, first_ms, interval_ms, [*rolled_ms, *(one.taken_ms for one in samples.used)])
    samples = replace(samples, left_out=(*samples.left_out, *((one.snapshot_id, OTHER_SCOPE) for one in narrow)))
    raw = evidence.once("lag_rows", lambda: _rows(evidence, [*samples.used, evidence.snapshot], whole, rolled_up, interval_ms))
    times = sorted({*rolled_ms, *(one.taken_ms for one in (*samples.used, *whole)), last_ms})
    return LagWindow(
        group_partitions=_with_days(evidence, days, GROUP_PARTITIONS, rows.GROUP_PARTITIONS, raw),
        groups=_with_days(evidence, days, GROUPS, rows.GROUPS, evidence.once("lag_group_rows", lambda: rows.group_rows(raw))),
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


def _rows(
    evidence: Evidence, samples: Sequence[Snapshot], whole: Sequence[Snapshot], rolled_up: dict[date, LagDay], interval_ms: int
) -> DataFrame:
    """Rows of what is not rolled up, stretch by stretch between rolled-up days. Whole snapshots tell positions only, no movement."""
    stretches: dict[date | None, list[Snapshot]] = {}
    for one in samples:
        before = [day for day in rolled_up if day_start_ms(day) <= one.taken_ms]
        stretches.setdefault(max(before, default=None), []).append(one)
    built = []
    for day, stretch in stretches.items():
        seed, seed_ms = rows.seed_of(evidence.tables, rolled_up[day] if day else None, stretch[0].taken_ms)
        built.append(rows.group_partition_rows(evidence.tables, stretch, seed, seed_ms, interval_ms))
    if whole:
        positions = rows.group_partition_rows(evidence.tables, whole, None, None, 0)
        built.append(positions.withColumn("recreated", F.lit(False)))
    union = built[0]
    for more in built[1:]:
        union = union.unionByName(more)
    return union


def _with_days(evidence: Evidence, days: Sequence[LagDay], name: str, ddl: str, raw: DataFrame) -> DataFrame:
    if not days:
        return raw
    read = evidence.tables.read(schema_of(ddl), [one.path / name for one in days])
    return read.unionByName(raw)


def _record(days: Sequence[LagDay], samples: Samples, problems: Sequence[str]) -> dict[str, Any]:
    return {
        "days": [{"day": one.day.isoformat(), "manifest_sha256": one.manifest_sha256} for one in days],
        "offsets_snapshots": [{"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256} for one in samples.used],
        "left_out": [{"snapshot_id": name, "reason": reason} for name, reason in samples.left_out],
        "unusable_days": list(problems),
    }
