"""The reports that every format must be able to say: all statuses, hostile names, audits that were cut short, and more than is listed."""

import json
from dataclasses import replace
from pathlib import Path

from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding, group_partition, summary

from kafka_audit.findings import EvidenceClass, Severity
from kafka_audit.policy import load_policy
from kafka_audit.policy.waivers import Waiver
from kafka_audit.report import Report, read_report
from kafka_audit.report.comparison import Change, ChangedFinding, Comparison

REPLICAS = control("replication_factor_sufficient", "TOP-01")
ELECTION = control("unclean_leader_election_disabled", "TOP-04", severity=Severity.HIGH)
DISKS = control("log_dirs_healthy", "REP-08", subject="broker", severity=Severity.LOW)
CLOCKS = control("clocks_agree", "AUD-02", subject="cluster", severity=Severity.INFO)
RESTORE = control("restore_was_tried", "PRD-09", subject="cluster", evidence=EvidenceClass.MANUAL)
LEADER = control("partition_has_live_leader", "REP-01", subject="partition", severity=Severity.MEDIUM)
RACKS = control("replicas_spread_over_racks", "TOP-10")
LAG = control("lag_within_sla", "CON-01", subject="group")
READ = control("nothing_lost_unread", "CON-02", subject="group_partition", evidence=EvidenceClass.INFERRED)

LONG = "t" * 249
HOSTILE_TEXTS = (*HOSTILE_GROUPS, "[click](http://198.51.100.9/) {0} ![x](y) `code` </script> &#x202e; %2e%2e/..", "")
CONTROLS = (REPLICAS, ELECTION, DISKS, CLOCKS, RESTORE, LEADER, RACKS, LAG, READ)

_WAIVER = {
    **{"id": "W-1", "control": "TOP-01", "resource": "legacy", "owner": "payments team", "approver": "platform team", "ticket": "OPS-7"},
    **{
        "justification": "The topic is <b>deleted</b> [soon](http://198.51.100.9/).",
        "approved_on": "2026-11-01",
        "expires": "2027-01-31T00:00:00Z",
    },
}


def changed(change: Change, resource: str, **more: str | None) -> ChangedFinding:
    same = {"control_id": REPLICAS.id, "code": REPLICAS.code, "title": REPLICAS.title, "subject": "topic", "resource": resource}
    values = {"severity": "critical", "severity_before": "critical", "observed": "1", "observed_before": "1", **more}
    return ChangedFinding(change=change, **same, **values)  # type: ignore[arg-type]


def _compared(report: Report) -> Report:
    changes = {"t000": Change.NEW, "t001": Change.UNCHANGED, "t002": Change.WORSE, "t003": Change.INCOMPARABLE}
    listed = [changed(change, name) for name, change in changes.items()] + [changed(Change.RESOLVED, "mended", severity=None)]
    comparison = Comparison(
        previous_audit_id="20261119T231600Z-0badcafe0badcafe",
        previous_started_at="2026-11-19T23:16:00+00:00",
        previous_verdict="FAILED",
        counts={"new": 1, "unchanged": 1, "worse": 1, "incomparable": 1, "resolved": 1},
        listed=tuple(listed),
        changes={(REPLICAS.id, name): change for name, change in changes.items()},
    )
    return replace(report, comparison=comparison)


def _findings() -> list[dict[str, object]]:
    evidence = json.dumps({"lone": "\ud800", "\u202ekey": ["<img src=x>", "\x1b[31m"]}) + " "
    rows = [finding(REPLICAS, f"t{number:03}") for number in range(4)]
    rows += [
        finding(REPLICAS, "legacy", waiver="W-1"),
        finding(REPLICAS, LONG, severity="low", loosened="2 instead of 3", tier="best_effort"),
    ]
    rows += [finding(REPLICAS, text, observed=text, expected=text, evidence=evidence) for text in HOSTILE_TEXTS]
    rows += [finding(REPLICAS, "huge", evidence='{"x": 1e999, "y": NaN}'), finding(REPLICAS, "broken", evidence="{not json")]
    rows += [
        finding(REPLICAS, "denied", "not_assessed", reason=HOSTILE_GROUPS[1]),
        finding(REPLICAS, "odd", "error", reason=HOSTILE_GROUPS[3]),
    ]
    rows += [finding(REPLICAS, "good", "pass"), finding(ELECTION, "a", "pass"), finding(ELECTION, "b", "pass")]
    rows += [finding(CLOCKS, "cluster", "not_applicable"), finding(RESTORE, "cluster", "not_assessed", reason="nobody attested it")]
    rows += [finding(RACKS, "a", "pass"), *(finding(RACKS, name, "error", reason="rule raised") for name in "bcd")]
    return [*rows, finding(LEADER, "orders-3"), finding(LEADER, "orders-4", "error", reason=None)]


def complete(root: Path, limit: int = 200, **gates: tuple[str, int]) -> Report:
    """An audit with everything that a report can hold; the control of brokers did not run."""
    fake = FakeAudit(root, CONTROLS)
    fake.policy = replace(fake.policy, waivers=[Waiver.model_validate(_WAIVER)], frameworks=load_policy().frameworks)
    rows = _findings()
    fake.settings(rows, [one for one in _summaries(rows) if one["control_id"] != DISKS.id])
    lag = [finding(LAG, group) for group in HOSTILE_GROUPS] + [finding(READ, f"{group}:orders-1") for group in HOSTILE_GROUPS]
    fake.lag(lag, [group_partition(group, "orders", 1, lost=1, status=group) for group in HOSTILE_GROUPS])
    fake.gates(**gates)  # type: ignore[arg-type]
    return _compared(read_report(*fake.inputs.args, **fake.inputs.kwargs, limit=limit))


def _summaries(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [summary(one, rows) for one in CONTROLS if one.subject not in ("group", "group_partition")]


def passing(root: Path, **gates: tuple[str, int]) -> Report:
    """An audit in which everything passed, with these results of its gates (evidence, findings)."""
    fake = FakeAudit(root, (ELECTION, LAG))
    fake.settings([finding(ELECTION, "a", "pass"), finding(ELECTION, "b", "pass")])
    fake.lag([finding(LAG, "billing", "pass")])
    fake.gates(**{"findings": ("PASS", 0), **gates})  # type: ignore[arg-type]
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def cut_short(root: Path) -> Report:
    """An audit that ended after its snapshot: no gate ran, and nothing was judged."""
    fake = FakeAudit(root, CONTROLS)
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def without_controls(root: Path) -> Report:
    """An audit with an empty catalogue."""
    fake = FakeAudit(root, ())
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def reports(root: Path) -> dict[str, Report]:
    """All of them, by name."""
    return {
        "complete": complete(root / "complete"),
        "beyond-the-limit": complete(root / "limited", limit=2),
        "passed": passing(root / "passed"),
        "void-with-failures": complete(root / "unfit", evidence=("FAIL", 4)),
        "void": passing(root / "void", evidence=("FAIL", 4)),
        "gate-error": passing(root / "error", findings=("ERROR", 1)),
        "cut-short": cut_short(root / "cut"),
        "without-controls": without_controls(root / "none"),
    }
