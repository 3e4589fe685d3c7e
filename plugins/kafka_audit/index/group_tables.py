"""The tables from which the pages of one group and of one topic are made, each in the order of what it is asked for."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_audit.audit.outcome import INDEX
from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.report import commit_history, lag
from kafka_audit.report.lag_groups import GroupLag
from kafka_audit.report.rows import batches, exists, loses

PARTITIONS = f"{INDEX}/partitions.parquet"
READERS = f"{INDEX}/readers.parquet"
SLAS = f"{INDEX}/slas.parquet"
BEHAVIOUR = f"{INDEX}/behaviour.parquet"

LISTED_OF_ONE = 200
"""The largest number of partitions of one group, and of readers of one topic, that are listed, the worst first."""

ROWS_OF_A_GROUP = 4_096
"""Rows of a row group: a page reads one or two of them."""

_COMMITS = pa.struct(
    [
        *(("as_of", pa.string()), ("hours", pa.float64()), ("commits", pa.int64()), ("unchanged", pa.int64()), ("rewinds", pa.int64())),
        *(("last_rewind_at", pa.string()), ("longest_gap_ms", pa.int64()), ("jumps", pa.int64())),
    ]
)
_TEXTS = {"group_id", "topic", "group_type", "state", "status", "status_reason", "burrow", "time_to_loss_by", "lag_ms_method"}
_BOOLS = {"topic_exists", "has_commit", "compacted", "only_markers_unread", "recreated", "lag_ms_is_bound", "behind_sla"}
_RATES = {"produced_per_s", "consumed_per_s", "expired_per_s"}


def _type(name: str) -> pa.DataType:
    if name == "partition":
        return pa.int32()
    return pa.string() if name in _TEXTS else pa.bool_() if name in _BOOLS else pa.float64() if name in _RATES else pa.int64()


PARTITION_ROW = pa.schema(
    [*((name, _type(name)) for name in lag.COLUMNS), ("behaviour", _COMMITS), ("behaviour_reason", pa.string()), ("place", pa.int32())]
)
"""A partition that a group reads, in the order of ``group_id`` and ``place``: its position in the group, from 1, the worst first.

The columns are those of group_partitions.parquet. Of a group at most LISTED_OF_ONE are listed.
"""

READER_ROW = pa.schema(
    [
        *(("topic", pa.string()), ("place", pa.int32()), ("readers", pa.int32()), ("group_id", pa.string()), ("state", pa.string())),
        *(("status", pa.string()), ("partitions", pa.int64()), ("known", pa.int64()), ("lag", pa.int64()), ("lost", pa.int64())),
        *(("lag_ms", pa.int64()), ("time_to_loss_ms", pa.int64())),
    ]
)
"""A group on one topic, all partitions together, in the order of ``topic`` and ``place``; ``readers`` is how many groups the topic has.

``lag`` and ``lost`` are sums over the partitions of which they are known, NULL if over none; ``known``: the partitions with a known lag.
"""

_SLA_TYPES = {
    **dict.fromkeys(("resource", "group_id", "sla"), pa.string()),
    **dict.fromkeys(("quiet", "target_met"), pa.bool_()),
    **dict.fromkeys(("availability_percent", "target_percent"), pa.float64()),
    **{f"budget_{name}_minutes": pa.float64() for name in ("allowed", "used", "left")},
}
_WHOLE = ("partition_count", "lag_known", "unknown_partitions", "behind_partitions", "breach_samples", "breach_of", "window_days")
SLA_ROW = pa.schema(
    [
        *_SLA_TYPES.items(),
        *((name, pa.int64()) for name in (*_WHOLE, *(f"minutes_{one}" for one in ("in", "out", "not_assessed", "quiet")))),
        *((name, pa.int64()) for name in ("max_lag_records", "max_lag_ms", "max_no_progress_ms")),
    ]
)
"""One SLA of one group, as kafka_audit.report.lag_groups.GroupSla has it, in the order of ``group_id``."""

_TEXTS_OF_BEHAVIOUR = {
    *("group_id", "group_type", "assignor", "auto_commit", "auto_commit_confidence", "auto_commit_reason", "last_rewind", "last_removed"),
    *("removed_reason", "incomplete_until", "lost_until", "held_back_since"),
}
BEHAVIOUR_ROW = pa.schema(
    [
        (name, pa.string() if name in _TEXTS_OF_BEHAVIOUR else pa.bool_() if name == "removed" else pa.int64())
        for name in commit_history.COLUMNS
    ]
)
"""What one group did, as kafka_audit.report.commit_history.GroupBehaviour has it; there is no table without a commit history."""

_RANK = "rank"
_WORST = ((_RANK, "ascending"), ("lost", "descending"), ("lag", "descending"))
_SUMS: list[Any] = [
    ([], "count_all"),
    *((name, "sum") for name in ("lag", "lost")),
    *((name, "count") for name in ("lag", "lost")),
    *((name, "min") for name in (_RANK, "time_to_loss_ms")),
    *((name, "max") for name in ("state", "lag_ms")),
]


def write_group_tables(folder: Path, groups: Sequence[GroupLag], partitions: Iterable[pa.Table], behaviour: Path | None) -> None:
    """Write the tables into ``folder``, from the rows of Partitions and from the audit's group_behaviour.parquet, if it has one.

    No more than a batch of partitions is in memory, and one row for each group on each topic.
    """
    readers: list[pa.Table] = []
    with _writer(folder, PARTITIONS, PARTITION_ROW) as writer:
        for table in _whole_groups(partitions):
            readers.append(_by_topic(table))
            writer.write_table(_listed(table, "group_id").select(PARTITION_ROW.names).cast(PARTITION_ROW), ROWS_OF_A_GROUP)
    with _writer(folder, READERS, READER_ROW) as writer:
        writer.write_table(_of_topics(readers), ROWS_OF_A_GROUP)
    with _writer(folder, SLAS, SLA_ROW) as writer:
        slas = [asdict(sla) for group in groups for sla in group.slas]
        writer.write_table(pa.Table.from_pylist(slas, SLA_ROW).sort_by([("group_id", "ascending"), ("sla", "ascending")]), ROWS_OF_A_GROUP)
    if behaviour is not None and exists(behaviour):
        with _writer(folder, BEHAVIOUR, BEHAVIOUR_ROW) as writer:
            for table in batches(behaviour, BEHAVIOUR_ROW.names):
                writer.write_table(table.cast(BEHAVIOUR_ROW), ROWS_OF_A_GROUP)


def _writer(folder: Path, name: str, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(folder / Path(name).name, schema, compression="zstd")


def _whole_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, which are in the order of ``group_id``, so that no group is in two tables; with the rank of each row's status."""
    kept: pa.Table | None = None
    for table in tables:
        joined = pa.concat_tables([table] if kept is None else [kept, table])
        is_last = pc.equal(joined["group_id"], joined["group_id"][-1])
        kept, whole = joined.filter(is_last), joined.filter(pc.invert(is_last))
        if whole.num_rows:
            yield _ranked(whole)
    if kept is not None:
        yield _ranked(kept)


def _ranked(table: pa.Table) -> pa.Table:
    """With ``rank``, 0 for the worst status, and of what commits show only what is listed."""
    words = pc.fill_null(table["status"], "NOT_ASSESSED")
    ranks = pc.fill_null(pc.index_in(words, value_set=pa.array(STATUSES)), len(STATUSES))
    shown = table["behaviour"].combine_chunks()
    fields = [pc.struct_field(shown, field.name).cast(field.type) for field in _COMMITS]
    commits = pa.StructArray.from_arrays(fields, fields=list(_COMMITS), mask=pc.is_null(shown))
    return table.set_column(table.column_names.index("behaviour"), "behaviour", commits).append_column(_RANK, ranks)


def _listed(table: pa.Table, key: str) -> pa.Table:
    """The first LISTED_OF_ONE rows of each ``key``, the worst first, with ``place``."""
    by_name = [(name, "ascending") for name in ("topic", "partition", "group_id") if name in table.column_names and name != key]
    ordered = table.take(pc.sort_indices(table, sort_keys=[(key, "ascending"), *_WORST, *by_name]))
    counts = [one["counts"] for one in pc.value_counts(ordered[key].combine_chunks()).to_pylist()]
    places = pa.array([place for count in counts for place in range(1, count + 1)], pa.int32())
    return ordered.append_column("place", places).filter(pc.less_equal(places, LISTED_OF_ONE))


def _by_topic(table: pa.Table) -> pa.Table:
    """One row for each group on each topic, with the columns of READER_ROW but for the place; the status is still a rank."""
    foreseen = pc.if_else(loses(table), table["time_to_loss_ms"], pa.scalar(None, pa.int64()))
    table = table.set_column(table.column_names.index("time_to_loss_ms"), "time_to_loss_ms", foreseen)
    added = table.group_by(["topic", "group_id"], use_threads=False).aggregate(_SUMS)
    columns = {
        **{name: added[name] for name in ("topic", "group_id")},
        **{"state": added["state_max"], _RANK: added[f"{_RANK}_min"], "partitions": added["count_all"], "known": added["lag_count"]},
        **{name: pc.if_else(pc.greater(added[f"{name}_count"], 0), added[f"{name}_sum"], None) for name in ("lag", "lost")},
        **{"lag_ms": added["lag_ms_max"], "time_to_loss_ms": added["time_to_loss_ms_min"]},
    }
    return pa.table(columns)


def _of_topics(readers: Sequence[pa.Table]) -> pa.Table:
    if not readers:
        return READER_ROW.empty_table()
    joined = pa.concat_tables(readers)
    words = pa.array([*STATUSES, "NOT_ASSESSED"])
    many = Counter(joined["topic"].to_pylist())
    listed = _listed(joined, "topic")
    listed = listed.append_column("status", pc.take(words, listed[_RANK]))
    counted = pa.array([many[topic] for topic in listed["topic"].to_pylist()], pa.int32())
    return listed.append_column("readers", counted).select(READER_ROW.names).cast(READER_ROW)
