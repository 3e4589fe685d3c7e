"""Where all groups of a reading stand, as Arrow columns: the arithmetic of kafka_audit.lag.position for whole tables at once.

A cluster has tens of thousands of groups, and its metrics are asked for every minute. The golden table tests/lag_golden.py runs through
this, too, and tests/unit/test_lag_standings.py compares it with ``lag.rows`` on random readings.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.lag.position import HIDES_ITS_TIME
from kafka_audit.lag.rows import ABANDONED, BEHIND, BEYOND_END, LOST, NO_COMMIT, NOT_ASSESSED, OK, ORPHAN

READ = ("groups", "members", "committed_offsets", "offsets", "topics", "first_unread", "sla_offsets", "errors")
"""The datasets that this room reads of a snapshot."""

PLACE = ("group_id", "topic", "partition")
_MS = 1000
_ZERO = pa.scalar(0, pa.int64())
_LOG = ("topic", "partition")


def standings(tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row for each group partition with a commit, an assignment or an error, by group, topic and partition.

    - group_id, topic string; partition int32; state string, as ``lag.rows`` names it
    - NULL where it is not known or there is none: committed, position, lag (log end less position), lost, behind (log end less commit:
      with lost records, as kafka-consumer-groups and kminion count), least and most (records unread) int64
    - age_s double: the age of the first unread record, 0 where nothing is unread; NULL where it is not known exactly
    - of the first unread record: record_offset, record_ms int64, hidden and ahead boolean (its time is hidden, or lies in the future)

    ``tables``: the datasets ``READ`` by name, each row named once (``collect.contradictions`` sees to that).
    """
    rows = _places(tables).join(_groups(tables), "group_id", join_type="inner")
    rows = rows.join(_topics(tables), "topic").join(_logs(tables), list(_LOG))
    rows = _with_positions(rows)
    rows = rows.join(_records(tables), [*_LOG, "position"])
    rows = _with_abandoned(rows, tables["members"])
    rows = _with_figures(rows)
    columns = (*PLACE, "state", "committed", "position", "lag", "lost", "behind", "least", "most", "age_s")
    return rows.select([*columns, "record_offset", "record_ms", "hidden", "ahead"]).sort_by([(name, "ascending") for name in PLACE])


def unreadable_groups(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The groups whose commits could not be read, in one column group_id: nothing is known of them, whatever rows they have."""
    errors = tables["errors"]
    of_commits = pc.and_(pc.equal(errors["dataset"], "committed_offsets"), pc.is_null(errors["topic"]))
    return distinct(errors.filter(pc.and_(of_commits, pc.is_valid(errors["group_id"]))).select(["group_id"]))


def _places(tables: Mapping[str, pa.Table]) -> pa.Table:
    commits = tables["committed_offsets"].select([*PLACE, "committed", "error"])
    assigned, _ = _members(tables["members"])
    missing = assigned.join(commits.select(list(PLACE)), list(PLACE), join_type="left anti")
    told = commits.append_column("answered", _repeated(True, commits.num_rows))
    return pa.concat_tables([told, missing.append_column("answered", _repeated(False, missing.num_rows))], promote_options="default")


def _members(members: pa.Table) -> tuple[pa.Table, pa.Table]:
    """What members have assigned (group_id, topic, partition), and the topics that they have assigned or subscribe (group_id, topic)."""
    owner = members["group_id"].combine_chunks()
    assignment, subscribed = (members[name].combine_chunks() for name in ("assignment", "subscribed_topics"))
    places = pc.list_flatten(assignment)
    of_places = owner.take(pc.list_parent_indices(assignment))
    assigned = pa.table(
        {"group_id": of_places, "topic": pc.struct_field(places, "topic"), "partition": pc.struct_field(places, "partition")}
    )
    subscriptions = pa.table({"group_id": owner.take(pc.list_parent_indices(subscribed)), "topic": pc.list_flatten(subscribed)})
    return distinct(assigned), distinct(pa.concat_tables([assigned.select(["group_id", "topic"]), subscriptions]))


def _groups(tables: Mapping[str, pa.Table]) -> pa.Table:
    return tables["groups"].select(["group_id", "state"]).rename_columns(["group_id", "group_state"])


def _topics(tables: Mapping[str, pa.Table]) -> pa.Table:
    topics = tables["topics"].select(["topic", "partition_count", "error"]).rename_columns(["topic", "partition_count", "topic_error"])
    return topics.append_column("listed", _repeated(True, topics.num_rows))


def _logs(tables: Mapping[str, pa.Table]) -> pa.Table:
    return tables["offsets"].select([*_LOG, "log_start", "log_end", "last_stable"])


def _with_positions(rows: pa.Table) -> pa.Table:
    """Adds position, lag, lost, beyond and held; NULL where the commit, the log start or the log end is."""
    committed, start, end = rows["committed"], rows["log_start"], rows["log_end"]
    known = pc.and_(pc.and_(pc.is_valid(committed), pc.is_valid(start)), pc.is_valid(end))
    position = _where(known, pc.max_element_wise(committed, start))
    lag = pc.max_element_wise(pc.subtract(end, position), _ZERO, skip_nulls=False)
    lost = _where(known, pc.max_element_wise(pc.subtract(start, committed), _ZERO, skip_nulls=False))
    beyond = _where(known, pc.max_element_wise(pc.subtract(committed, end), _ZERO, skip_nulls=False))
    stable_from = pc.max_element_wise(position, rows["last_stable"])
    held = pc.max_element_wise(pc.subtract(end, stable_from), _ZERO, skip_nulls=False)
    held = pc.if_else(pc.is_valid(rows["last_stable"]), held, _ZERO)
    for name, column in (("position", position), ("lag", lag), ("lost", lost), ("beyond", beyond), ("held", held)):
        rows = rows.append_column(name, column)
    return rows


def _records(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The first unread records by the position before which they were looked for; ``found``: the log could be read."""
    rows = tables["first_unread"]
    read_ms = pc.divide(pc.cast(pc.cast(rows["read_at"], pa.timestamp("us", tz="UTC")), pa.int64()), float(_MS))
    stamp, found = rows["timestamp_ms"], pc.is_null(rows["error"])
    age = pc.divide(pc.subtract(read_ms, pc.cast(stamp, pa.float64())), float(_MS))
    return pa.table(
        {
            "topic": rows["topic"],
            "partition": rows["partition"],
            "position": rows["offset"],
            "found": found,
            "record_offset": _where(found, rows["record_offset"]),
            "record_ms": _where(found, stamp),
            "record_age_s": _where(pc.and_(found, pc.greater_equal(age, 0.0)), age),
            "ahead": pc.and_(found, pc.fill_null(pc.less(age, 0.0), False)),
            "hidden": pc.fill_null(pc.is_in(rows["error"], value_set=pa.array(HIDES_ITS_TIME)), False),
        }
    )


def _with_abandoned(rows: pa.Table, members: pa.Table) -> pa.Table:
    """Adds ``abandoned`` as :func:`kafka_audit.lag.position.is_abandoned` says it: NULL where not all members told what they read."""
    _, reads = _members(members)
    untold = members.append_column("no_places", pc.is_null(members["assignment"]))
    untold = untold.append_column("no_topics", pc.is_null(members["subscribed_topics"]))
    told = untold.group_by("group_id").aggregate([("no_places", "max"), ("no_topics", "max")])
    rows = rows.join(told.rename_columns(["group_id", "no_places", "no_topics"]), "group_id")
    reads_any = distinct(reads.select(["group_id"]))
    rows = rows.join(reads_any.append_column("reads_any", _repeated(True, reads_any.num_rows)), "group_id")
    rows = rows.join(reads.append_column("reads_topic", _repeated(True, reads.num_rows)), ["group_id", "topic"])
    seen = pc.or_(_true(rows["reads_topic"]), pc.invert(_true(pc.equal(rows["group_state"], "Stable"))))
    # Both are NULL in a group of which no member was described.
    untold = pc.fill_null(pc.or_(rows["no_places"], rows["no_topics"]), True)
    answer = pc.if_else(untold, pa.scalar(None, pa.bool_()), _true(rows["reads_any"]))
    return rows.append_column("abandoned", pc.if_else(seen, False, answer))


def _with_figures(rows: pa.Table) -> pa.Table:
    lag, lost = rows["lag"], rows["lost"]
    is_there = _true(rows["listed"])
    unlisted = pc.or_(pc.invert(is_there), pc.fill_null(pc.greater_equal(rows["partition"], rows["partition_count"]), False))
    unread = pc.or_(pc.or_(pc.invert(rows["answered"]), pc.is_valid(rows["error"])), pc.and_(is_there, pc.is_valid(rows["topic_error"])))
    no_log = pc.or_(pc.is_null(rows["log_start"]), pc.is_null(rows["log_end"]))
    only_markers = pc.if_else(_true(rows["found"]), pc.is_null(rows["record_offset"]), pa.scalar(None, pa.bool_()))
    drained = pc.or_(pc.equal(lag, 0), pc.fill_null(only_markers, False))
    beyond = _true(pc.greater(rows["beyond"], 0))
    reads_on = pc.if_else(_true(pc.greater(lost, 0)), LOST, pc.if_else(_true(drained), OK, BEHIND))
    in_log = pc.if_else(_true(rows["abandoned"]), ABANDONED, reads_on)
    perhaps_left = pc.and_(pc.is_null(rows["abandoned"]), pc.not_equal(in_log, OK))
    in_log = pc.if_else(perhaps_left, NOT_ASSESSED, in_log)
    at_end = pc.if_else(_true(rows["abandoned"]), ABANDONED, BEYOND_END)
    state = pc.if_else(pc.is_null(rows["committed"]), NO_COMMIT, pc.if_else(beyond, at_end, in_log))
    state = pc.if_else(unread, NOT_ASSESSED, pc.if_else(unlisted, ORPHAN, pc.if_else(no_log, NOT_ASSESSED, state)))
    judged = pc.and_(pc.is_valid(lag), pc.invert(pc.or_(unread, unlisted)))
    one_unclear = pc.and_(pc.equal(lag, 1), pc.is_null(only_markers))
    least = pc.if_else(drained, _ZERO, pc.if_else(one_unclear, _ZERO, pc.subtract(lag, rows["held"])))
    in_bounds = pc.and_(judged, pc.invert(beyond))
    figures = {
        "state": state,
        "behind": _where(judged, pc.add(lag, lost)),
        "least": _where(in_bounds, least),
        "most": _where(in_bounds, pc.if_else(drained, _ZERO, lag)),
        "age_s": _where(in_bounds, pc.if_else(drained, 0.0, rows["record_age_s"])),
        **{name: _where(judged, rows[name]) for name in ("position", "lag", "lost")},
    }
    for name, column in figures.items():
        rows = rows.append_column(name, column) if name not in rows.column_names else _replaced(rows, name, column)
    return rows


def _replaced(rows: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index(name), name, column)


def _where(mask: pa.ChunkedArray, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, NULL where the mask is not true."""
    return pc.if_else(pc.fill_null(mask, False), column, pa.scalar(None, column.type))


def _true(mask: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(mask, False)


def distinct(rows: pa.Table) -> pa.Table:
    """Each row once."""
    return rows.group_by(rows.column_names).aggregate([])


def _repeated(value: bool, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(value), count)
