"""Reads a group's lag and SLA compliance over time, reduced to as many columns as a small chart can show."""

import math
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
from pydantic.dataclasses import dataclass

from kafka_audit.report.frozen import EXACT
from kafka_audit.report.rows import batches

COLUMNS = 240
"""The largest number of columns of a history."""

_SERIES = ("group_id", "bucket_ms", "lag", "lost", "in_sla_share", "known_share")


@dataclass(frozen=True, kw_only=True, config=EXACT)
class LagHistory:
    """Equal intervals of ``step_ms`` milliseconds from ``start_ms`` (epoch); each tuple has one value per interval.

    ``lag`` and ``lost``: the largest value in the interval, in records. ``known_share``: the share of the interval that samples cover, 0
    in a gap. ``in_sla_share``: the share of the judged time inside the SLA. None: not known, or not judged.
    """

    start_ms: int
    step_ms: int
    lag: tuple[int | None, ...]
    lost: tuple[int | None, ...]
    in_sla_share: tuple[float | None, ...]
    known_share: tuple[float, ...]


class _Columns:
    """Adds up one group's buckets column by column."""

    def __init__(self, count: int) -> None:
        self.lag: list[int | None] = [None] * count
        self.lost: list[int | None] = [None] * count
        self.known = [0.0] * count
        self.judged = [0.0] * count
        self.inside = [0.0] * count

    def add(self, column: int, lag: int | None, lost: int | None, inside: float | None, known: float | None) -> None:
        known = min(max(known or 0.0, 0.0), 1.0)
        self.known[column] += known
        self.lost[column] = _larger(self.lost[column], lost)
        if known:
            self.lag[column] = _larger(self.lag[column], lag)
        # The known partitions can prove that a limit is broken, but not that it is kept.
        weight = known or float(inside is not None and inside < 1)
        if inside is not None:
            self.judged[column] += weight
            self.inside[column] += weight * min(max(inside, 0.0), 1.0)


def _larger(kept: int | None, value: int | None) -> int | None:
    return value if kept is None else kept if value is None else max(kept, value)


def read_histories(path: Path, groups: Collection[str]) -> dict[str, LagHistory]:
    """Read the history of each of ``groups`` in ``lag_series.parquet``, all over the same time span.

    A bucket that is absent, or of which nothing is known, is a gap. IntegrityError if the file is broken.
    """
    if not groups:
        return {}
    only = pc.field("group_id").isin(list(groups)) & pc.field("bucket_ms").is_valid()
    seen: set[int] = set()
    for table in batches(path, ("group_id", "bucket_ms"), only):
        seen.update(pc.unique(table["bucket_ms"]).to_pylist())
    if not seen:
        return {}
    times = sorted(seen)
    bucket_ms = math.gcd(*(later - earlier for earlier, later in pairwise(times))) or 1
    buckets = (times[-1] - times[0]) // bucket_ms + 1
    per_column = -(-buckets // COLUMNS)
    count = -(-buckets // per_column)
    found: dict[str, _Columns] = {}
    for table in batches(path, _SERIES, only):
        for group_id, at_ms, *values in zip(*(table[name].to_pylist() for name in _SERIES), strict=True):
            found.setdefault(group_id, _Columns(count)).add((at_ms - times[0]) // bucket_ms // per_column, *values)
    sizes = [min(per_column, buckets - column * per_column) for column in range(count)]
    return {
        group_id: LagHistory(
            start_ms=times[0],
            step_ms=bucket_ms * per_column,
            lag=tuple(made.lag),
            lost=tuple(made.lost),
            in_sla_share=tuple(
                round(inside / judged, 6) if judged else None for inside, judged in zip(made.inside, made.judged, strict=True)
            ),
            known_share=tuple(round(min(known / size, 1.0), 6) for known, size in zip(made.known, sizes, strict=True)),
        )
        for group_id, made in found.items()
    }
