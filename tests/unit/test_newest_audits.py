"""What the pages know of each cluster: the newest audit that the reader may read, how old it is, and what is said where there is none."""

import json
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from overviews import DAG, NOW, begun, overview, sealed

from kafka_audit.airflow.web.newest import Cluster, read_cluster, read_clusters
from kafka_audit.airflow.web.past_audits import past_audits
from kafka_audit.airflow.web.unsealed import of_unsealed
from kafka_audit.audit.clusters import DagCluster
from kafka_audit.index.overview import OVERVIEW
from kafka_audit.index.read import newest_index
from kafka_audit.index.shown import shown_audit
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit

LIMIT = timedelta(hours=26)


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    return EvidenceRoot(path=tmp_path / "root")


def everything(_dag_id: str) -> bool:
    return True


def read(root: EvidenceRoot, name: str = "orders-prod", **facts: Any) -> Cluster:
    found = read_cluster(root, name, facts.pop("may_read", everything), **{"dag_id": None, "now": NOW, "limit": LIMIT, **facts})
    assert found is not None
    return found


def test_a_passed_audit_within_the_limit_is_healthy(root: EvidenceRoot) -> None:
    sealed(root, overview(verdict="PASSED", age_hours=25.9))
    found = read(root)
    assert (found.verdict, found.stale, found.healthy, found.why) == ("PASSED", False, True, ())
    assert found.dag_id == f"{DAG}__orders-prod"


def test_an_audit_older_than_the_limit_is_stale_although_offsets_snapshots_go_on(root: EvidenceRoot) -> None:
    sealed(root, overview(verdict="PASSED", age_hours=26.1))
    (root.path / "offsets" / "orders-prod" / new_id(NOW - timedelta(minutes=5), "offsets")).mkdir(parents=True)
    found = read(root)
    assert found.stale and not found.healthy
    assert found.evidence_age == timedelta(minutes=5)
    assert found.audit_age == timedelta(hours=26.1)


def test_a_made_up_audit_is_never_healthy(root: EvidenceRoot) -> None:
    sealed(root, overview(verdict="PASSED", sample=True))
    found = read(root)
    assert not found.healthy
    assert "made up" in found.why[0]


def test_a_cluster_with_a_dag_and_no_audit_is_listed_as_that(root: EvidenceRoot) -> None:
    (found,) = read_clusters(root, everything, [DagCluster(name="orders", kafka_conn_id="x", listed=True)], NOW)
    assert (found.verdict, found.stale, found.healthy, found.evidence_age) == ("NO AUDIT", False, False, None)
    assert found.why == ("There is no audit of this cluster yet that you may read.",)


def test_a_first_audit_that_is_not_sealed_says_that_nothing_is_known(root: EvidenceRoot) -> None:
    begun(root, overview())
    found = read(root)
    assert (found.verdict, found.overview) == ("NOT SEALED", None)
    assert found.why == ("No audit of this cluster is sealed yet, so nothing is known of it.",)


def test_a_newer_audit_that_is_not_sealed_leaves_the_sealed_one_in_place(root: EvidenceRoot) -> None:
    sealed(root, overview(age_hours=5))
    newer = overview(age_hours=1)
    begun(root, newer)
    begun(root, overview(age_hours=2))
    found = read(root)
    assert found.verdict == "FAILED" and found.audit_age == timedelta(hours=5)
    assert found.unsealed is not None and found.unsealed.audit_id == newer.audit_id


def test_an_older_audit_that_was_sealed_once_more_does_not_stand_for_the_cluster(root: EvidenceRoot) -> None:
    newer = sealed(root, overview(age_hours=1))
    sealed(root, overview(verdict="PASSED", age_hours=5))
    found, shown = read(root), shown_audit(root, "orders-prod", lambda _: True)
    assert (found.verdict, found.healthy, found.audit_age) == ("FAILED", False, timedelta(hours=1))
    assert shown.index is not None and shown.index.audit.path == newer.path
    newest = newest_index(root, "orders-prod")
    assert newest is not None and newest.audit.path == newer.path


@pytest.mark.parametrize(
    ("state", "words"), [("running", "is running"), ("failed", "was cut short: its run ended (failed)"), (None, "runs still, or")]
)
def test_an_unsealed_audit_runs_or_was_cut_short_as_its_run_says(root: EvidenceRoot, state: str | None, words: str) -> None:
    begun(root, overview())
    audit = read(root).unsealed
    assert audit is not None
    assert words in of_unsealed(audit, {(audit.dag_id, audit.run_id): state} if state else {})


def test_a_void_audit_says_so(root: EvidenceRoot) -> None:
    sealed(root, overview(verdict="VOID"))
    assert "void" in read(root).why[0]


def test_an_index_that_was_changed_cannot_be_used_and_the_words_hide_where_the_folder_lies(root: EvidenceRoot) -> None:
    audit = sealed(root, overview(verdict="PASSED"))
    (audit.path / OVERVIEW).write_text("{}")
    found = read(root)
    assert (found.verdict, found.overview, found.healthy) == ("UNUSABLE", None, False)
    assert "was changed after the audit was sealed" in found.why[0]
    assert str(root.path) not in found.why[0]


def test_an_audit_of_another_schema_cannot_be_used(root: EvidenceRoot) -> None:
    sealed(root, overview().model_copy(update={"schema_version": 7}))
    found = read(root)
    assert found.verdict == "UNUSABLE"
    assert "schema version 7" in found.problem


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trend", 0, "coverage"), "1e999"),
        (("trend", 0, "availability_percent"), "-1e999"),
        (("budget", "used_minutes"), "1e999"),
        (("budget", "availability_percent"), "1e999"),
        (("trend", 0, "failed_by_severity", "critical"), '"many"'),
    ],
    ids=str,
)
def test_an_overview_with_figures_that_are_none_costs_only_its_own_cluster(root: EvidenceRoot, path: tuple[Any, ...], value: str) -> None:
    made = overview()
    audit = begun(root, made)
    record = made.model_dump(mode="json")
    part: Any = record
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = "PLACE"
    (audit.path / OVERVIEW).parent.mkdir()
    (audit.path / OVERVIEW).write_text(json.dumps(record).replace('"PLACE"', value))
    seal_audit(root, made.cluster, made.audit_id, {})
    assert read(root).verdict == "UNUSABLE"


def test_an_audit_that_was_sealed_last_and_is_gone_is_not_replaced_by_an_older_one(root: EvidenceRoot) -> None:
    sealed(root, overview(verdict="PASSED", age_hours=5))
    shutil.rmtree(sealed(root, overview(age_hours=1)).path)
    found = read(root)
    assert found.verdict == "UNUSABLE"
    assert "is gone" in found.problem


def test_audits_of_a_dag_whose_runs_the_reader_may_not_read_do_not_exist_for_the_reader(root: EvidenceRoot) -> None:
    sealed(root, overview(age_hours=5, dag_id=DAG))
    sealed(root, overview(age_hours=1))
    plain = read(root, may_read=DAG.__eq__)
    assert plain.overview is not None and plain.overview.dag_id == DAG
    assert [one.found.dag_id for one in past_audits(root, "orders-prod", DAG.__eq__).audits] == [DAG]
    assert read_clusters(root, "other".__eq__, [], NOW) == []
    sealed(root, overview("payments"))
    assert [one.name for one in read_clusters(root, DAG.__eq__, [], NOW)] == ["orders-prod"]


def test_folders_that_are_no_clusters_and_a_chain_that_cannot_be_read_hide_no_other_cluster(root: EvidenceRoot) -> None:
    sealed(root, overview("passed", verdict="PASSED"))
    sealed(root, overview("broken", verdict="PASSED"))
    audits = root.path / "audits"
    (audits / "broken" / ".chain.json").write_text("[")
    for name in ("Bad Name", "..x", ".tmp", "x" * 200):
        (audits / name / overview().audit_id).mkdir(parents=True)
    (audits / "file").write_text("")
    (audits / "linked").symlink_to(audits / "passed")
    known = read_clusters(root, everything, [], NOW)
    assert [(one.name, one.verdict) for one in known] == [("broken", "UNUSABLE"), ("passed", "PASSED")]


def test_the_worst_come_first_and_a_stale_one_before_those_of_its_verdict(root: EvidenceRoot) -> None:
    for name, verdict, age in (("a", "PASSED", 1), ("b", "PASSED", 99), ("c", "FAILED", 1), ("d", "VOID", 1)):
        sealed(root, overview(name, verdict=verdict, age_hours=age))
    begun(root, overview("e"))
    listed = sorted(read_clusters(root, everything, [], NOW), key=lambda one: one.order)
    assert [one.name for one in listed] == ["d", "c", "e", "b", "a"]


def test_audits_are_listed_a_page_at_a_time_without_gap_or_repetition(root: EvidenceRoot) -> None:
    made = [overview(age_hours=hours) for hours in range(1, 8)]
    for one in reversed(made):
        sealed(root, one)
    seen: list[str] = []
    before = ""
    for _ in range(3):
        page = past_audits(root, "orders-prod", everything, before, size=3)
        seen += [one.found.audit_id for one in page.audits]
        before = page.older or "none"
    assert seen == [one.audit_id for one in made]
    assert before == "none"


def test_a_list_of_audits_says_which_cannot_be_shown_and_why(root: EvidenceRoot) -> None:
    broken = sealed(root, overview(age_hours=3))
    (broken.path / OVERVIEW).unlink()
    sealed(root, overview(age_hours=2))
    begun(root, overview(age_hours=1))
    audits = past_audits(root, "orders-prod", everything).audits
    assert [one.verdict for one in audits] == ["NOT SEALED", "FAILED", "UNUSABLE"]
    assert audits[2].problem and str(root.path) not in audits[2].problem
