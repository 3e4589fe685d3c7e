"""Reads one part of a snapshot, and joins the parts: the snapshot is the same as if one process had read it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import TypeAdapter

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.routing import TopicPartition
from kafka_audit.collect.clocks import clocks_apart_ms
from kafka_audit.collect.collection import SECOND_LOOK_SECONDS, Collection
from kafka_audit.collect.contradictions import by_one_clock
from kafka_audit.collect.datasets import COMMITTED_OFFSETS, DATASETS, ERRORS, GROUPS, TRANSACTIONS, Dataset
from kafka_audit.collect.facts import Facts, joined_facts
from kafka_audit.collect.groups import KnownCommits
from kafka_audit.collect.offsets import LagSlas
from kafka_audit.collect.part import Part, parts_of
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import DEADLINE_SECONDS, about_snapshot
from kafka_audit.collect.tables import ErrorLog, table
from kafka_audit.errors import AuditError, CollectionError, IntegrityError
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.parts import SnapshotPart, part_writer, parts_folder, read_already, remove_parts
from kafka_audit.store.sealed import SNAPSHOT, SnapshotWriter
from kafka_audit.times import parse_time

_FACTS: TypeAdapter[Facts] = TypeAdapter(Facts)


def read_part(
    part: Part,
    *,
    settings: ConnectionSettings,
    root: EvidenceRoot,
    cluster: str,
    snapshot_id: str,
    scope: Scope,
    policy: LagSlas | None = None,
    now: Callable[[], datetime],
    progress: Callable[[str], None] = lambda _: None,
    second_look_seconds: float = SECOND_LOOK_SECONDS,
) -> None:
    """Read ``part`` into a folder of its own; nothing is read when it, or the whole snapshot, is there already.

    A part of the topics needs all parts of the groups. CollectionError when one is missing, the cluster cannot be read at all, or the disk
    refuses the files.
    """
    folder = parts_folder(root, cluster, snapshot_id)
    if root.find_snapshot(cluster, snapshot_id) is not None or read_already(folder, [part.name]):
        progress(f"{part.name} of snapshot {snapshot_id} was read already; nothing was read")
        return
    before = [] if part.groups else _opened(folder, snapshot_id, [one for one in parts_of(part.count) if one.groups])
    started_at = now()
    with (
        Cluster(settings, deadline_seconds=DEADLINE_SECONDS[SNAPSHOT]) as connected,
        part_writer(root, cluster, snapshot_id, part.name) as writer,
    ):
        collection = Collection(
            cluster=connected,
            light=False,
            scope=scope,
            policy=policy,
            now=now,
            second_look_seconds=second_look_seconds,
            part=part,
            known=_commits_on(before, part),
        )
        for dataset, read in collection.datasets():
            rows = _by_one_clock(collection, dataset, read)
            writer.write(dataset, rows)
            progress(f"{part.name}: {dataset}: {rows.num_rows} rows")
        writer.seal({"started_at": started_at.isoformat(), "facts": _FACTS.dump_python(collection.facts, mode="json")})


def _by_one_clock(collection: Collection, dataset: str, rows: pa.Table) -> pa.Table:
    """The rows without times that cannot be compared; ``quorum`` tells so of the machine of one part only."""
    skew_ms = None if collection.quorum is None else clocks_apart_ms(collection.quorum)
    if skew_ms is None:
        return rows
    left, errors = by_one_clock(dataset, rows, skew_ms)
    collection.errors.add_rows(pa.Table.from_pylist(errors, ERRORS.schema))
    return left


def join_parts(count: int, *, root: EvidenceRoot, cluster: str, snapshot_id: str, scope: Scope, now: Callable[[], datetime]) -> Snapshot:
    """Join the parts that ``count`` processes each read into one sealed snapshot, and remove them; a snapshot that is there is kept.

    It began when the first part did. CollectionError when a part is missing: a snapshot is never sealed without one.
    """
    folder = parts_folder(root, cluster, snapshot_id)
    if root.find_snapshot(cluster, snapshot_id) is None:
        try:
            with root.snapshot_writer(cluster, snapshot_id) as writer:
                _join(_opened(folder, snapshot_id, parts_of(count)), count, writer, scope, now)
        except (AuditError, OSError):
            if root.find_snapshot(cluster, snapshot_id) is None:
                raise  # otherwise another process has joined the parts at the same time, and removed them
    remove_parts(folder)
    return root.snapshot(cluster, snapshot_id)


def _join(parts: Sequence[SnapshotPart], count: int, writer: SnapshotWriter, scope: Scope, now: Callable[[], datetime]) -> None:
    said = [_said(part) for part in parts]
    facts = joined_facts([of_part for of_part, _ in said])
    errors = ErrorLog()
    for part in parts:
        errors.add_rows(pq.read_table(part.path / f"{ERRORS.name}.parquet"))
    of_topics = parts[count:]
    told = {**dict(facts.datasets()), ERRORS: errors.to_table(), TRANSACTIONS: _transactions(of_topics)}
    for dataset in DATASETS.values():
        # Each commit was read again by one part of the topics.
        having = of_topics if dataset is COMMITTED_OFFSETS else parts
        writer.write(dataset.name, told[dataset] if dataset in told else _joined(dataset, having))
    started_at = min(began for _, began in said)
    writer.seal(about_snapshot(facts, errors, scope, started_at=started_at, finished_at=now()))


def _said(part: SnapshotPart) -> tuple[Facts, datetime]:
    """What a part's manifest says of the cluster, and when its reading began."""
    try:
        return _FACTS.validate_python(part.manifest["facts"]), parse_time(part.manifest["started_at"])
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"the manifest of {part.path} is not one of a part ({problem}): {part.repair}") from problem


def missing_parts(count: int, *, root: EvidenceRoot, cluster: str, snapshot_id: str) -> list[Part]:
    """The parts of a snapshot that were not read, or not yet; none when it is whole."""
    missing = _missing(parts_folder(root, cluster, snapshot_id), parts_of(count))
    # In this order: whoever seals the snapshot removes its parts afterwards.
    return missing if missing and root.find_snapshot(cluster, snapshot_id) is None else []


def _missing(folder: Path, parts: Sequence[Part]) -> list[Part]:
    there = read_already(folder, [part.name for part in parts])
    return [part for part in parts if part.name not in there]


def _opened(folder: Path, snapshot_id: str, parts: Sequence[Part]) -> list[SnapshotPart]:
    if missing := _missing(folder, parts):
        names = ", ".join(part.name for part in missing)
        raise CollectionError(f"snapshot {snapshot_id} lacks {names}: clear the tasks that read these parts and run them again")
    return [SnapshotPart.verified(folder / part.name) for part in parts]


def _joined(dataset: Dataset, parts: Sequence[SnapshotPart]) -> pa.Table:
    """The rows of all parts that have the dataset, in the order in which one process writes them: by the key."""
    paths = [path for part in parts if (path := part.path / f"{dataset.name}.parquet").is_file()]
    tables = [pq.read_table(path) for path in paths]
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in dataset.key])


def _transactions(parts: Sequence[SnapshotPart]) -> pa.Table:
    """One row for each transactional id, as the first part that has it told, with the partitions that all parts told."""
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        for row in pq.read_table(part.path / f"{TRANSACTIONS.name}.parquet").to_pylist():
            first = found.setdefault(row["transactional_id"], row)
            if first is not row and row["partitions"] is not None:
                first["partitions"] = [*(first["partitions"] or ()), *row["partitions"]]
    for row in found.values():
        row["partitions"] = row["partitions"] and sorted(row["partitions"], key=itemgetter("topic", "partition"))
    return table(TRANSACTIONS.schema, (tuple(found[name].values()) for name in sorted(found)))


def _commits_on(parts: Sequence[SnapshotPart], topics: Part) -> KnownCommits:
    """Where all groups had commits on the topics of a part, deleted topics included."""
    places: dict[str, set[TopicPartition]] = {}
    coordinators: dict[str, int] = {}
    share_groups: set[str] = set()
    for part in parts:
        listed = pq.read_table(part.path / f"{GROUPS.name}.parquet", columns=["group_id", "group_type", "coordinator_id"])
        for group_id, group_type, coordinator_id in zip(*(column.to_pylist() for column in listed.columns), strict=True):
            coordinators[group_id] = coordinator_id
            if group_type == "share":
                share_groups.add(group_id)
        with pq.ParquetFile(part.path / f"{COMMITTED_OFFSETS.name}.parquet") as file:
            for batch in file.iter_batches(columns=["group_id", "topic", "partition"]):
                own = [name for name in pc.unique(batch["topic"]).to_pylist() if topics.has(name)]
                rows = batch.filter(pc.is_in(batch["topic"], value_set=pa.array(own, pa.string())))
                for group_id, topic, partition in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                    places.setdefault(group_id, set()).add((topic, partition))
    return KnownCommits(places=places, coordinators=coordinators, share_groups=share_groups)
