"""Searches, filters, sorts and pages the groups of an audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.catalogue.rows.groups import STATUSES

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


def find_groups(groups: pa.Table, query: GroupQuery) -> GroupPage:
    """One page of the rows of kafka_audit.index.tables.GROUP_ROW. What is not known comes last in both directions; ties go by id."""
    counts = {one["values"]: one["counts"] for one in pc.value_counts(groups["status"].combine_chunks()).to_pylist()}
    found = groups
    if query.status:
        found = found.filter(pc.equal(found["status"], query.status))
    if query.text:
        found = found.filter(pc.match_substring(found["group_id"], query.text, ignore_case=True))
    column, order = SORTS[query.sort], "descending" if query.descending else "ascending"
    keys = [(column, order), *([("group_id", "ascending")] if column != "group_id" else [])]
    start = query.start // PAGE * PAGE
    places = pc.sort_indices(found, sort_keys=keys)[start : start + PAGE]
    return GroupPage(
        rows=found.take(places).to_pylist(), start=start, found=found.num_rows, total=groups.num_rows, statuses=_worst_first(counts)
    )


def _worst_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    rank = {status: position for position, status in enumerate(STATUSES)}
    return sorted(counts.items(), key=lambda one: (rank.get(one[0], len(rank)), one[0]))
