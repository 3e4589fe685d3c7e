"""Which of an asset's events tells how a cluster stands, and whether that is good enough."""

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from kafka_audit.audit.published import Event, newest_audit, unlike_default, why_stopped
from kafka_audit.audit.request import AuditRequest

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)
DAG = "kafka_reliability_audit__orders"
ENDS = {"PASSED": 0, "FAILED": 3, "INCOMPLETE": 4, "VOID": 4, "ERROR": 1}


def event(
    verdict: str = "PASSED", *, hours: float = 1, evidence: datetime | None = None, source: tuple = (DAG, "publish"), **changes
) -> Event:
    """An event of an audit that began ``hours`` before NOW, as the DAG of the cluster orders publishes it."""
    began = NOW - timedelta(hours=hours)
    extra = {
        "kind": "kafka-audit-verdict",
        "cluster": "orders",
        "audit_id": f"{began:%Y%m%dT%H%M%SZ}-ab12cd34ab12cd34",
        "verdict": verdict,
        "exit_code": ENDS[verdict],
        "started_at": began.isoformat(),
        "evidence_at": (evidence or began).isoformat(),
        "coverage": 1.0,
        "failed_by_severity": {},
        "reasons": ["a reason"],
        "sequence": 7,
        "manifest_sha256": "0" * 64,
        "unlike_default": [],
    }
    return Event(extra=extra | changes, dag_id=source[0], task_id=source[1], run_id="scheduled__1")


def stopped(*events: Event, at_least: str = "passed") -> str | None:
    return why_stopped(newest_audit(events, "orders"), at_least=at_least, max_age=timedelta(hours=26), now=NOW)


@pytest.mark.parametrize(
    ("at_least", "lets_through"),
    [("passed", {"PASSED"}), ("incomplete", {"PASSED", "INCOMPLETE"}), ("judged", {"PASSED", "INCOMPLETE", "FAILED"})],
)
def test_each_level_lets_its_verdicts_through_and_none_lets_void_or_error_through(at_least: str, lets_through: set[str]) -> None:
    found = {verdict for verdict in ENDS if stopped(event(verdict), at_least=at_least) is None}
    assert found == lets_through


def test_no_event_stops() -> None:
    assert stopped() == "no audit has been published"


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (NOW - timedelta(hours=26), None),
        (NOW - timedelta(hours=26, seconds=1), "longer than 1 day, 2:00:00"),
        (NOW + timedelta(minutes=5), None),
        (NOW + timedelta(minutes=5, seconds=1), "in the future"),
    ],
)
def test_evidence_that_is_old_or_from_the_future_stops(evidence: datetime, reason: str | None) -> None:
    said = stopped(event(evidence=evidence))
    assert said is None if reason is None else reason in str(said)


def test_a_pass_without_the_time_of_its_evidence_stops() -> None:
    assert stopped(event(evidence_at=None)) == "it does not say when the cluster was read"


def test_an_old_pass_that_is_published_again_does_not_hide_a_newer_failure() -> None:
    assert "ended FAILED" in str(stopped(event("PASSED", hours=12), event("FAILED", hours=1), event("PASSED", hours=12)))


def test_of_one_audit_that_was_cleared_the_newest_event_counts() -> None:
    assert stopped(event("PASSED"), event("ERROR")) is None
    assert "ended ERROR" in str(stopped(event("ERROR"), event("PASSED")))


@pytest.mark.parametrize(
    ("forged", "why"),
    [
        (event(source=(None, None)), "created by hand or by another program"),
        (event(source=("their_dag", "publish")), "of the task publish of the DAG their_dag, which is not an audit of orders"),
        (event(source=(DAG, "report")), "of the task report"),
        (event(source=("kafka_reliability_audit__payments", "publish")), "which is not an audit of orders"),
        (event(cluster="payments"), "is about the cluster payments"),
        (event(kind="something"), "is not a verdict (kind)"),
        (event(verdict="PASSED", exit_code=3), "is not a verdict (the whole)"),
        (event(started_at="2026-11-20T11:00:00"), "is not a verdict (started_at)"),
        (event(coverage=7), "is not a verdict (coverage)"),
        (Event(extra=None, dag_id=DAG, task_id="publish", run_id="r"), "is not a verdict (audit_id, cluster,"),
        (event(unlike_default=["topics", "a\u202eb"]), "was run with other parameters: topics, a\\u202eb"),
    ],
)
def test_an_event_that_is_no_verdict_on_the_whole_cluster_neither_opens_nor_hides_anything(forged: Event, why: str) -> None:
    alone = newest_audit([forged], "orders")
    assert alone.verdict is None
    assert why in alone.passed_over[0]
    assert stopped(forged) == "none of the 20 newest events tells of an audit that counts"
    assert stopped(forged, event()) is None
    assert "ended FAILED" in str(stopped(forged, event("FAILED")))


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("KAFKA_AUDIT_POLICY", "KAFKA_AUDIT_CONTROLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KAFKA_AUDIT_FOLDERS", str(tmp_path))
    yield str(tmp_path)


def test_a_run_that_judges_less_or_by_another_policy_is_told_apart_from_a_stricter_one(policy: str) -> None:
    looser = {"fail_on": "critical", "fail_on_new": True, "min_coverage": 0.89, "max_age_seconds": 3601}
    other = {"topics": "a*", "groups": "b", "policy_dir": policy, "controls_dirs": policy}
    for name, value in (looser | other).items():
        assert unlike_default(AuditRequest(**{name: value})) == (name,)
    assert unlike_default(AuditRequest(fail_on="info", min_coverage=1, max_age_seconds=60, formats="pdf", cluster="orders")) == ()
