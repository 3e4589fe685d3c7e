"""Reads what an audit says of each partition that a group reads: once for all parts of its index."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_audit.index.overview import LISTED, Loss
from kafka_audit.report import lag
from kafka_audit.report.rows import batches, exists

COLUMNS = (*lag.COLUMNS, "rewinds", "behaviour", "behaviour_reason")

_OF_GROUPS: list[Any] = [("lag", "count"), ("lost", "count"), ("beyond_end", "count"), ("expires_in_ms", "min"), ("rewinds", "sum")]


class Partitions:
    """The rows of an audit's group_partitions.parquet; none if the audit has no such file, or ``path`` is None.

    ``losses`` and ``per_group`` are complete when :meth:`tables` has been read to its end. Memory grows only with the number of groups.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._losses = lag.LossReader(LISTED)
        self.per_group: dict[str, dict[str, Any]] = {}
        """By group, what is not in GroupLag: how many of the values are known, the soonest expiry, and rewinds."""

    def tables(self) -> Iterator[pa.Table]:
        """All rows, in tables with COLUMNS. IntegrityError if the file is broken."""
        if self._path is None or not exists(self._path):
            return
        for table in batches(self._path, COLUMNS):
            self._losses.read(table.select(list(lag.COLUMNS)))
            self._add_groups(table)
            yield table

    def losses(self) -> tuple[list[Loss], list[Loss]]:
        """The next losses and those that happened, as the report orders them; at most LISTED of each."""
        found = self._losses.loss()
        return [_loss(one) for one in found.next], [_loss(one) for one in found.happened]

    def _add_groups(self, table: pa.Table) -> None:
        for row in table.group_by("group_id", use_threads=False).aggregate(_OF_GROUPS).to_pylist():
            kept = self.per_group.setdefault(row["group_id"], {"expires_in_ms": None, "rewinds": None})
            for name in ("lag", "lost", "beyond_end"):
                kept[f"{name}_known"] = kept.get(f"{name}_known", 0) + row[f"{name}_count"]
            kept["expires_in_ms"] = _least(kept["expires_in_ms"], row["expires_in_ms_min"])
            if row["rewinds_sum"] is not None:
                kept["rewinds"] = (kept["rewinds"] or 0) + row["rewinds_sum"]


def _least(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)


def _loss(row: lag.GroupPartition) -> Loss:
    return Loss(**{name: getattr(row, name) for name in Loss.model_fields})
