"""Sample audits: a chain of made-up audits that the product's own steps judge, report and seal, and that say what they are."""

import shutil
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_template import CLUSTER, sample_template

from expectations.gate import judge_evidence, judge_findings
from kafka_audit.audit.check import check_audit
from kafka_audit.audit.listing import newest_audits
from kafka_audit.audit.request import DAG_ID
from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.index.overview import Overview
from kafka_audit.index.read import open_index
from kafka_audit.report.words import SAMPLE
from kafka_audit.sample.day import Day
from kafka_audit.sample.story import CLICKS, CLUSTERS, LAST, ORDERS, PAYMENTS, SampleCluster
from kafka_audit.sample.template import Template, newest_with_results, read_template
from kafka_audit.sample.write import Gates, has_history, write_history
from kafka_audit.store.chain_check import GONE
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.sealed import AUDIT

NOW = datetime(2026, 11, 26, 9, 30, tzinfo=timezone.utc)
GATES = Gates(evidence=judge_evidence, findings=judge_findings)
TOLD = replace(ORDERS, first=10, last=LAST, late=frozenset({14}))
"""Half of the story of the first cluster, with a void audit in it."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return sample_template(EvidenceRoot(path=tmp_path_factory.mktemp("template") / "root"))


@pytest.fixture(scope="module")
def root(template: Template, tmp_path_factory: pytest.TempPathFactory) -> EvidenceRoot:
    made = EvidenceRoot(path=tmp_path_factory.mktemp("samples"))
    assert write_history(template, made, TOLD, GATES, NOW) == len(TOLD.days)
    assert write_history(template, made, replace(CLICKS, first=16), GATES, NOW) == 5
    return made


def overviews(root: EvidenceRoot, cluster: SampleCluster) -> list[Overview]:
    found = [open_index(root.audit(cluster.name, one)) for one in root.sealed_ids(cluster.name, AUDIT)]
    return [one.overview for one in found if one]


def test_each_day_has_a_sealed_audit_that_verify_finds_intact(root: EvidenceRoot) -> None:
    for cluster in (TOLD, CLICKS):
        ids = root.sealed_ids(cluster.name, AUDIT)
        manifests = [read_json(root.audit(cluster.name, one).path / "manifest.json") for one in ids]
        assert [one["sequence"] for one in manifests] == list(range(1, len(ids) + 1))
        for audit_id in ids:
            checked = check_audit(root.audit(cluster.name, audit_id).path, root)
            assert not checked.problems and not checked.counted(GONE)


def test_a_sample_says_everywhere_that_it_is_one(root: EvidenceRoot) -> None:
    for audit_id in root.sealed_ids(TOLD.name, AUDIT):
        audit = root.audit(TOLD.name, audit_id)
        snapshot = root.snapshot(TOLD.name, audit.run()["snapshot_id"])
        assert audit.run()["sample"] is snapshot.manifest["sample"] is read_json(audit.path / "manifest.json")["sample"] is True
        assert snapshot.manifest["cluster_id"] == "sample-orders-made-up"
        report = read_json(audit.report / "report.json")
        assert report["sample"] is True and report["summary"].startswith(SAMPLE)
        assert SAMPLE in (audit.report / "report.html").read_text()
    assert all(one.sample for one in overviews(root, TOLD))
    assert all(one.name.startswith("sample-") for one in CLUSTERS)


def test_a_real_audit_does_not_say_that_it_is_a_sample(template: Template) -> None:
    assert "sample" not in template.audit.run() and "sample" not in template.snapshot.manifest


def test_the_gates_judge_what_the_story_tells(root: EvidenceRoot) -> None:
    verdicts = [one.verdict for one in overviews(root, TOLD)]
    assert verdicts == ["PASSED", *(["FAILED"] * 3), "VOID", *(["FAILED"] * 6)]
    assert [one.verdict for one in overviews(root, CLICKS)] == ["PASSED", "VOID", "INCOMPLETE", "PASSED", "PASSED"]


def test_every_page_has_something_to_show(root: EvidenceRoot) -> None:
    last = overviews(root, TOLD)[-1]
    assert len(last.trend) == len(TOLD.days) and len({str(one.failed_by_severity) for one in last.trend}) > 3
    counts = [one.changes.counts for one in overviews(root, TOLD) if one.changes]
    assert all(sum(one[kind] for one in counts) for kind in ("new", "resolved", "unchanged", "worse"))
    assert [one.status for one in last.waivers] == ["used", "expired", "unused", "not yet approved"]
    assert last.loss and last.loss.records == 210 and last.loss.within_a_day == 1
    assert [one.group_id for one in last.next_losses] == ["email-sender"] and [one.group_id for one in last.happened_losses] == ["billing"]
    assert last.budget and last.budget.group_id == "warehouse" and last.budget.used_share and 0.5 < last.budget.used_share < 1
    assert last.groups and last.groups.total == 5 and last.targets == 3


def test_a_waiver_that_expires_lets_its_failure_count_again(root: EvidenceRoot) -> None:
    waived = {day: one.failed["high"].waived for day, one in zip(TOLD.days, overviews(root, TOLD), strict=True) if one.failed}
    assert {day for day, number in waived.items() if number} == {day for day in waived if day < 16}


def test_lag_tables_findings_and_snapshot_of_a_day_agree(root: EvidenceRoot) -> None:
    lost_on = {}
    for day, audit_id in zip(TOLD.days, root.sealed_ids(TOLD.name, AUDIT), strict=True):
        audit = root.audit(TOLD.name, audit_id)
        snapshot = Snapshot.verified(root.snapshot_dir(TOLD.name, audit.run()["snapshot_id"]))
        rows = pq.read_table(audit.lag / "group_partitions.parquet").to_pylist()
        lost_on[day] = sum(row["lost"] for row in rows)
        findings = pq.read_table(audit.lag / "findings.parquet").to_pylist()
        failing = {row["resource"] for row in findings if row["code"] == "CON-03" and row["status"] == "fail"}
        assert failing == {row["resource"] for row in rows if row["lost"]}
        commits = {
            (row["group_id"], row["topic"], row["partition"]): row["committed"]
            for row in pq.read_table(snapshot.dataset("committed_offsets")).to_pylist()
        }
        assert commits == {(row["group_id"], row["topic"], row["partition"]): row["committed"] for row in rows}
    assert {day: lost for day, lost in lost_on.items() if lost} == {12: 1240, 13: 1240, 14: 1240, 19: 35, 20: 210}


def test_the_times_of_a_snapshot_lie_within_it(root: EvidenceRoot) -> None:
    for number, audit_id in zip(TOLD.days, root.sealed_ids(TOLD.name, AUDIT), strict=True):
        snapshot = root.snapshot(TOLD.name, root.audit(TOLD.name, audit_id).run()["snapshot_id"])
        taken = Day(cluster=TOLD, number=number, now=NOW).taken
        assert (
            datetime.fromisoformat(snapshot.manifest["started_at"])
            == taken
            == pq.read_table(snapshot.dataset("cluster"))["read_at"][0].as_py()
        )
        assert abs(pq.read_table(snapshot.dataset("offsets"))["max_timestamp_ms"][0].as_py() / 1000 - taken.timestamp()) < 60


def test_replicas_are_as_the_days_findings_say(root: EvidenceRoot) -> None:
    audit = root.audit(TOLD.name, root.sealed_ids(TOLD.name, AUDIT)[-1])
    for row in pq.read_table(root.snapshot(TOLD.name, audit.run()["snapshot_id"]).dataset("partitions")).to_pylist():
        assert sorted(row["replicas"]) == sorted(row["isr"]) == [1, 2, 3] and not row["offline_replicas"]


def test_the_same_template_and_time_give_the_same_seal(template: Template, tmp_path: Path) -> None:
    seals = []
    for place in (EvidenceRoot(path=tmp_path / name) for name in ("one", "other")):
        place.path.mkdir()
        write_history(template, place, replace(CLICKS, first=LAST), GATES, NOW)
        [audit_id] = place.sealed_ids(CLICKS.name, AUDIT)
        seals.append((place.audit(CLICKS.name, audit_id).path / "manifest.json").read_bytes())
    assert seals[0] == seals[1]


def test_nothing_is_there_before_the_last_audit_is_sealed(template: Template, tmp_path: Path) -> None:
    root = EvidenceRoot(path=tmp_path)

    def broken(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with pytest.raises(CollectionError, match="sample history of sample-clicks cannot be written"):
        write_history(template, root, replace(CLICKS, first=LAST), Gates(evidence=broken, findings=broken), NOW)
    assert not has_history(root, CLICKS) and not list(tmp_path.iterdir())


def test_whoever_may_read_runs_of_the_plain_dag_may_read_samples(root: EvidenceRoot) -> None:
    listed = newest_audits(root, lambda dag_id: dag_id == DAG_ID).audits
    assert {one.cluster for one in listed} == {TOLD.name, CLICKS.name} and all(one.has_report for one in listed)
    assert sum(one.has_docs for one in listed) == 2  # those of the newest audit of each
    assert not newest_audits(root, lambda dag_id: dag_id == "another").audits


def test_one_cluster_was_not_looked_at_for_days_and_the_others_today() -> None:
    ages = {one.name: NOW - Day(cluster=one, number=one.last, now=NOW).began for one in CLUSTERS}
    assert ages[PAYMENTS.name] > timedelta(days=4)
    assert max(ages[ORDERS.name], ages[CLICKS.name]) < timedelta(hours=1)


def test_a_template_is_the_newest_sealed_audit_with_results(template: Template, tmp_path: Path) -> None:
    root = template.snapshot.root
    assert newest_with_results(root, ["unknown", CLUSTER]) == (CLUSTER, template.audit.path.name)
    assert newest_with_results(root, ["unknown"]) is None
    copy = EvidenceRoot(path=tmp_path / "root")
    shutil.copytree(root.path, copy.path)
    part = next((copy.audit(CLUSTER, template.audit.path.name).settings / "findings.parquet").glob("*.parquet"))
    pq.write_table(pa.table({"control_id": ["forged"]}), part)
    with pytest.raises(IntegrityError, match="does not match its manifest"):
        read_template(copy, CLUSTER, template.audit.path.name)


def test_an_error_budget_is_kept_overspent_or_not_known_as_the_lag_of_the_story_has_it() -> None:
    found = {number: Day(cluster=PAYMENTS, number=number, now=NOW).availability("warehouse") for number in (7, 13)}
    assert (found[7].met, found[7].percent, found[7].unknown) == (None, 100.0, 5.5 * 24 * 60)
    assert found[13].allowed == 100.8 and found[13].minutes_out > 100.8 and found[13].met is False
    kept = Day(cluster=ORDERS, number=LAST, now=NOW).availability("warehouse")
    assert kept.met is True and kept.unknown == 0 and kept.minutes_in + kept.minutes_out == 7 * 24 * 60
    assert Day(cluster=ORDERS, number=LAST, now=NOW).availability("billing").met is None  # nothing is promised
