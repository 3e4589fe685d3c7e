"""Searches, filters, sorts and pages the groups of an audit."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.catalogue.rows.groups import STATUSES

_NUMBER = "number"
PAGE = 100
"""Groups on one page."""

SORTS: Mapping[str, str] = {
    "place": "place",
    "name": "group_id",
    "lag": "lag",
    "time": "lag_ms",
    "lost": "lost",
    "loss": "time_to_loss_ms",
    "expiry": "expires_in_ms",
    "budget": "budget_used_share",
}
"""By what groups can be sorted, and the column that has it."""

WORST_IS_LARGEST = frozenset({"lag", "time", "lost", "budget"})
"""The largest value comes first, unless the other direction is asked for."""


@dataclass(frozen=True, kw_only=True)
class GroupQuery:
    """What is asked for: a part of the id (the case of letters does not count), a status, an order, and the first row, from 0."""

    text: str = ""
    status: str = ""
    sort: str = "place"
    descending: bool = False
    start: int = 0


@dataclass(frozen=True, kw_only=True)
class GroupPage:
    """At most PAGE groups. ``found``: how many match; ``total``: how many there are; ``statuses``: (status, number), the worst first."""

    rows: Sequence[Mapping[str, Any]]
    start: int
    found: int
    total: int
    statuses: Sequence[tuple[str, int]]

    @property
    def before(self) -> int | None:
        """The first row of the page before; None on the first page."""
        return max(0, self.start - PAGE) if self.start else None

    @property
    def after(self) -> int | None:
        """The first row of the page after; None on the last page."""
        return self.start + PAGE if self.start + PAGE < self.found else None


Read = Callable[[list[str] | None], Iterable[pa.Table]]
"""Reads these columns, or all, of a table in parts, each time from its beginning."""


def find_groups(read: Read, query: GroupQuery, columns: list[str] | None = None) -> GroupPage:
    """One page of ``columns`` of the rows of kafka_audit.index.tables.GROUP_ROW, which are in the order of ``group_id``.

    What is not known comes last in both directions; ties go by id. The rows are read twice, and no more than one part of the ids is in
    memory: ids may have 32,767 bytes.
    """
    column, order = SORTS[query.sort], "descending" if query.descending else "ascending"
    by_id = column == "group_id"
    counts: Counter[str] = Counter()
    total, kept = 0, [pa.table({_NUMBER: pa.array([], pa.int64())})]
    for part in read(["status", *([] if by_id else [column]), *(["group_id"] if query.text else [])]):
        counts.update(part["status"].to_pylist())
        numbered = part.append_column(_NUMBER, pa.array(range(total, total + part.num_rows), pa.int64()))
        total += part.num_rows
        kept.append(_matching(numbered, query).select([_NUMBER, *([] if by_id else [column])]))
    found = pa.concat_tables(kept[1:] or kept)
    start = query.start // PAGE * PAGE
    keys = [(_NUMBER, order)] if by_id else [(column, order), (_NUMBER, "ascending")]
    numbers = found[_NUMBER].take(pc.sort_indices(found, sort_keys=keys)[start : start + PAGE]).to_pylist()
    rows = _rows(read(columns), set(numbers)) if numbers else {}
    return GroupPage(
        rows=[rows[one] for one in numbers if one in rows],
        start=start,
        found=found.num_rows,
        total=total,
        statuses=_worst_first(counts),
    )


def _matching(part: pa.Table, query: GroupQuery) -> pa.Table:
    if query.status:
        part = part.filter(pc.equal(part["status"], query.status))
    return part.filter(pc.match_substring(part["group_id"], query.text, ignore_case=True)) if query.text else part


def _rows(parts: Iterable[pa.Table], numbers: set[int]) -> dict[int, Mapping[str, Any]]:
    """The rows of these numbers, by number."""
    found: dict[int, Mapping[str, Any]] = {}
    before = 0
    for part in parts:
        here = sorted(one for one in numbers if before <= one < before + part.num_rows)
        found |= zip(here, part.take([one - before for one in here]).to_pylist() if here else [], strict=True)
        before += part.num_rows
    return found


def _worst_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    rank = {status: position for position, status in enumerate(STATUSES)}
    return sorted(counts.items(), key=lambda one: (rank.get(one[0], len(rank)), one[0]))
