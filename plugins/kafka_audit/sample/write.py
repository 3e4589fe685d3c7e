"""Writes the chain of sample audits of each cluster: snapshot, results, gates, report, index and seal, day after day."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from kafka_audit.audit.inputs import keep_rules, rules_record
from kafka_audit.audit.request import DAG_ID
from kafka_audit.errors import CollectionError
from kafka_audit.findings import Severity
from kafka_audit.index.write import write_report_and_index
from kafka_audit.policy import Policy, load_policy
from kafka_audit.sample.day import Day
from kafka_audit.sample.groups import group_tables, slas_file
from kafka_audit.sample.snapshots import write_snapshot
from kafka_audit.sample.story import LAST, SampleCluster
from kafka_audit.sample.template import PARTS, Template
from kafka_audit.sample.verdicts import findings_of, summary_of, told_by
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, seal_audit
from kafka_audit.store.manifest import FileHashes

_COMPARED_SNAPSHOTS = 3
_FAIL_ON, _MIN_COVERAGE, _MAX_AGE_SECONDS = Severity.HIGH, 0.9, 3600
_FORMATS = ("html", "json")
_PLACES = ("evidence", "audits")

Judge = Callable[..., object]


@dataclass(frozen=True, kw_only=True)
class Gates:
    """The functions ``judge_evidence`` and ``judge_findings`` of ``expectations.gate``, which no room may import."""

    evidence: Judge
    findings: Judge


def has_history(root: EvidenceRoot, cluster: SampleCluster) -> bool:
    """Whether there are audits of a sample cluster, of whatever day."""
    return root.audits(cluster.name).is_dir()


def write_history(template: Template, root: EvidenceRoot, cluster: SampleCluster, gates: Gates, now: datetime) -> int:
    """Write all audits of one sample cluster, at once: nothing is there before the last one is sealed. Returns their number.

    The same template, ``now`` and story give the same files. CollectionError if they cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=f".{cluster.name}-", dir=root.path) as made:
            chain = _Chain(template, EvidenceRoot(path=Path(made)), cluster, gates, now)
            for number in cluster.days:
                chain.add(Day(cluster=cluster, number=number, now=now), docs=number == cluster.last)
            for place in _PLACES:
                (root.path / place).mkdir(parents=True, exist_ok=True)
                if (root.path / place / cluster.name).exists():  # of a run that was stopped between the two
                    shutil.rmtree(root.path / place / cluster.name)
                (Path(made) / place / cluster.name).rename(root.path / place / cluster.name)
    except OSError as problem:
        raise CollectionError(f"{root.path}: the sample history of {cluster.name} cannot be written ({problem})") from problem
    return len(cluster.days)


class _Chain:
    def __init__(self, template: Template, root: EvidenceRoot, cluster: SampleCluster, gates: Gates, now: datetime) -> None:
        self._template, self._root, self._gates = template, root, gates
        self._policy = _policy(template, root.path / "policy", cluster, now)
        self._snapshots: list[Snapshot] = []

    def add(self, day: Day, *, docs: bool) -> None:
        """The next audit, in the order of the steps of a real one."""
        template, audit = self._template, self._root.audit(day.cluster.name, day.audit_id)
        tables = group_tables(template, day)
        told = told_by(tables, day)
        found = {part: findings_of(template.rows[part], told, day, self._policy.waivers, day.began) for part in PARTS}
        snapshot = write_snapshot(template, self._root, day, tables["group_partitions"], [row for part in PARTS for row in found[part]])
        write_json(audit.run_file, _run(template, day))
        for part in PARTS:
            self._write_part(audit, part, found[part])
        for name, table in tables.items():
            _write(table, audit.lag / f"{name}.parquet")
        write_json(
            audit.lag / "lag_history.json", {name: [] for name in ("days", "gaps", "left_out", "offsets_snapshots", "unusable_days")}
        )
        nothing = {"folder": None, "changed_since": None, "reason": "sample data: no commit history"}
        write_json(audit.lag / "commit_history.json", nothing)
        self._judge(audit, snapshot, day, docs=docs)
        keep_rules(audit, self._policy, template.catalogue, [template.controls])
        write_report_and_index(audit, snapshot, template.catalogue, self._policy, generated_at=day.reported, formats=_FORMATS)
        about = {"snapshot_id": snapshot.snapshot_id, "manifest_sha256": snapshot.manifest_sha256}
        fields = {**rules_record(self._policy, template.catalogue), "snapshot": about, "not_written": [], "sample": True}
        seal_audit(self._root, day.cluster.name, day.audit_id, fields, FileHashes())
        self._snapshots.append(snapshot)

    def _write_part(self, audit: Audit, part: str, found: Sequence[dict[str, Any]]) -> None:
        template, folder = self._template, audit.path / part
        _write(pa.Table.from_pylist(list(found), schema=template.findings[part].schema), folder / "findings.parquet")
        _write(summary_of(template.summaries[part], found), folder / "summary.parquet")
        write_json(folder / "rules.json", rules_record(self._policy, template.catalogue))
        used = [{"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256} for one in self._snapshots[-_COMPARED_SNAPSHOTS:]]
        record = {"used": used, "used_offsets": [], "left_out": [], "of_another_cluster": [], "last_audited": None}
        write_json(folder / "history.json", {**record, "first_audit": not used})

    def _judge(self, audit: Audit, snapshot: Snapshot, day: Day, *, docs: bool) -> None:
        """Both gates, by the product's own suites."""
        controls = {control.id: control.severity for control in self._template.catalogue.controls}
        self._gates.evidence(snapshot, audit.gate, now=day.judged, max_age_seconds=_MAX_AGE_SECONDS, docs=docs)
        self._gates.findings(
            *(audit, snapshot, audit.gate),
            fail_on=_FAIL_ON,
            min_coverage=_MIN_COVERAGE,
            controls=controls,
            waivers=self._policy.waivers,
            docs=docs,
        )


def _run(template: Template, day: Day) -> dict[str, Any]:
    """The content of run.json. Whoever may read runs of the plain audit DAG may read samples."""
    asked = {
        **{"cluster": day.cluster.name, "policy_dir": None, "controls_dirs": None, "formats": ",".join(_FORMATS)},
        **{"fail_on": _FAIL_ON.value, "fail_on_new": False, "min_coverage": _MIN_COVERAGE, "max_age_seconds": _MAX_AGE_SECONDS},
        **{"kafka_conn_id": "none: sample data", "topics": "*", "groups": "*"},
    }
    return {
        **{"sample": True, "audit_id": day.audit_id, "cluster": day.cluster.name, "snapshot_id": day.snapshot_id},
        **{"dag_id": DAG_ID, "run_id": f"sample__{day.began.isoformat()}", "params": asked},
        **{"started_at": day.began.isoformat(), "judged_at": day.judged.isoformat()},
    }


def _policy(template: Template, folder: Path, cluster: SampleCluster, now: datetime) -> Policy:
    """The template's policy, with the story's SLAs and waivers."""
    shutil.copytree(template.policy, folder)
    dates = {day: _date(now, day) for one in cluster.waivers for day in (one.approved, one.expires)}
    for name, content in {"slas.yaml": slas_file(), "waivers.yaml": cluster.waiver_file(dates)}.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return load_policy(folder)


def _date(now: datetime, day: int) -> date:
    return (now - timedelta(days=LAST - day)).date()


def _write(table: pa.Table, path: Path) -> None:
    """A table as Spark leaves it: a folder with one part."""
    path.mkdir(parents=True)
    pq.write_table(table, path / "part-00000.zstd.parquet", compression="zstd")
