"""Sealed audits that FAILED, and answers to them, for the tests of reviews."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from report_audit import AUDIT_ID, FakeAudit, control, finding

from kafka_audit.audit.review_answer import Answer, read_answer
from kafka_audit.findings import Severity
from kafka_audit.report.recorded_review import record_answer
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit
from kafka_audit.store.reviews import keep_answer, keep_question

CLUSTER = "orders-prod"
ASKED = datetime(2026, 11, 21, 8, 30, tzinfo=timezone.utc)
REPLICAS = control("enough_replicas", "TOP-01", title="Topics have enough replicas")
ELECTION = control("unclean_election_off", "TOP-04", severity=Severity.HIGH)


class FailedAudit:
    """An audit with these failing topics per control, which is sealed below ``root``; ``run``: more of its run.json."""

    cluster = CLUSTER

    def __init__(self, path: Path, rows: list[dict[str, object]] | None = None, **run: str) -> None:
        self.root = EvidenceRoot(path=path)
        made = FakeAudit(path, (REPLICAS, ELECTION), CLUSTER)
        if rows is None:
            rows = [finding(REPLICAS, "orders"), finding(REPLICAS, "billing", "pass"), finding(ELECTION, "orders", severity="high")]
        made.settings(rows)
        made.lag([])
        made.gates()
        self.audit = made.audit
        write_json(made.audit.run_file, {**made.audit.run(), **run})
        self.seal: Seal = self.again()

    def again(self) -> Seal:
        return seal_audit(self.root, CLUSTER, AUDIT_ID, {"snapshot": {"snapshot_id": "x"}})

    def record(self, value: dict[str, Any]) -> Path:
        """Record an answer as the tasks do; returns the folder."""
        keep_question(self.root, CLUSTER, self.seal)
        keep_answer(self.root, CLUSTER, AUDIT_ID, value)
        about = {"dag_id": "kafka_reliability_audit", "run_id": "manual__1", "task_id": "review"}
        return record_answer(self.root, CLUSTER, AUDIT_ID, max_days=90, about=about).sealed.path


def kept(minutes: int = 0, **changes: Any) -> dict[str, Any]:
    """An answer as the task review keeps it; ``changes`` replace fields of the form, or of the whole."""
    form = {"reason": "Replicas come with the new rack.", "ticket": "OPS-7", "expires": "2026-12-31", "owner": "Olga Owner"}
    value: dict[str, Any] = {
        "chosen_options": ["Approve"],
        "params_input": {**form, **{name: changes[name] for name in form if name in changes}},
        "responded_at": (ASKED + timedelta(minutes=minutes)).isoformat(),
        "responded_by_user": {"id": "7", "name": "Rita Reviewer"},
        "timedout": False,
    }
    return {**value, **{name: changes[name] for name in value if name in changes}}


def answer(minutes: int = 0, **changes: Any) -> Answer:
    return read_answer(kept(minutes, **changes))


def rejection(minutes: int = 0) -> dict[str, Any]:
    return kept(minutes, chosen_options=["Reject"], params_input={"reason": "", "expires": None})
