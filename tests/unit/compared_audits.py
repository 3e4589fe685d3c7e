"""Builds sealed audits of one cluster, one after the other, for the tests of comparisons and trends."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from lag_rows import series_table, sla_table
from report_audit import FINDINGS, LAG_PARTITIONS, SUMMARY, control, finding, gate, group_partition, spark_folder, summary

from kafka_audit.audit.formats import ALWAYS
from kafka_audit.audit.inputs import policy_files
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue
from kafka_audit.catalogue.rows import LAG, SETTINGS, SUBJECTS
from kafka_audit.catalogue.rule import ASKS, rule_of
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.findings import Severity
from kafka_audit.index.write import write_report_and_index
from kafka_audit.policy import Policy, load_policy
from kafka_audit.report import read_report
from kafka_audit.report.comparison import ChangedFinding, Comparison
from kafka_audit.report.model import Report
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id, seal_audit

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)
CLUSTER = "orders-prod"
TOPIC = control("topic_replicated", "TOP-01", severity=Severity.HIGH)
GROUP = control("group_in_time", "CON-01", subject="group", severity=Severity.HIGH)
LOST = control("nothing_lost", "CON-03", subject="group_partition", severity=Severity.CRITICAL, pass_when="lost = 0")
BROKER = control("racks_set", "BRK-05", subject="broker", severity=Severity.LOW)
CONTROLS = (TOPIC, GROUP, LOST, BROKER)
NO_AUTHORIZER = {"dataset": "acls", "api": "DescribeAcls", "error": "SECURITY_DISABLED", "message": "no authorizer"}

Rows = Sequence[Mapping[str, object]]


def row(of: Control, resource: str, status: str = "fail", **changes: object) -> dict[str, object]:
    """A finding; of a broker, without a topic or group."""
    return finding(of, resource, status, **changes)


class Shop:
    """A root with one cluster. ``policy`` is that of the next audits."""

    def __init__(self, root: Path) -> None:
        self.root = EvidenceRoot(path=root)
        self.policy: Policy = replace(load_policy(), frameworks=())
        self.hours = 0

    def own_policy(self) -> Path:
        """A copy of the policy that a test may change; it holds from the next :meth:`load` on."""
        folder = self.root.path / f"policy-{self.hours}"
        shutil.copytree(self.policy.folder, folder)
        return folder

    def load(self, folder: Path) -> None:
        self.policy = load_policy(folder)

    def snapshot(
        self,
        *,
        topics: Mapping[str, int],
        topic_ids: Mapping[str, str],
        groups: Sequence[str],
        scope: tuple[str, str],
        errors: Rows,
        cluster_id: str | None,
        datasets: Mapping[str, Rows],
    ) -> Snapshot:
        taken = NOON + timedelta(hours=self.hours)
        given: dict[str, Rows] = {
            "cluster": [{"cluster_id": cluster_id, "controller_id": 1, "features": []}],
            "brokers": [{"broker_id": 1, "alive": True, "answered": True}],
            "topics": [{"topic": name, "topic_id": topic_ids.get(name), "partition_count": count} for name, count in topics.items()],
            "groups": [{"group_id": name} for name in groups],
            "errors": errors,
            **datasets,
        }
        with self.root.snapshot_writer(CLUSTER, new_id(taken, "snapshot")) as writer:
            for name, dataset in DATASETS.items():
                writer.write(name, pa.Table.from_pylist(list(map(dict, given.get(name, []))), schema=dataset.schema))
            patterns = dict(zip(("topics", "groups"), ([one] for one in scope), strict=True))
            times = {"started_at": taken.isoformat(), "finished_at": taken.isoformat()}
            writer.seal({"cluster_id": cluster_id, **times, "scope": patterns, "versions": {"kafka_audit": "0.1.0"}})
        return self.root.snapshot(CLUSTER, new_id(taken, "snapshot"))

    def judge(
        self,
        rows: Rows,
        *,
        controls: Sequence[Control] = CONTROLS,
        topics: Mapping[str, int] | None = None,
        topic_ids: Mapping[str, str] | None = None,
        groups: Sequence[str] = (),
        scope: tuple[str, str] = ("*", "*"),
        errors: Rows = (NO_AUTHORIZER,),
        cluster_id: str | None = "one",
        evidence: tuple[str, int] = ("PASS", 0),
        parts: Sequence[str] = (SETTINGS, LAG),
        datasets: Mapping[str, Rows] | None = None,
    ) -> "Judged":
        """The next audit, an hour after the last one: snapshot, findings and gates; its report is not written yet.

        ``datasets``: the rows of further datasets of the snapshot, by name.
        """
        self.hours += 1
        snapshot = self.snapshot(
            topics=topics or {},
            topic_ids=topic_ids or {},
            groups=groups,
            scope=scope,
            errors=errors,
            cluster_id=cluster_id,
            datasets=datasets or {},
        )
        audit = self.root.audit(CLUSTER, new_id(NOON + timedelta(hours=self.hours), "audit"))
        began = (NOON + timedelta(hours=self.hours)).isoformat()
        write_json(audit.run_file, {"audit_id": audit.path.name, "cluster": CLUSTER, "started_at": began, "params": {}})
        for part in parts:
            own = [one for one in controls if SUBJECTS[one.subject].part == part]
            found = [dict(one) for one in rows if one["control_id"] in {control.id for control in own}]
            spark_folder(audit.path / part / "findings.parquet", found, FINDINGS)
            spark_folder(audit.path / part / "summary.parquet", [summary(one, found) for one in own], SUMMARY)
        lost = [group_partition("billing", "orders", 0, lost=7), group_partition("billing", "orders", 1, lost=None)]
        if LAG in parts:
            spark_folder(audit.lag / "group_partitions.parquet", lost, LAG_PARTITIONS)
            for name, table in {"group_slas": sla_table([]), "lag_series": series_table([])}.items():
                spark_folder(audit.lag / f"{name}.parquet", table.to_pylist(), table.schema)
        write_json(audit.gate / "evidence.json", gate("evidence", *evidence))
        if parts:
            write_json(audit.gate / "findings.json", gate("findings", "FAIL", 3))
        return Judged(self, audit, snapshot, Catalogue(controls=tuple(controls), sha256="ca" * 32), self.policy)

    def audit(self, rows: Rows, **about: object) -> "Judged":
        """The next audit, reported and sealed."""
        made = self.judge(rows, **about)
        made.seal()
        return made


class Judged:
    def __init__(self, shop: Shop, audit: Audit, snapshot: Snapshot, catalogue: Catalogue, policy: Policy) -> None:
        self.audit, self.snapshot, self.catalogue, self.policy = audit, snapshot, catalogue, policy
        self._root = shop.root

    def replace_findings(self, of: Control, statuses: Sequence[str], severities: Sequence[str]) -> None:
        """Give a control of the settings one finding for each status, on topic-000000 and so on."""
        count, given = len(statuses), {"control_id": of.id, "code": of.code, "subject": of.subject, "observed": "1", "evidence": "{}"}
        given |= {
            "rule_sha256": rule_of(of).sha256,
            "title": of.title,
            "evidence_class": of.evidence.value,
            "catalogue_severity": of.severity.value,
        }
        columns = {name: pa.array([value] * count) for name, value in given.items()}
        columns |= {"status": pa.array(statuses), "severity": pa.array(severities)}
        columns["resource"] = columns["topic"] = pa.array([f"topic-{number:06}" for number in range(count)])
        table = pa.table({field.name: columns.get(field.name, pa.nulls(count, field.type)) for field in FINDINGS})
        [part] = (self.audit.settings / "findings.parquet").glob("*.parquet")
        pq.write_table(table, part)

    @property
    def inputs(self) -> tuple[Audit, Snapshot, Catalogue, Policy]:
        return self.audit, self.snapshot, self.catalogue, self.policy

    @property
    def id(self) -> str:
        return self.audit.path.name

    def read(self) -> Report:
        return read_report(*self.inputs, generated_at=NOON)

    def comparison(self) -> Comparison:
        found = self.read().comparison
        assert found is not None
        return found

    def seal(self) -> None:
        for one in self.catalogue.controls:
            text = json.dumps(one.model_dump(mode="json", include={*ASKS, "id", "code", "title", "parameters"}))
            path = self.audit.inputs / "controls" / f"{one.id}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for name, path in policy_files(self.policy).items():
            copy = self.audit.inputs / "policy" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        self.write()
        about = {"snapshot_id": self.snapshot.snapshot_id, "manifest_sha256": self.snapshot.manifest_sha256}
        seal_audit(self._root, CLUSTER, self.id, {"snapshot": about})

    def write(self) -> None:
        """The report and the index, as the task ``report`` writes them; not its PDF, which takes half of the time of an audit."""
        write_report_and_index(*self.inputs, generated_at=NOON, formats=ALWAYS)


def only(comparison: Comparison) -> ChangedFinding:
    """The one finding of a comparison."""
    assert sum(comparison.counts.values()) == 1, comparison.counts
    [found] = comparison.listed
    return found
