"""Overviews that others wrote, and names that are as long as Kafka lets them be: one cluster costs only its own figures, no other's page."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from overviews import NOW, loss, overview, sealed
from pydantic import ValidationError

from kafka_audit.airflow.web.answers import render
from kafka_audit.airflow.web.facts import of_cluster, of_clusters, of_matrix
from kafka_audit.airflow.web.newest import Cluster
from kafka_audit.errors import IntegrityError
from kafka_audit.index.build import MOST_OF_A_LIST, _fitting
from kafka_audit.index.overview import CONTROLS, OVERVIEW, Overview
from kafka_audit.index.read import open_index
from kafka_audit.store.layout import EvidenceRoot, seal_audit

HALF = "\ud800"


def record(**changes: object) -> dict[str, Any]:
    """An overview as its file has it."""
    return {**json.loads(json.dumps(overview().model_dump(mode="json"))), **changes}


def trend_of(**changes: object) -> list[Mapping[str, object]]:
    return [{**record()["trend"][0], **changes}]


@pytest.mark.parametrize(
    "changes",
    [
        {"trend": trend_of(coverage=1e308)},
        {"trend": trend_of(availability_percent=1e308)},
        {"trend": trend_of(coverage=-0.1)},
        {"trend": trend_of(failed_by_severity={"high": 10**400})},
        {"trend": trend_of(failed_by_severity={"high": -1})},
        {"targets": 1, "targets_missed": 2},
        {"targets": None},
        {"controls": record()["controls"][:1] * (CONTROLS + 1)},
        {"silent_brokers": record()["silent_brokers"] * 51},
        {"groups": {"total": 1, "by_state": {}, "by_status": {str(number): 1 for number in range(101)}}},
    ],
    ids=lambda changes: str(changes)[:60],
)
def test_an_overview_of_which_nothing_can_be_drawn_is_not_used(changes: dict[str, object]) -> None:
    Overview.model_validate(record())
    with pytest.raises(ValidationError):
        Overview.model_validate(record(**changes))


def test_names_with_half_a_character_break_no_page() -> None:
    first = overview()
    lines = (first.controls[0].model_copy(update={"control_id": f"a{HALF}"}), *first.controls[1:])
    made = overview(controls=lines, next_losses=(loss(f"g{HALF}", 1),), run_id=f"r{HALF}", trend=first.trend)
    known = Cluster(name="orders-prod", dag_id="d", now=NOW, limit=timedelta(hours=26), overview=made)
    pages = (
        render("clusters.html.j2", up="", **of_clusters([known], {})),
        render("cluster.html.j2", up="../../", **of_cluster(known, {}, None)),
        render("matrix.html.j2", up="../", **of_matrix([known])),
    )
    for page in pages:
        assert "orders-prod" in page
    assert "groups/one?id=g%5Cud800" in pages[1]


def test_what_an_overview_lists_has_a_limited_size_whatever_the_names() -> None:
    long = [loss("\x01" * 32_767, 1) for _ in range(50)]
    kept = _fitting(long)
    assert 0 < len(kept) < 10
    assert sum(len(one.model_dump_json()) for one in kept) <= MOST_OF_A_LIST * 1.25
    assert _fitting([loss("billing", 1)] * 50) == tuple([loss("billing", 1)] * 50)


def test_why_an_overview_cannot_be_used_is_found_once_for_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.index import read

    root, parsed = EvidenceRoot(path=tmp_path), []
    made = overview()
    audit = root.audit(made.cluster, made.audit_id)
    (audit.path / "index").mkdir(parents=True)
    (audit.path / OVERVIEW).write_text("[" * 100_000, encoding="utf-8")
    seal_audit(root, made.cluster, made.audit_id, {"snapshot": {"snapshot_id": "x"}})
    parse = read._read_overview
    monkeypatch.setattr(read, "_read_overview", lambda path, content: (parsed.append(path), parse(path, content))[1])
    for _ in range(3):
        with pytest.raises(IntegrityError, match="cannot be read as JSON"):
            open_index(audit)
    assert len(parsed) == 1


def test_an_overview_that_was_changed_while_it_is_read_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.index import read

    audit = sealed(EvidenceRoot(path=tmp_path), overview())
    forged = (audit.path / OVERVIEW).read_bytes().replace(b"FAILED", b"PASSED")
    monkeypatch.setattr(read, "bytes_of", lambda path: forged)
    with pytest.raises(IntegrityError, match="was changed after the audit was sealed"):
        open_index(audit)
