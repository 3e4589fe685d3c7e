"""Makes many clusters and audits for the web pages: their indexes, manifests and snapshots, and nothing else of an audit."""

import json
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.audit.request import DAG_ID
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.index.group_tables import PARTITION_ROW, PARTITIONS, READER_ROW, READERS, ROWS_OF_A_GROUP, SLA_ROW, SLAS
from kafka_audit.index.overview import FAILURES, GROUPS, LETTERS, OVERVIEW, REMEMBERED, Overview
from kafka_audit.index.tables import FAILURE_ROW, GROUP_ROW
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.manifest import FileHashes

NEWEST = datetime(2026, 11, 20, tzinfo=timezone.utc)
_FAILURES, _PARTITIONS_OF_A_GROUP, _HISTORIES = 40, 4, 30
Table = tuple[str, pa.Schema, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, kw_only=True)
class Made:
    """What a cluster was made of, to ask for some of it."""

    cluster: str
    groups: Sequence[str]
    topics: Sequence[str]


def make_cluster(root: EvidenceRoot, cluster: str, audits: int, groups: int, topics: int) -> Made:
    """A cluster with audits, an hour apart. Only the newest REMEMBERED have their own overview, which is all that a page opens.

    Audits share their tables by hard links, but for the table of groups: the newest ones of a large cluster have their own.
    """
    chance = random.Random(cluster)
    names = [f"team-{number % 97:02}.service-{number:05}" for number in range(groups)]
    topic_names = [f"events.{number:05}" for number in range(topics)]
    snapshot_id = _snapshot(root, cluster, topic_names)
    times = [NEWEST - timedelta(hours=back) for back in range(audits - 1, -1, -1)]
    ids = [new_id(when, f"{cluster}{when}") for when in times]
    controls = [(one.id, one.code, one.title, one.subject, one.severity.value, one.evidence.value) for one in load_catalogue().controls]
    shared = root.audits(cluster) / ".shared"
    shared.mkdir(parents=True)
    for name, schema, rows in _tables(chance, names, topic_names, [one[0] for one in controls], (ids[0], times[0].isoformat())):
        _write(shared / Path(name).name, schema, rows)
    hashes = FileHashes()
    for at, (audit_id, when) in enumerate(zip(ids, times, strict=True)):
        folder = root.audit(cluster, audit_id).path
        (folder / "index").mkdir(parents=True)
        for file in shared.iterdir():
            os.link(file, folder / "index" / file.name)
        if groups > ROWS_OF_A_GROUP and at >= audits - _HISTORIES:
            (folder / GROUPS).unlink()
            _write(folder / GROUPS, GROUP_ROW, _groups(chance, names))
        if at >= audits - REMEMBERED:
            past = list(zip(ids, times, strict=True))[max(0, at + 1 - REMEMBERED) : at + 1]
            (folder / OVERVIEW).write_text(_overview(cluster, snapshot_id, past, controls, chance), encoding="utf-8")
        _seal(folder, cluster, at + 1, hashes)
        run = {"audit_id": audit_id, "cluster": cluster, "dag_id": DAG_ID, "run_id": audit_id, "started_at": when.isoformat()}
        (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return Made(cluster=cluster, groups=names, topics=topic_names)


def _seal(folder: Path, cluster: str, sequence: int, hashes: FileHashes) -> None:
    files = {f"index/{file.name}": dict(zip(("sha256", "bytes"), hashes.of(file), strict=True)) for file in (folder / "index").iterdir()}
    manifest = {"schema_version": 1, "kind": "audit", "cluster": cluster, "audit_id": folder.name, "sequence": sequence, "files": files}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def _write(path: Path, schema: pa.Schema, rows: Sequence[Mapping[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows), schema), path, compression="zstd", row_group_size=ROWS_OF_A_GROUP)


def _tables(
    chance: random.Random, groups: Sequence[str], topics: Sequence[str], controls: Sequence[str], first: tuple[str, str]
) -> list[Table]:
    since = dict(zip(("since_audit_id", "since_at"), first, strict=True))
    return [
        (GROUPS, GROUP_ROW, _groups(chance, groups)),
        (SLAS, SLA_ROW, [_sla(name) for name in sorted(groups)]),
        (PARTITIONS, PARTITION_ROW, [row for name in sorted(groups) for row in _partitions(chance, name, topics)]),
        (READERS, READER_ROW, [_reader(chance, topic, place, groups) for topic in topics for place in range(1, 6)]),
        (
            FAILURES,
            FAILURE_ROW,
            [
                {**since, "control_id": control, "place": place, "resource": topic, "topic": topic, "severity": "high", "observed": "1"}
                for control in sorted(controls)
                for place, topic in enumerate(chance.sample(topics, min(_FAILURES, len(topics))), 1)
            ],
        ),
    ]


def _groups(chance: random.Random, names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            **{"group_id": name, "place": place, "group_type": "classic", "state": "Stable", "status": chance.choice(STATUSES)},
            **{"partitions": _PARTITIONS_OF_A_GROUP, "partitions_in_trouble": chance.randrange(3), "unknown": 0, "lag_ms_is_bound": False},
            **{
                "lag": chance.randrange(10**6),
                "lag_ms": chance.randrange(10**7),
                "lost": 0,
                "rewinds": 0,
                "targets": 1,
                "targets_missed": 0,
            },
            **{"expires_in_ms": chance.randrange(10**9), "availability_percent": 99.9, "budget_used_share": chance.random()},
        }
        for place, name in enumerate(sorted(names), 1)
    ]


def _sla(group: str) -> dict[str, Any]:
    minutes = {"minutes_in": 43_000, "minutes_out": 100, "minutes_not_assessed": 100, "minutes_quiet": 0}
    budget = {"budget_allowed_minutes": 216.0, "budget_used_minutes": 100.0, "budget_left_minutes": 116.0}
    limits = {"max_lag_records": 500_000, "max_lag_ms": 5_000_000, "target_percent": 99.5, "window_days": 30}
    return {
        "resource": group,
        "group_id": group,
        "sla": "default",
        "partition_count": _PARTITIONS_OF_A_GROUP,
        **minutes,
        **budget,
        **limits,
    }


def _partitions(chance: random.Random, group: str, topics: Sequence[str]) -> list[dict[str, Any]]:
    topic = chance.choice(topics)
    return [
        {
            **{"group_id": group, "topic": topic, "partition": number, "place": number + 1, "status": "GROWING", "has_commit": True},
            **{"committed": 10**6, "log_start": 0, "log_end": 2 * 10**6, "lag": 10**6, "lost": 0, "status_reason": "the lag grows " * 6},
        }
        for number in range(_PARTITIONS_OF_A_GROUP)
    ]


def _reader(chance: random.Random, topic: str, place: int, groups: Sequence[str]) -> dict[str, Any]:
    about = {"topic": topic, "place": place, "readers": 5, "group_id": chance.choice(groups), "status": "OK"}
    return {**about, "partitions": 4, "known": 4, "lag": 7, "lost": 0}


def _overview(
    cluster: str, snapshot_id: str, past: Sequence[tuple[str, datetime]], controls: Sequence[tuple[str, ...]], chance: random.Random
) -> str:
    """An overview as large as that of a real audit: all controls, with how each stood in all remembered audits."""
    letters, when = list(LETTERS.values()), past[-1][1].isoformat()
    counts = {"passed": 10, "failed": 40, "errored": 0, "not_assessed": 1, "not_applicable": 0}
    names = ("control_id", "code", "title", "subject", "severity", "evidence_class")
    found: dict[str, Any] = {name: None for name, field in Overview.model_fields.items() if field.is_required()}
    found |= {"audit_id": past[-1][0], "cluster": cluster, "dag_id": DAG_ID, "run_id": past[-1][0], "snapshot_id": snapshot_id}
    found |= {"started_at": when, "evidence_at": when, "generated_at": when, "verdict": "FAILED", "exit_code": 3, "summary": "Failed."}
    found |= dict.fromkeys(("reasons", "trend", "next_losses", "happened_losses", "waivers", "silent_brokers", "not_written"), ())
    found |= {"reason_count": 0, "waiver_count": 0, "collection_errors": 0, "assessed": 100, "applicable": 101, "statuses": counts}
    found["past"] = [{"audit_id": one, "started_at": at.isoformat(), "verdict": "FAILED"} for one, at in past]
    found["controls"] = [
        {
            **dict(zip(names, one, strict=True)),
            **{"standing": "fail", "statuses": counts, "waived": 0, "worst": "high"},
            "fails_since": {"audit_id": past[0][0], "started_at": past[0][1].isoformat(), "earlier": True},
            "history": "".join(chance.choice(letters) for _ in past[1:]) + "F",
        }
        for one in controls
    ]
    return Overview.model_validate(found).model_dump_json()


def _snapshot(root: EvidenceRoot, cluster: str, topics: Sequence[str]) -> str:
    snapshot_id = new_id(NEWEST, f"snapshot of {cluster}")
    replicas = {"leader": 1, "replicas": [1, 2, 3], "isr": [1, 2, 3]}
    rows: dict[str, list[dict[str, Any]]] = {
        "topics": [{"topic": topic, "topic_id": topic, "partition_count": 6} for topic in topics],
        "partitions": [{"topic": topic, "partition": number, **replicas} for topic in topics for number in range(6)],
        "topic_configs": [
            {"topic": topic, "name": f"setting.{number}", "value": str(number), "source": "DEFAULT_CONFIG", "is_sensitive": False}
            for topic in topics
            for number in range(36)
        ],
    }
    with root.snapshot_writer(cluster, snapshot_id) as writer:
        for name, found in rows.items():
            writer.write(name, pa.Table.from_pylist(found, schema=DATASETS[name].schema))
        writer.seal({"started_at": NEWEST.isoformat(), "finished_at": NEWEST.isoformat()})
    return snapshot_id
