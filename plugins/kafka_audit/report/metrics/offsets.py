"""The figures of groups from a cluster's newest snapshot with offsets, bounded: the worst groups first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.lag.rows import NO_COMMIT, SlaOf
from kafka_audit.lag.sla_standings import within_limits
from kafka_audit.lag.standings import distinct, standings, unreadable_groups
from kafka_audit.report.metrics.newest import consistent_tables
from kafka_audit.store.layout import Snapshot

_WORST = (("lost", "descending"), ("time_to_loss_ms", "ascending"), ("behind", "descending"))
_NAMED = (("group_id", "ascending"), ("topic", "ascending"))


@dataclass(frozen=True, kw_only=True)
class OffsetsFigures:
    """One snapshot of ``taken_ms``, made up if it is a ``sample``; NULL is not known. Tables hold what is shown, in the order of names.

    - ``groups``: group_id string; partitions, unknown, known, lag, lost, members int64; age_s double; coordinator_id int32; state,
      protocol, protocol_type string; time_to_loss_ms, expires_in_ms int64 as the newest audit has them
    - ``topics``: group_id, topic string; behind, committed int64
    - ``slas``: group_id, sla string; has_target, within boolean, of all groups
    """

    taken_ms: int
    sample: bool
    group_count: int
    groups_left_out: int
    topics_left_out: int
    groups: pa.Table
    topics: pa.Table
    slas: pa.Table


def read_offsets(snapshot: Snapshot, of_audit: pa.Table, sla_of: SlaOf | None, limit: int) -> OffsetsFigures:
    """The figures of a snapshot; at most ``limit`` pairs of a group and a topic, and at most as many groups, are shown.

    ``of_audit``: ``AuditFigures.groups``. Without ``sla_of`` nothing is said of SLAs. IntegrityError if a dataset cannot be read.
    """
    tables = consistent_tables(snapshot)
    rows = standings(tables)
    groups = _groups(rows, tables).join(of_audit, "group_id")
    topics = _topics(rows)
    ranked = topics.join(groups.select(["group_id", "time_to_loss_ms"]), "group_id").sort_by([*_WORST, *_NAMED])
    shown = ranked.slice(0, limit)
    with_topics = distinct(shown.select(["group_id"]))
    without = groups.join(distinct(topics.select(["group_id"])), "group_id", join_type="left anti").sort_by("group_id")
    kept = pa.concat_tables([with_topics, without.slice(0, max(0, limit - shown.num_rows)).select(["group_id"])])
    at = datetime.fromtimestamp(snapshot.taken_ms / 1000, timezone.utc)
    return OffsetsFigures(
        taken_ms=snapshot.taken_ms,
        sample=snapshot.manifest.get("sample") is True,
        group_count=groups.num_rows,
        groups_left_out=groups.num_rows - kept.num_rows,
        topics_left_out=topics.num_rows - shown.num_rows,
        groups=groups.join(kept, "group_id", join_type="inner").sort_by("group_id"),
        topics=shown.select(["group_id", "topic", "behind", "committed"]).sort_by(list(_NAMED)),
        slas=within_limits(rows, tables, sla_of, at) if sla_of is not None else _NO_SLAS.empty_table(),
    )


_NO_SLAS = pa.schema([("group_id", pa.string()), ("sla", pa.string()), ("has_target", pa.bool_()), ("within", pa.bool_())])


def _groups(rows: pa.Table, tables: Mapping[str, pa.Table]) -> pa.Table:
    """One row for each group of the snapshot; sums of a group without a known partition, or whose commits were refused, are NULL."""
    has_lag = pc.is_valid(rows["lag"])
    unknown = pc.and_not(pc.is_null(rows["lag"]), pc.equal(rows["state"], NO_COMMIT))
    no_age = pc.or_(unknown, pc.and_(pc.is_null(rows["age_s"]), pc.fill_null(pc.greater(rows["lag"], 0), False)))
    for name, flag in (("known", has_lag), ("unknown", unknown), ("no_age", no_age)):
        rows = rows.append_column(name, pc.cast(flag, pa.int64()))
    sums = rows.group_by("group_id").aggregate(
        [([], "count_all"), *((name, "sum") for name in ("known", "unknown", "no_age", "lag", "lost")), ("age_s", "max")]
    )
    sums = sums.rename_columns(["group_id", "partitions", "known", "unknown", "no_age", "lag", "lost", "age_s"])
    # Of a group whose largest known age is 0, and of which one is not known, nothing is known; nor that nothing was lost.
    sums = _without(sums, "age_s", pc.and_(pc.greater(sums["no_age"], 0), pc.equal(sums["age_s"], 0.0)))
    unsure = pc.or_(pc.greater(sums["unknown"], 0), pc.equal(sums["known"], 0))
    sums = _without(sums, "lost", pc.and_(unsure, pc.equal(sums["lost"], 0)))
    groups = _described(tables["groups"], tables["members"]).join(sums, "group_id")
    refused = unreadable_groups(tables)
    groups = groups.join(refused.append_column("refused", pa.repeat(pa.scalar(True), refused.num_rows)), "group_id")
    return _without(groups, "unknown", pc.is_valid(groups["refused"])).drop_columns(["refused", "no_age"])


def _described(groups: pa.Table, members: pa.Table) -> pa.Table:
    counted = members.group_by("group_id").aggregate([([], "count_all")]).rename_columns(["group_id", "members"])
    found = groups.select(["group_id", "state", "assignor", "protocol_type", "coordinator_id", "error"])
    found = found.rename_columns(["group_id", "state", "protocol", "protocol_type", "coordinator_id", "error"]).join(counted, "group_id")
    count = pc.if_else(pc.is_null(found["error"]), pc.fill_null(found["members"], 0), pa.scalar(None, pa.int64()))
    return found.set_column(found.schema.get_field_index("members"), "members", count).drop_columns(["error"])


def _topics(rows: pa.Table) -> pa.Table:
    """group_id, topic; lost, behind, committed: sums over the partitions where they are known. Topics without one are left out."""
    known = rows.filter(pc.is_valid(rows["behind"]))
    sums = known.group_by(["group_id", "topic"]).aggregate([("lost", "sum"), ("behind", "sum"), ("committed", "sum")])
    return sums.rename_columns(["group_id", "topic", "lost", "behind", "committed"])


def _without(rows: pa.Table, name: str, mask: pa.ChunkedArray) -> pa.Table:
    """The column becomes NULL where the mask is true."""
    column = pc.if_else(pc.fill_null(mask, False), pa.scalar(None, rows[name].type), rows[name])
    return rows.set_column(rows.schema.get_field_index(name), name, column)
