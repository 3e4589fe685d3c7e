"""Searching, sorting and paging 65,000 groups: every group once, what is not known last, names as text."""

import random
from itertools import pairwise

import pyarrow as pa
import pytest
from report_audit import HOSTILE_GROUPS

from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.index.group_query import PAGE, SORTS, GroupQuery, Read, find_groups
from kafka_audit.index.tables import GROUP_ROW

MANY = 65_000


def table(ids: list[str]) -> pa.Table:
    """Groups of random figures, a tenth of which are not known."""
    chance = random.Random(3)

    def some(most: int) -> list[int | None]:
        return [chance.randrange(most) if chance.random() > 0.1 else None for _ in ids]

    columns = {
        "group_id": ids,
        "place": chance.sample(range(1, len(ids) + 1), len(ids)),
        "status": [chance.choice(STATUSES) for _ in ids],
        **{name: some(50) for name in ("lag", "lag_ms", "lost", "time_to_loss_ms", "expires_in_ms")},
        "budget_used_share": [None if one is None else one / 10 for one in some(50)],
    }
    arrays = [pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(len(ids), field.type) for field in GROUP_ROW]
    return pa.Table.from_arrays(arrays, schema=GROUP_ROW).sort_by("group_id")


def parts(groups: pa.Table) -> Read:
    """The table as an index gives it: in parts."""

    def read(columns: list[str] | None) -> list[pa.Table]:
        kept = groups if columns is None else groups.select(columns)
        return [kept.slice(0, 0), *(kept.slice(first, 1_024) for first in range(0, kept.num_rows, 1_024))]

    return read


@pytest.fixture(scope="module")
def many() -> pa.Table:
    return table([f"team-{number % 97}.service-{number:05}" for number in range(MANY)])


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("sort", SORTS)
def test_pages_hold_every_group_once_in_order_and_what_is_not_known_last(*, many: pa.Table, sort: str, descending: bool) -> None:
    few = many.slice(0, 1_050)
    seen, start = [], 0
    while start is not None:
        page = find_groups(parts(few), GroupQuery(sort=sort, descending=descending, start=start))
        seen += page.rows
        assert page.before == (None if start == 0 else start - PAGE)
        start = page.after
    assert len(seen) == len({one["group_id"] for one in seen}) == few.num_rows
    values = [one[SORTS[sort]] for one in seen]
    known = [value for value in values if value is not None]
    assert values == known + [None] * (len(values) - len(known))
    assert known == sorted(known, reverse=descending)
    ties = [(a["group_id"], b["group_id"]) for a, b in pairwise(seen) if a[SORTS[sort]] == b[SORTS[sort]]]
    assert all(first < second for first, second in ties)


def test_the_last_page_of_65_000_groups_is_found(many: pa.Table) -> None:
    page = find_groups(parts(many), GroupQuery(sort="lag", descending=True, start=MANY - 1))
    assert (page.start, page.after, page.found, page.total) == (MANY - PAGE, None, MANY, MANY)
    assert {one["lag"] for one in page.rows} == {None}
    assert find_groups(parts(many), GroupQuery(start=MANY)).rows == []


def test_a_search_and_a_status_narrow_what_is_found(many: pa.Table) -> None:
    page = find_groups(parts(many), GroupQuery(text="SERVICE-0000", status="LOST"))
    ids = [row["group_id"] for row in many.to_pylist() if "service-0000" in row["group_id"] and row["status"] == "LOST"]
    assert sorted(one["group_id"] for one in page.rows) == ids
    assert (page.found, page.total) == (len(ids), MANY)
    assert [status for status, _ in page.statuses] == list(STATUSES)
    assert sum(number for _, number in page.statuses) == MANY


@pytest.mark.parametrize("name", [*HOSTILE_GROUPS, ".*", "%", "a\\b", "\u0130stanbul"])
def test_a_search_is_a_part_of_a_name_and_no_pattern(name: str) -> None:
    groups = table([*HOSTILE_GROUPS, "plain", "a\\b", "100%", "x.*y", "\u0130stanbul"])
    found = {one["group_id"] for one in find_groups(parts(groups), GroupQuery(text=name)).rows}
    assert found == {one for one in groups["group_id"].to_pylist() if name.casefold() in one.casefold()}
    assert found
