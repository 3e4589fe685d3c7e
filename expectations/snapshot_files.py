"""Reads a snapshot's Parquet files column by column, checks their columns, and holds them against each other.

Does every name lead somewhere, is every gap explained by an error row?
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from expectations.suites import Value
from kafka_audit.collect.datasets import DATASETS, is_known
from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import Snapshot


@dataclass(kw_only=True)
class SnapshotFiles:
    """One snapshot's files; ``read`` gives a table only when its columns are what the contract says."""

    snapshot: Snapshot
    _schemas: dict[str, pa.Schema | None] = field(default_factory=dict)

    def schema(self, dataset: str) -> pa.Schema | None:
        """The file's schema; None when there is no file."""
        if dataset not in self._schemas:
            path = self.snapshot.dataset(dataset)
            try:
                self._schemas[dataset] = pq.read_schema(path) if path.is_file() else None
            except (pa.ArrowException, OSError) as problem:
                raise self._unreadable(dataset, problem) from problem
        return self._schemas[dataset]

    def read(self, dataset: str, columns: Sequence[str]) -> pa.Table | None:
        """The named columns; None when the file is missing or one of the columns is not there with its expected type."""
        found = self.schema(dataset)
        if found is None:
            return None
        expected = pa.schema([DATASETS[dataset].schema.field(name) for name in columns])
        if schema_problem(found, expected) != "ok":
            return None
        try:
            return pq.read_table(self.snapshot.dataset(dataset), columns=list(columns))
        except (pa.ArrowException, OSError) as problem:
            raise self._unreadable(dataset, problem) from problem

    def rows(self, dataset: str) -> int | None:
        """Number of rows; None when there is no file."""
        if self.schema(dataset) is None:
            return None
        return int(pq.read_metadata(self.snapshot.dataset(dataset)).num_rows)

    def _unreadable(self, dataset: str, problem: Exception) -> IntegrityError:
        path = self.snapshot.dataset(dataset)
        return IntegrityError(f"{path} is not readable Parquet ({problem}): restore it from a copy or take a new snapshot")


def schema_problem(found: pa.Schema, expected: pa.Schema) -> str:
    """``ok``, or every expected column that is missing or of another type. Further columns are allowed."""
    problems: list[str] = []
    for column in expected:
        if column.name not in found.names:
            problems.append(f"column {column.name} is missing")
        elif found.field(column.name).type != column.type:
            problems.append(f"column {column.name} is {found.field(column.name).type} where {column.type} is expected")
    return "; ".join(problems) or "ok"


def _absent(left: pa.Table | None, right: pa.Table | None, keys: Sequence[str]) -> pa.Table | None:
    """Rows of ``left`` whose key is not in ``right``."""
    if left is None or right is None:
        return None
    return left.join(right.select(list(keys)).group_by(list(keys)).aggregate([]), keys=list(keys), join_type="left anti")


def _count(table: pa.Table | None) -> int | None:
    return None if table is None else int(table.num_rows)


def populations(files: SnapshotFiles) -> dict[str, Value]:
    """Columns of table ``snapshot`` that hold datasets against each other: what one names, the other must hold."""
    topics = files.read("topics", ["topic", "partition_count", "error"])
    partitions = files.read("partitions", ["topic"])
    groups = files.read("groups", ["group_id"])
    errors = files.read("errors", ["dataset", "error"])
    return {
        "partitions_without_topic": _count(_absent(partitions, topics, ["topic"])),
        "topics_with_partitions_missing": _short_topics(topics, partitions),
        "commits_without_group": _count(_absent(files.read("committed_offsets", ["group_id"]), groups, ["group_id"])),
        "members_without_group": _count(_absent(files.read("members", ["group_id"]), groups, ["group_id"])),
        "errors_of_unknown_dataset": None if errors is None else sum(not is_known(name) for name in errors["dataset"].to_pylist()),
        "hidden_topics": None if errors is None else errors["error"].to_pylist().count("TOPIC_HIDDEN"),
    }


def _short_topics(topics: pa.Table | None, partitions: pa.Table | None) -> int | None:
    """Topics, read without error, that have another number of partitions in dataset ``partitions`` than they say."""
    if topics is None or partitions is None:
        return None
    counts: dict[str, int] = {item["values"]: item["counts"] for item in pc.value_counts(partitions["topic"]).to_pylist()}
    whole = [row for row in topics.to_pylist() if row["error"] is None and row["partition_count"] is not None]
    return len([row for row in whole if row["partition_count"] != counts.get(row["topic"], 0)])


def evidence_gaps(files: SnapshotFiles) -> dict[str, Value]:
    """Columns of table ``snapshot`` that count things without evidence and without an error row saying why."""
    partitions = _without_error(files.read("partitions", ["topic", "partition", "leader", "error"]))
    topics = _without_error(files.read("topics", ["topic", "error"]))
    brokers = files.read("brokers", ["broker_id", "alive"])
    alive = None if brokers is None else brokers.filter(pc.fill_null(brokers["alive"], False))
    offsets = _absent(partitions, files.read("offsets", ["topic", "partition"]), ["topic", "partition"])
    topic_configs = _absent(topics, files.read("topic_configs", ["topic"]), ["topic"])
    broker_configs = _absent(alive, files.read("broker_configs", ["broker_id"]), ["broker_id"])
    return {
        "partitions_without_offsets": _unexplained(offsets, _explained_by(files, "offsets")),
        "topics_without_configs": _unexplained(topic_configs, _explained_by(files, "topic_configs")),
        "brokers_without_configs": _unexplained(broker_configs, _explained_by(files, "broker_configs")),
    }


def _without_error(table: pa.Table | None) -> pa.Table | None:
    return None if table is None else table.filter(pc.is_null(table["error"]))


def _explained_by(files: SnapshotFiles, dataset: str) -> Callable[[dict[str, Value]], bool] | None:
    """Whether an error row of ``dataset`` names the thing: itself, its whole topic, its broker, or everything."""
    table = files.read("errors", ["dataset", "broker_id", "topic", "partition", "group_id"])
    if table is None:
        return None
    rows = table.filter(pc.equal(table["dataset"], dataset)).to_pylist()
    items = {(row["topic"], row["partition"]) for row in rows if row["topic"] is not None}
    brokers = {row["broker_id"] for row in rows if row["topic"] is None and row["broker_id"] is not None}
    everything = any(all(row[name] is None for name in ("broker_id", "topic", "partition", "group_id")) for row in rows)

    def explained(gap: dict[str, Value]) -> bool:
        broker = gap.get("broker_id", gap.get("leader"))
        topic = gap.get("topic")
        return everything or (topic, gap.get("partition")) in items or (topic, None) in items or broker in brokers

    return explained


def _unexplained(gaps: pa.Table | None, explained: Callable[[dict[str, Value]], bool] | None) -> int | None:
    if gaps is None or explained is None:
        return None
    return sum(not explained(gap) for gap in gaps.to_pylist())
