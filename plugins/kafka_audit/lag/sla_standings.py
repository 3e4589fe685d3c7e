"""Whether groups are within the limits of their SLAs, by one reading and for all groups at once: ``lag.rows`` in Arrow columns."""

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.lag.rows import BEHIND, BEYOND_END, LOST, NOT_ASSESSED, OK, SlaOf, is_quiet
from kafka_audit.lag.standings import unreadable_groups
from kafka_audit.policy.slas import LagSla

_READS_ON = pa.array([OK, BEHIND, LOST])
_UNKNOWN = pa.array([NOT_ASSESSED, BEYOND_END])


def within_limits(rows: pa.Table, tables: Mapping[str, pa.Table], sla_of: SlaOf, at: datetime) -> pa.Table:
    """One row for each group and SLA of which it is known: group_id, sla string; has_target, within boolean; by group and SLA.

    ``rows`` as :func:`kafka_audit.lag.standings.standings` makes them of ``tables``. Limits of records and of seconds decide; time without
    progress is nothing that one reading can tell. An SLA is left out in its quiet hours, where a limit is not known to be kept, and where
    the group has nothing to read.
    """
    places, slas = _rules(rows, sla_of)
    holding = [number for number, sla in enumerate(slas) if _judges(sla) and not is_quiet(sla, at)]
    limits = pa.table(
        {
            "rule": pa.array(holding, pa.int32()),
            "sla": pa.array([slas[number].name for number in holding], pa.string()),
            "has_target": pa.array([slas[number].availability is not None for number in holding], pa.bool_()),
            "max_records": pa.array([slas[number].max_lag_records for number in holding], pa.int64()),
            "max_lag_seconds": pa.array([slas[number].max_lag_seconds for number in holding], pa.int32()),
        }
    )
    known = rows.join(unreadable_groups(tables), "group_id", join_type="left anti")
    covered = known.join(places, ["group_id", "topic"], join_type="inner").join(limits, "rule", join_type="inner")
    covered = _with_seconds(covered, tables["sla_offsets"])
    return (
        _by_group(covered)
        .join(limits, "rule", join_type="inner")
        .select(["group_id", "sla", "has_target", "within"])
        .sort_by([("group_id", "ascending"), ("sla", "ascending")])
    )


def _rules(rows: pa.Table, sla_of: SlaOf) -> tuple[pa.Table, list[LagSla]]:
    """The number of the rule that holds for each group and topic, and the rules by that number."""
    pairs = rows.select(["group_id", "topic"]).group_by(["group_id", "topic"]).aggregate([])
    slas: dict[int, tuple[int, LagSla]] = {}
    numbers: list[int | None] = []
    for group, topic in zip(pairs["group_id"].to_pylist(), pairs["topic"].to_pylist(), strict=True):
        sla = sla_of(group, topic)
        numbers.append(None if sla is None else slas.setdefault(id(sla), (len(slas), sla))[0])
    return pairs.append_column("rule", pa.array(numbers, pa.int32())), [sla for _, sla in slas.values()]


def _judges(sla: LagSla) -> bool:
    """Whether one reading can tell whether the SLA is kept."""
    return sla.max_lag_records is not None or sla.max_lag_seconds is not None


def _with_seconds(rows: pa.Table, sla_offsets: pa.Table) -> pa.Table:
    """Adds ``in_time``: whether no unread record of the partition is older than the limit; NULL where that is not known."""
    asked = sla_offsets.filter(pc.is_null(sla_offsets["error"])).select(["topic", "partition", "max_lag_seconds", "timestamp_ms", "offset"])
    asked = asked.rename_columns(["topic", "partition", "max_lag_seconds", "limit_ms", "limit_offset"])
    asked = asked.append_column("asked", pa.repeat(pa.scalar(True), asked.num_rows))
    rows = rows.join(asked, ["topic", "partition", "max_lag_seconds"])
    old = pc.and_(pc.greater_equal(rows["record_ms"], 0), pc.less(rows["record_ms"], rows["limit_ms"]))
    first = pc.coalesce(rows["record_offset"], rows["position"])
    older, unknown = pc.subtract(rows["limit_offset"], first), pa.scalar(None, pa.bool_())
    # A single older offset that was not read may be the end of a transaction.
    single = pc.and_(pc.equal(older, 1), pc.is_null(rows["record_offset"]))
    is_over = pc.if_else(pc.fill_null(old, False), True, pc.if_else(pc.fill_null(single, False), unknown, pc.greater(older, 0)))
    unclear = pc.or_(pc.fill_null(rows["hidden"], False), pc.fill_null(rows["ahead"], False))
    by_offset = pc.if_else(is_over, False, pc.if_else(unclear, unknown, True))
    by_age = pc.less_equal(rows["age_s"], pc.cast(rows["max_lag_seconds"], pa.float64()))
    kept = pc.if_else(pc.fill_null(rows["asked"], False), by_offset, by_age)
    # Neither one offset that may be the end of a transaction is late, nor what a read_committed group may not read yet.
    kept = pc.if_else(pc.and_(pc.fill_null(pc.invert(kept), False), pc.equal(rows["least"], 0)), unknown, kept)
    kept = pc.if_else(pc.fill_null(pc.equal(rows["most"], 0), False), True, kept)
    return rows.append_column("in_time", pc.if_else(pc.is_null(rows["max_lag_seconds"]), True, kept))


def _by_group(rows: pa.Table) -> pa.Table:
    """group_id, rule, within: of each group and rule of which it is known."""
    reads_on = pc.is_in(rows["state"], value_set=_READS_ON)
    none = pa.scalar(None, pa.int64())
    for name, column in (
        ("reads_on", reads_on),
        ("not_known", pc.is_in(rows["state"], value_set=_UNKNOWN)),
        ("late", pc.and_(reads_on, pc.fill_null(pc.invert(rows["in_time"]), False))),
        ("perhaps_late", pc.and_(reads_on, pc.is_null(rows["in_time"]))),
        ("least_unread", pc.if_else(reads_on, rows["least"], none)),
        ("most_unread", pc.if_else(reads_on, rows["most"], none)),
    ):
        rows = rows.append_column(name, column)
    flags = ("reads_on", "not_known", "late", "perhaps_late")
    sums = ("least_unread", "most_unread")
    found = rows.group_by(["group_id", "rule"]).aggregate(
        [*((name, "max") for name in flags), *((name, "sum") for name in sums), ("max_records", "max")]
    )
    found = found.rename_columns(["group_id", "rule", *flags, *sums, "max_records"])
    many = pc.fill_null(pc.greater(found["least_unread"], found["max_records"]), False)
    few = pc.or_(pc.is_null(found["max_records"]), pc.fill_null(pc.less_equal(found["most_unread"], found["max_records"]), False))
    kept = pc.and_(few, pc.invert(pc.or_(found["not_known"], found["perhaps_late"])))
    broken = pc.or_(many, found["late"])
    within = pc.if_else(broken, False, pc.if_else(kept, True, pa.scalar(None, pa.bool_())))
    found = found.append_column("within", pc.if_else(found["reads_on"], within, pa.scalar(None, pa.bool_())))
    return found.filter(pc.is_valid(found["within"])).select(["group_id", "rule", "within"])
