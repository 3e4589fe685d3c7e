"""Finds rows of evidence that contradict each other, themselves or the time of their snapshot, and takes back what they say.

A value that is contradicted is no evidence: it becomes null, and an error row says why. Whatever else the snapshot tells stays.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.collect.clocks import CLOCKS_APART_MS
from kafka_audit.collect.datasets import DATASETS, ERRORS, Dataset

CONTRADICTION = "CONTRADICTION"
_API = "comparison of answers"
_ROUNDING = timedelta(seconds=1)  # of the manifest's times
_ITEM = ("broker_id", "topic", "partition", "group_id")
_ALSO = {"groups": ("members", "committed_offsets")}
"""Two answers about a group come from two coordinators: then it is not known whose members and commits were read, either."""
_IN_FUTURE = {"transactions": ("start_time_ms", "state"), "producers": ("last_timestamp_ms", "current_txn_start_offset")}
"""Times of open transactions, by which it is judged how long they have been open; and what tells that one is."""
_IS_OPEN: Mapping[str, Callable[[pa.ChunkedArray], pa.Array]] = {
    "transactions": pc.is_valid,
    "producers": lambda start: pc.greater_equal(start, 0),
}
_WIDEST = 500  # of a message

_PLACEMENT = ("leader", "replicas", "isr", "offline_replicas", "eligible_leader_replicas", "last_known_elr")
_ENDS = ("log_start", "log_end", "last_stable")
_LOG = (*_ENDS, "max_timestamp_offset", "headroom_offset")
_BY_CLOCK: Mapping[str, tuple[str, ...]] = {
    "offsets": ("max_timestamp_ms", "headroom_timestamp_ms", "headroom_offset"),
    "sla_offsets": ("offset",),
    "first_unread": ("timestamp_ms",),
    "producers": ("last_timestamp_ms",),
    "transactions": ("start_time_ms",),
}
"""What compares the auditor's clock with that of brokers or of records."""


@dataclass(frozen=True, kw_only=True)
class _Test:
    """``found``: which rows contradict themselves, as a mask, by the columns ``reads``; ``says`` why, of one such row.

    ``columns``: what is taken back.
    """

    reads: tuple[str, ...]
    found: Callable[[pa.Table], pa.Array]
    says: Callable[[Mapping[str, Any]], str]
    columns: tuple[str, ...]


def _outside(part: str, whole: str) -> Callable[[pa.Table], pa.Array]:
    """Rows in which a list of broker ids has one that another list does not have; never where one of the lists is null."""
    return lambda rows: _strange(rows, *_members_of(rows, part), whole)


def _leader_outside(rows: pa.Table) -> pa.Array:
    """Rows with a leader (-1 is none) that is not among the replicas."""
    leads = pc.fill_null(pc.greater_equal(rows["leader"], 0), False)
    row = _numbers(rows).filter(leads)
    return _strange(rows, row, _of_row(row, rows["leader"].filter(leads)), "replicas")


def _strange(rows: pa.Table, row: pa.Array, member: pa.Array, whole: str) -> pa.Array:
    """Rows with a member (its row, and its number of :func:`_of_row`) that the list ``whole`` of the same row does not have."""
    strange = pc.unique(row.filter(pc.invert(pc.is_in(member, value_set=_members_of(rows, whole)[1]))))
    return pc.and_(pc.is_in(_numbers(rows), value_set=strange), pc.is_valid(rows[whole]))


def _members_of(rows: pa.Table, column: str) -> tuple[pa.Array, pa.Array]:
    """For each member of the lists of a column the number of its row, and a number for row and member together."""
    lists = rows[column].combine_chunks()
    row = pc.cast(pc.list_parent_indices(lists), pa.int64())
    return row, _of_row(row, pc.list_flatten(lists))


def _of_row(row: pa.Array, broker: pa.Array) -> pa.Array:
    """A number for row and broker together, so that members of different rows are never equal."""
    return pc.add(pc.multiply(row, 1 << 32), pc.cast(broker, pa.int64()))


def _numbers(rows: pa.Table) -> pa.Array:
    return pa.array(range(rows.num_rows), pa.int64())


def _any(*tests: Callable[[pa.Table], pa.Array]) -> Callable[[pa.Table], pa.Array]:
    def found(rows: pa.Table) -> pa.Array:
        mask = pa.array([False] * rows.num_rows)
        for test in tests:
            mask = pc.or_(mask, pc.fill_null(test(rows), False))
        return mask

    return found


def _below(column: str, least: int) -> Callable[[pa.Table], pa.Array]:
    return lambda rows: pc.less(rows[column], least)


def _above(column: str, other: str) -> Callable[[pa.Table], pa.Array]:
    return lambda rows: pc.greater(rows[column], rows[other])


def _negative(column: str, least: int = 0) -> _Test:
    return _Test(reads=(column,), found=_below(column, least), says=lambda row: f"{column} is {row[column]}", columns=(column,))


_TESTS: Mapping[str, tuple[_Test, ...]] = {
    "partitions": (
        _Test(
            reads=("leader", "replicas"),
            found=_leader_outside,
            says=lambda row: f"the leader, broker {row['leader']}, is not among the replicas {row['replicas']}",
            columns=_PLACEMENT,
        ),
        _Test(
            reads=("isr", "replicas"),
            found=_outside("isr", "replicas"),
            says=lambda row: f"the in-sync replicas {row['isr']} are not all among the replicas {row['replicas']}",
            columns=_PLACEMENT,
        ),
    ),
    "offsets": (
        _Test(
            reads=_ENDS,
            found=_any(_below("log_start", 0), _below("log_end", 0), _below("last_stable", 0)),
            says=lambda row: f"an offset is negative: {_log(row)}",
            columns=_LOG,
        ),
        _Test(
            reads=_ENDS,
            found=_any(_above("log_start", "log_end"), _above("last_stable", "log_end")),
            says=lambda row: f"the log ends before it starts, or before its last stable offset: {_log(row)}",
            columns=_LOG,
        ),
    ),
    # -1 is Kafka's word for no commit.
    "committed_offsets": (_negative("committed", -1),),
    "sla_offsets": (_negative("offset"),),
    "first_unread": (
        _Test(
            reads=("offset", "record_offset"),
            found=_above("offset", "record_offset"),
            says=lambda row: f"the first record from offset {row['offset']} on is said to be at {row['record_offset']}",
            columns=("record_offset", "timestamp_ms"),
        ),
    ),
    "log_dirs": (
        _Test(
            reads=("usable_bytes", "total_bytes"),
            found=_above("usable_bytes", "total_bytes"),
            says=lambda row: f"{row['usable_bytes']} of {row['total_bytes']} bytes are said to be usable",
            columns=("total_bytes", "usable_bytes"),
        ),
    ),
}


def _log(row: Mapping[str, Any]) -> str:
    return f"log start {row['log_start']}, last stable offset {row['last_stable']}, log end {row['log_end']}"


def consistent(name: str, rows: pa.Table, window: tuple[datetime, datetime] | None) -> tuple[pa.Table, list[dict[str, Any]]]:
    """A dataset without what is contradicted, and error rows that say what that was; the same table where nothing is.

    ``window``: when the snapshot began and ended, as aware times; what was read at another time is no evidence of it.
    """
    dataset = DATASETS[name]
    errors: list[dict[str, Any]] = []
    if not rows.num_rows:
        return rows, errors
    if dataset.key:
        rows = _one_answer_each(dataset, rows, errors)
    for test in (*_TESTS.get(name, ()), *(_tests_of_time(dataset, window) if window is not None else ())):
        if set(test.reads) <= set(rows.column_names):
            rows = _taken_back(dataset, rows, test, errors)
    return rows, errors


def looked_at(name: str) -> list[str]:
    """The columns of a dataset that tell whether something is contradicted."""
    dataset = DATASETS[name]
    timed = {*_IN_FUTURE.get(name, ()), "read_at"}
    read = {column for test in _TESTS.get(name, ()) for column in test.reads}
    return [column for column in dataset.schema.names if column in {*dataset.key, *read, *timed}]


def _tests_of_time(dataset: Dataset, window: tuple[datetime, datetime]) -> Iterator[_Test]:
    if "read_at" in dataset.schema.names:
        yield _read_outside(dataset, window)
    if dataset.name in _IN_FUTURE:
        time, opened = _IN_FUTURE[dataset.name]
        latest = round(window[1].timestamp() * 1000) + CLOCKS_APART_MS
        yield _Test(
            reads=(time, opened),
            found=lambda rows: pc.and_(pc.greater(rows[time], latest), _IS_OPEN[dataset.name](rows[opened])),
            says=lambda row: f"{time} lies {(row[time] - latest + CLOCKS_APART_MS) / 1000:,.0f} s after the snapshot's end",
            columns=(time,),
        )


def _read_outside(dataset: Dataset, window: tuple[datetime, datetime]) -> _Test:
    first, last = (moment + shift for moment, shift in zip(window, (-_ROUNDING, _ROUNDING), strict=True))
    kind = dataset.schema.field("read_at").type

    def found(rows: pa.Table) -> pa.Array:
        return pc.or_(pc.less(rows["read_at"], pa.scalar(first, kind)), pc.greater(rows["read_at"], pa.scalar(last, kind)))

    return _Test(
        reads=("read_at",),
        found=found,
        says=lambda row: f"it was read at {row['read_at'].isoformat()}, and the snapshot was taken from {first} to {last}",
        columns=tuple(name for name in dataset.schema.names if name not in (*dataset.key, "read_at", "error")),
    )


def _taken_back(dataset: Dataset, rows: pa.Table, test: _Test, errors: list[dict[str, Any]]) -> pa.Table:
    mask = pc.fill_null(test.found(rows), False)
    if not pc.any(mask).as_py():
        return rows
    for row in rows.filter(mask).to_pylist():
        errors += _errors_about(dataset, row, test.says(row))
    for column in test.columns:
        if column in rows.column_names:
            rows = _replaced(rows, column, mask, None)
    return _replaced(rows, "error", mask, CONTRADICTION) if "error" in rows.column_names else rows


def _replaced(rows: pa.Table, column: str, mask: pa.Array, value: str | None) -> pa.Table:
    field = rows.schema.field(column)
    return rows.set_column(rows.schema.get_field_index(column), field, pc.if_else(mask, pa.scalar(value, field.type), rows[column]))


def _one_answer_each(dataset: Dataset, rows: pa.Table, errors: list[dict[str, Any]]) -> pa.Table:
    """One row for each key, in the order of the first answers. Where answers differ, what differs is null."""
    keys = [name for name in dataset.key if name in rows.column_names]
    if rows.select(keys).group_by(keys).aggregate([]).num_rows == rows.num_rows:
        return rows
    numbers = _numbers(rows)
    places = rows.select(keys).append_column("row", numbers).group_by(keys, use_threads=False).aggregate([("row", "list")])["row_list"]
    several = places.filter(pc.greater(pc.list_value_length(places), 1)).combine_chunks()  # rows that share a key
    told = iter(rows.take(pc.list_flatten(several)).to_pylist())  # only what was answered more than once becomes Python's
    kept = []
    for length in pc.list_value_length(several).to_pylist():
        same = [next(told) for _ in range(length)]
        first = same[0]
        differing = [name for name in rows.column_names if name != "read_at" and any(one[name] != first[name] for one in same)]
        if differing:
            about = "; ".join(f"{name}: {' or '.join(dict.fromkeys(str(one[name]) for one in same))}" for name in differing)
            errors += _errors_about(dataset, first, f"{len(same)} answers about the same differ in {about}")
            first |= dict.fromkeys(differing) | ({"error": CONTRADICTION} if "error" in first else {})
        kept.append(first)
    once = pc.invert(pc.is_in(numbers, value_set=pc.list_flatten(several)))
    order = pc.sort_indices(pa.concat_arrays([numbers.filter(once), pc.list_element(several, 0)]))
    return pa.concat_tables([rows.filter(once), pa.Table.from_pylist(kept, schema=rows.schema)]).take(order).combine_chunks()


def _errors_about(dataset: Dataset, row: Mapping[str, Any], message: str) -> list[dict[str, Any]]:
    item = {name: row[name] for name in _ITEM if name in dataset.key}
    others = [f"{name} {row[name]}" for name in dataset.key if name not in _ITEM]
    text = ": ".join([*([", ".join(others)] if others else []), message])
    return [_error(name, text, **item) for name in (dataset.name, *_ALSO.get(dataset.name, ()))]


def _error(dataset: str, message: str, **item: object) -> dict[str, Any]:
    return {
        **dict.fromkeys(ERRORS.schema.names),
        "dataset": dataset,
        "api": _API,
        "error": CONTRADICTION,
        "message": message[:_WIDEST],
        **item,
    }


def by_one_clock(name: str, rows: pa.Table, skew_ms: int) -> tuple[pa.Table, list[dict[str, Any]]]:
    """A dataset without the times that two clocks, so far apart, would have to be compared for; the same table where it has none."""
    columns = [column for column in _BY_CLOCK.get(name, ()) if column in rows.column_names]
    if not columns or not rows.num_rows:
        return rows, []
    for column in columns:
        rows = rows.set_column(rows.schema.get_field_index(column), rows.schema.field(column), pa.nulls(rows.num_rows, rows[column].type))
    text = f"the auditor's clock and the cluster's are {abs(skew_ms) / 1000:,.0f} s apart (AUD-01), so times cannot be compared"
    concerned = [f"{name}.{column}" for column in columns] if name in ("offsets", "first_unread") else [name]
    return rows, [_error(one, text) for one in concerned]
