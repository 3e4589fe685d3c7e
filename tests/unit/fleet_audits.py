"""Sealed audits of several clusters below one root, for the tests of the fleet report."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, timezone
from pathlib import Path

from report_audit import AUDIT_ID, FakeAudit, finding, summary

from kafka_audit.audit.inputs import keep_rules, keep_used, rules_record
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue, load_catalogue, shipped_controls
from kafka_audit.policy import load_policy
from kafka_audit.policy.waivers import Waiver
from kafka_audit.report import read_report
from kafka_audit.report.json_report import as_json
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit

RULES = ("topic_replication_factor_sufficient", "topic_creation_defaults_safe", "lag_within_sla")
WAIVER = Waiver.model_validate(
    {
        **{"id": "W-1", "control": "TOP-01", "resource": "*", "owner": "a", "approver": "b", "ticket": "T-1"},
        **{"justification": "Accepted for the tests.", "approved_on": date(2026, 11, 1)},
        "expires": datetime(2027, 1, 1, tzinfo=timezone.utc),
    }
)
Rows = Callable[[dict[str, Control]], list[dict[str, object]]]


def fleet_audit(
    root: Path,
    cluster: str,
    rows: Rows,
    *,
    gates: tuple[tuple[str, int], tuple[str, int]] = (("PASS", 0), ("PASS", 0)),
    rules: Sequence[str] = RULES,
    title: str | None = None,
    lag: bool = True,
    failed_step: str | None = None,
) -> Path:
    """The folder of a sealed audit of one cluster.

    ``rows`` makes the findings from the controls by id. ``title``: the title of the first control. Without ``lag`` that part left nothing.
    ``failed_step``: a step that left a failure.
    """
    folder = root.parent / f"{cluster}-controls"
    folder.mkdir(parents=True)
    for name in rules:
        shutil.copy(shipped_controls() / f"{name}.yaml", folder)
    loaded, policy = load_catalogue([folder]), load_policy()
    kept = {one.id: one for one in loaded.controls}
    controls = {name: kept[name].model_copy(update={"title": title}) if title and name == rules[0] else kept[name] for name in rules}
    fake = FakeAudit(root, tuple(controls.values()), cluster)
    fake.catalogue = Catalogue(controls=tuple(controls.values()), sha256=loaded.sha256)
    fake.policy = replace(policy, waivers=[WAIVER], frameworks=())
    found = rows(controls)
    settings = [row for row in found if row["control_id"] != RULES[2]]
    fake.settings(settings, [summary(one, settings) for one in controls.values() if one.id != RULES[2]])
    if lag:
        fake.lag([row for row in found if row["control_id"] == RULES[2]])
    fake.gates(*gates)
    if failed_step:
        write_json(fake.audit.path / "failures" / f"{failed_step}.json", {"step": failed_step, "exit_code": 1, "message": "Spark died"})
    evidence = EvidenceRoot(path=root)
    keep_used(fake.audit, evidence, cluster)
    keep_rules(fake.audit, policy, loaded, [folder])
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    write_json(fake.audit.report / "report.json", as_json(report))
    snapshot = {"snapshot_id": fake.snapshot.snapshot_id, "manifest_sha256": fake.snapshot.manifest_sha256}
    seal_audit(evidence, cluster, AUDIT_ID, {"snapshot": snapshot, **rules_record(policy, loaded)})
    path: Path = fake.audit.path
    return path


def all_pass(controls: dict[str, Control]) -> list[dict[str, object]]:
    return [finding(one, "orders", "pass") for one in controls.values()]


def two_topics_fail(controls: dict[str, Control]) -> list[dict[str, object]]:
    """Replicas: three failures, one of them waived; defaults of brokers: not assessed; lag: does not apply."""
    replicas, defaults, lag = (controls[name] for name in RULES)
    return [
        *(finding(replicas, "orders"), finding(replicas, "clicks"), finding(replicas, "legacy", waiver="W-1")),
        *(finding(replicas, "x", "pass"), finding(replicas, "y", "error", reason="it raised")),
        *(finding(defaults, "1", "not_assessed", reason="no rights"), finding(defaults, "2", "pass")),
        finding(lag, "billing", "not_applicable"),
    ]


def fleet_of_all_kinds(root: Path) -> None:
    """A healthy, a failing, a void, a changed, and a crashed cluster, and one of which only a snapshot was taken."""
    failing = (("PASS", 0), ("FAIL", 3))
    fleet_audit(root, "healthy", all_pass)
    fleet_audit(root, "failing", two_topics_fail, gates=failing)
    fleet_audit(root, "void", two_topics_fail, gates=(("FAIL", 4), ("FAIL", 3)))
    changed = fleet_audit(root, "changed", all_pass)
    fleet_audit(root, "crashed", all_pass, failed_step="verify", lag=False)
    (changed / "gate" / "findings.json").write_text("{}")
    FakeAudit(root, (), "seen-only")
    shutil.rmtree(root / "audits" / "seen-only")
