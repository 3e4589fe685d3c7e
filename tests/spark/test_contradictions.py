"""Evidence with contradictions: the verdicts that it touches say so, none passes, none is doubled, and the others stay as they are."""

import gc
import tempfile
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.errors import CollectionError
from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.consistent import without_contradictions
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

Findings = dict[tuple[str, str], dict[str, Any]]
SUBJECTS = ("broker", "cluster", "group_partition", "group_sla", "partition", "topic")
LOG = {"log_start": 0, "log_end": 100, "last_stable": 100}


def twice(one: Synthetic, dataset: str, where: Mapping[str, Any], **other: Any) -> None:
    """The row of a dataset that has these values once more, with other ones."""
    (row,) = [row for row in one.tables[dataset] if where.items() <= row.items()]
    one.add(dataset, **{**row, **other})


def contradictory() -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    groups = ("sound", "two-ends", "two-commits", "two-groups", "same-twice", "ahead", "negative", "backwards", "read-tomorrow")
    for name in ("two-partitions", "two-configs", "two-ids", "open", *groups[:6]):
        one.topic(name).offsets(name, **LOG)
    one.topic("strange-leader", leader=9).offsets("strange-leader", **LOG)
    one.topic("strange-isr", isr=[1, 2, 9]).offsets("strange-isr", **LOG)
    one.topic("negative").offsets("negative", log_start=0, log_end=-5, last_stable=-5)
    one.topic("backwards").offsets("backwards", log_start=200, log_end=100, last_stable=100)
    one.topic("read-tomorrow").add("offsets", topic="read-tomorrow", partition=0, read_at=READ_AT + timedelta(days=1), **LOG)
    for name in groups:
        one.group(name, assigned=[(name, 0)], subscribed=[name]).commit(name, name, {"two-commits": 40, "ahead": 130}.get(name, 100))
    one.group("minus", assigned=[("sound", 0)], subscribed=["sound"]).commit("minus", "sound", -7)
    twice(one, "partitions", {"topic": "two-partitions"}, leader=2, isr=[2])
    twice(one, "topic_configs", {"topic": "two-configs", "name": "min.insync.replicas"}, value="1")
    twice(one, "topics", {"topic": "two-ids"}, topic_id="another")
    twice(one, "offsets", {"topic": "two-ends"}, log_end=500, last_stable=500)
    twice(one, "committed_offsets", {"group_id": "two-commits"}, committed=100)
    twice(one, "groups", {"group_id": "two-groups"}, coordinator_id=2, state="Empty")
    for dataset in ("topics", "partitions", "offsets"):
        twice(one, dataset, {"topic": "same-twice"})
    for dataset in ("groups", "members", "committed_offsets"):
        twice(one, dataset, {"group_id": "same-twice"})
    twice(one, "broker_configs", {"broker_id": 2, "name": "unclean.leader.election.enable"}, value="true")
    # The cluster's clocks are an hour ahead: what has been open for 50 minutes seems to begin in ten.
    for row in one.tables["quorum"]:
        row.update({name: row[name] + HOUR_MS for name in ("last_fetch_timestamp_ms", "last_caught_up_timestamp_ms")})
    began = {"start_time_ms": READ_MS + HOUR_MS // 6, "timeout_ms": 60_000, "state": "Ongoing"}
    one.add("transactions", transactional_id="t", producer_id=7, partitions=[{"topic": "open", "partition": 0}], **began)
    one.add("producers", topic="open", partition=0, producer_id=7, last_timestamp_ms=READ_MS, current_txn_start_offset=50)
    return one


def judged(spark: SparkSession, folder: Path, one: Synthetic) -> Findings:
    snapshot, policy = one.write(folder), load_policy()
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    columns = PolicyColumns(policy=policy, at=READ_AT)
    controls = load_catalogue([shipped_controls()]).controls
    found: Findings = {}
    with evidence.tables.settings():
        for subject in SUBJECTS:
            rows = evidence.tables.keep(wide_rows(subject, evidence, policy))
            for finding in judge(rows, [each for each in controls if each.subject == subject], None, columns).collect():
                place = finding["code"], finding["resource"]
                assert place not in found, f"{place} is judged twice"
                found[place] = finding.asDict()
    return found


@pytest.fixture(scope="module")
def findings(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return judged(spark, tmp_path_factory.mktemp("root"), contradictory())


SAID = {
    "a leader that is no replica": ("REP-01 strange-leader-0", "the leader, broker 9, is not among the replicas [1, 2, 3]"),
    "in-sync replicas that are no replicas": ("REP-02 strange-isr-0", "[1, 2, 9] are not all among the replicas [1, 2, 3]"),
    "also where the topic is judged": ("TOP-01 strange-isr", "[1, 2, 9] are not all among the replicas [1, 2, 3]"),
    "two leaders": ("REP-01 two-partitions-0", "leader: 1 or 2"),
    "two values of a setting": ("REP-02 two-configs-0", "name min.insync.replicas: 2 answers about the same differ in value: 2 or 1"),
    "two ids of a topic": ("TOP-14 two-ids", "topic_id: id-two-ids or another"),
    "two log ends": ("CON-04 two-ends:two-ends-0", "log_end: 100 or 500"),
    "a negative log end": ("CON-03 negative:negative-0", "an offset is negative: log start 0"),
    "a log that ends before it starts": ("CON-03 backwards:backwards-0", "log start 200, last stable offset 100, log end 100"),
    "an end that was read tomorrow": ("CON-04 read-tomorrow:read-tomorrow-0", "it was read at 2025-03-02T12:00:00+00:00"),
    "two commits": ("CON-04 two-commits:two-commits-0", "committed: 40 or 100"),
    "two commits, and lag": ("CON-01 two-commits", "committed: 40 or 100"),
    "a negative commit": ("CON-03 minus:sound-0", "committed is -7"),
    "two coordinators of a group": ("CON-04 two-groups:two-groups-0", "coordinator_id: 1 or 2"),
    "and where brokers are judged by their partitions": (
        "BRK-11 1",
        "CONTRADICTION: two-partitions-0: 2 answers about the same differ in leader",
    ),
    "clocks an hour apart": ("TXN-05 cluster", "the auditor's clock and the cluster's are 3,600 s apart"),
}


@pytest.mark.parametrize("case", SAID)
def test_a_contradiction_is_said_where_it_touches_a_verdict(case: str, findings: Findings) -> None:
    place, said = SAID[case]
    code, resource = place.split(" ")
    finding = findings[code, resource]
    assert (finding["status"], said in (finding["reason"] or "")) == ("not_assessed", True), finding


def test_what_is_a_fault_by_itself_fails(findings: Findings) -> None:
    assert findings["CON-04", "ahead:ahead-0"]["status"] == "fail"  # a commit beyond the log end
    assert findings["AUD-01", "cluster"]["status"] == "fail"  # evidence that could not be used, and clocks apart


def test_no_verdict_that_needs_contradicted_evidence_passes(findings: Findings) -> None:
    needs = {control.code: set(control.needs) for control in load_catalogue([shipped_controls()]).controls}
    passed = {place for place, finding in findings.items() if finding["status"] == "pass"}
    touched = {
        "partitions": {"strange-leader-0", "strange-isr-0", "two-partitions-0", "strange-leader", "strange-isr", "two-partitions"},
        "topic_configs": {"two-configs-0", "two-configs"},
        "topics": {"two-ids-0", "two-ids"},
        "offsets": {f"{name}:{name}-0" for name in ("two-ends", "negative", "backwards", "read-tomorrow")},
        "committed_offsets": {"two-commits:two-commits-0", "minus:sound-0", "two-groups:two-groups-0", "two-commits", "minus"},
        "groups": {"two-groups"},
        "members": {"two-groups"},
        "broker_configs": {"2"},
        "transactions": {"cluster", "open-0"},
    }
    assert [
        place for place in sorted(passed) for name, resources in touched.items() if place[1] in resources and name in needs[place[0]]
    ] == []


def test_what_is_told_twice_alike_is_told_once_and_nothing_else_suffers(findings: Findings) -> None:
    places = ("REP-01 sound-0", "REP-02 sound-0", "CON-04 sound:sound-0", "REP-01 same-twice-0", "CON-04 same-twice:same-twice-0")
    assert {place: findings[tuple(place.split(" "))]["status"] for place in places} == dict.fromkeys(places, "pass")


def test_the_snapshot_stays_as_it_was_also_where_nothing_may_be_written_beside_it_and_nothing_is_left(tmp_path: Path) -> None:
    snapshot, audit = contradictory().write(tmp_path / "root"), tmp_path / "audit"
    audit.mkdir()
    snapshot.path.parent.chmod(0o550)
    try:
        view = without_contradictions(snapshot, audit)
        assert sorted(one.name for one in snapshot.path.parent.iterdir()) == [snapshot.snapshot_id]
    finally:
        snapshot.path.parent.chmod(0o750)
    assert view.dataset("offsets").is_relative_to(audit)
    assert view.dataset("acls") == snapshot.dataset("acls")
    Snapshot.verified(view.path)
    assert without_contradictions(snapshot).dataset("offsets").is_relative_to(tempfile.gettempdir())
    del view
    gc.collect()
    assert list(audit.iterdir()) == []


def test_a_view_that_cannot_be_written_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    with pytest.raises(CollectionError, match=str(tmp_path / "nowhere")):
        without_contradictions(contradictory().write(tmp_path / "root"), tmp_path / "nowhere")
