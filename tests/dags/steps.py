"""Fake steps of the platform: they read and write the same folders as the real ones, with the outcome that a test chooses."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.collect.snapshot import SnapshotResult
from kafka_audit.policy import Policy
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT, Sealed


class Steps:
    """What the steps will answer, and how often each was called."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.raises: dict[str, Exception] = {}
        self.evidence = ("PASS", 0)
        self.findings = ("PASS", 0)
        self.policies: list[Path] = []
        self.arguments: list[str] = []
        self.not_written: list[dict[str, str]] = []
        self.failing: list[str] = []

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.raises:
            raise self.raises[name]

    def take_snapshot(self, *, kind: str = SNAPSHOT, **arguments: Any) -> SnapshotResult | None:
        if kind == OFFSETS:
            return self.take_offsets_snapshot(**arguments)
        return self.take_whole_snapshot(**arguments)

    def take_whole_snapshot(self, *, root: EvidenceRoot, cluster: str, snapshot_id: str, policy: Policy, now: Any, **_: Any) -> None:
        self._call("snapshot")
        self.policies.append(policy.folder)
        with root.snapshot_writer(cluster, snapshot_id) as writer:
            writer.write("topics", pa.table({"topic": ["orders"]}))
            writer.seal({"started_at": now().isoformat(), "finished_at": now().isoformat(), "errors": {}})

    def take_offsets_snapshot(
        self, *, root: EvidenceRoot, cluster: str, snapshot_id: str, policy: Policy, now: Any, **_: Any
    ) -> SnapshotResult:
        """Six group partitions: caught up, behind, lost 5 records and reads on, commit not known, no commit, beyond the end."""
        self._call("offsets")
        self.policies.append(policy.folder)
        found = root.find_snapshot(cluster, snapshot_id, OFFSETS)
        if found is None:
            partitions = {"topic": ["orders"] * 6, "partition": list(range(6))}
            with root.snapshot_writer(cluster, snapshot_id, OFFSETS) as writer:
                writer.write("groups", pa.table({"group_id": ["billing"]}))
                writer.write("offsets", pa.table({**partitions, "log_start": [0, 0, 10, 0, 0, 0], "log_end": [7, 7, 17, 7, 7, 7]}))
                refused = pa.array([None, None, None, "GROUP_AUTHORIZATION_FAILED", None, None])
                commits = pa.table({**partitions, "committed": [7, 3, 5, None, None, 9], "error": refused})
                writer.write("committed_offsets", commits)
                writer.seal({"started_at": now().isoformat(), "finished_at": now().isoformat(), "errors": {"committed_offsets": 1}})
            found = root.snapshot(cluster, snapshot_id, OFFSETS)
        return SnapshotResult(path=found.path, snapshot_id=snapshot_id, manifest=found.manifest, reused=False)

    def judge_evidence(self, snapshot: Snapshot, out: Path, *, now: Any, max_age_seconds: int, hidden: Any) -> None:
        self._call("evidence_gate")
        assert not hidden
        Sealed.verified(snapshot.path)
        self._gate(out, "evidence", self.evidence, now=now.isoformat())

    def judge_findings(
        self, audit: Audit, snapshot: Snapshot, out: Path, *, fail_on: Any, min_coverage: float, controls: Any, waivers: Any, old: Any
    ) -> None:
        self._call("findings_gate")
        self.old = old
        assert (audit.settings / "done").is_file()
        assert (audit.lag / "done").is_file()
        assert controls
        assert waivers == []
        self._gate(out, "findings", self.findings)

    def _gate(self, out: Path, name: str, answer: tuple[str, int], **more: Any) -> None:
        verdict, exit_code = answer
        reasons = [f"the {name} gate says {verdict}"] if exit_code else []
        write_json(
            out / f"{name}.json", {"gate": name, "verdict": verdict, "exit_code": exit_code, "reasons": reasons, "results": [], **more}
        )

    def submit(self, operator: Any, context: Any) -> None:
        self._call(operator.job)
        self.arguments = operator.application_args
        if "--audit" not in self.arguments:
            return
        arguments = dict(zip(operator.application_args[::2], operator.application_args[1::2], strict=True))
        for part in ("settings", "lag"):
            target = Path(arguments["--audit"]) / part
            target.mkdir()
            (target / "done").write_text(json.dumps(arguments), encoding="utf-8")
        if self.failing:
            about = {"code": "TOP-01", "title": "Topics have enough replicas", "severity": "critical", "status": "fail"}
            rows = [{**about, "resource": topic, "waiver": None} for topic in self.failing]
            schema = pa.schema([(name, pa.string()) for name in rows[0]])
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), Path(arguments["--audit"]) / "settings" / "findings.parquet")

    def write_report(self, audit: Audit, snapshot: Snapshot, catalogue: Any, policy: Any, *, generated_at: Any, formats: Any) -> None:
        from kafka_audit.audit.gate_result import read_gate
        from kafka_audit.audit.outcome import judge

        self._call("report")
        said = judge(*(read_gate(audit.gate, name, snapshot) for name in ("evidence", "findings")), ())
        value = {
            "verdict": said.verdict,
            "exit_code": said.exit_code,
            "generated_at": generated_at.isoformat(),
            "coverage": {"ratio": 0.975},
            "reasons": [],
            "not_written": self.not_written,
        }
        audit.report.mkdir()
        (audit.report / "report.html").write_text(f"<p>{said.verdict}</p>", encoding="utf-8")
        (audit.report / "junit.xml").write_text("<testsuites/>", encoding="utf-8")
        write_json(audit.report / "report.json", value)


def spark_failure(exit_code: int) -> Exception:
    """What the Spark provider raises when a job ends with ``exit_code``."""
    # Not before a test runs: the processes that run other tests import this module, too.
    from airflow.sdk.exceptions import AirflowException

    return AirflowException(f"Cannot execute: spark-submit job.py. Error code is: {exit_code}.")
