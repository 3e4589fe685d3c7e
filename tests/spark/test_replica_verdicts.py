"""Verdicts on replicas: running reassignments, what brokers of old releases do, racks, and which earlier snapshot a change is counted from."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import CLUSTER, HOUR_MS, READ_AT, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit
from kafka_audit.store.sealed import OFFSETS
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c", 4: "c", 5: "b"}
OLD, UNKNOWN = 4, 5
WEEK_MS = 7 * 24 * HOUR_MS


def cluster(*, grown: int, epoch: int = 0) -> Synthetic:
    one = Synthetic().brokers(RACKS, describe_cluster_versions={OLD: 0, UNKNOWN: None})
    one.topic("grown", partitions=grown)
    one.topic("churned")
    one.tables["partitions"][-1]["leader_epoch"] = epoch
    for topic in ("stuck", "moving", "retargeted"):
        one.topic(topic, replicas=[1, 2, 3, 4], isr=[1, 2, 3])
    return one.topic("late-read")


def moves(one: Synthetic, topic: str, adding: list[int], removing: list[int]) -> Synthetic:
    return one.add("reassignments", topic=topic, partition=0, adding_replicas=adding, removing_replicas=removing)


@pytest.fixture(scope="module")
def now() -> Synthetic:
    one = cluster(grown=4, epoch=60).topic("young", partitions=4).topic("younger", partitions=4)
    for topic in ("stuck", "moving", "retargeted"):
        moves(one, topic, [4], [3])
    moves(one.topic("rising", replicas=[1, 2, 3], isr=[1]), "rising", [2, 3], [])
    moves(one.topic("falling", replicas=[1, 2, 3, 4], isr=[1, 2, 3]), "falling", [4], [1, 2, 3])
    for topic, broker in (("on-new", 1), ("on-old", OLD), ("on-unknown", UNKNOWN)):
        one.topic(topic, replicas=[broker])
    one.topic("capped-old", replicas=[OLD, 1, 2], isr=[OLD, 1], config={"min.insync.replicas": "2"})
    one.topic("spread").topic("short", isr=[1, 2])
    one.topic("uneven", partitions=3)
    one.tables["partitions"][-2] |= {"replicas": [1, 2], "isr": [1, 2]}
    one.topic("tiered", config={"remote.storage.enable": "true", "remote.log.copy.disable": "false", "local.retention.ms": "-2"})
    one.topic("__remote_log_metadata", config={"retention.ms": str(HOUR_MS)})
    one.offsets("younger", log_start=0, log_end=10, last_stable=10)
    return one.offsets("late-read", log_start=0, log_end=1000, last_stable=1000)


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, now: Synthetic) -> dict[tuple[str, str], dict]:
    """Findings by resource and code. The snapshot of 20 hours ago was audited, that of two hours ago was not, the newest is of offsets only."""
    folder: Path = tmp_path_factory.mktemp("root")
    older, audited, unaudited = cluster(grown=2), cluster(grown=2), cluster(grown=4, epoch=60)
    older.offsets("late-read", log_start=0, log_end=900, last_stable=900)
    unaudited.offsets("late-read", log_start=0, log_end=5000, last_stable=5000)
    unaudited.tables["offsets"][-1]["read_at"] = READ_AT + timedelta(minutes=3)
    for one in (older, audited, unaudited):
        moves(moves(one, "stuck", [4], [3]), "retargeted", [5], [3])
    older.write(folder, READ_AT - timedelta(hours=30))
    snapshot = audited.write(folder, READ_AT - timedelta(hours=20))
    root, audit_id = EvidenceRoot(path=folder), new_id(READ_AT - timedelta(hours=20), "audit")
    root.audit(CLUSTER, audit_id).path.mkdir(parents=True)
    seal_audit(root, CLUSTER, audit_id, {"audit_id": audit_id, "snapshot": {"snapshot_id": snapshot.snapshot_id}})
    unaudited.write(folder, READ_AT - timedelta(hours=2))
    light = cluster(grown=4).topic("young", partitions=2).topic("younger", partitions=4).offsets("younger", log_start=0, log_end=50)
    light.write(folder, READ_AT - timedelta(minutes=5), OFFSETS)
    return judged(spark, now, folder)


def judged(
    spark: SparkSession, cluster: Synthetic, folder: Path, *, small: bool = True, subjects: tuple[str, ...] = ("topic", "partition")
) -> dict[tuple[str, str], dict]:
    snapshot = cluster.write(folder)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=small)
    policy, catalogue, found = load_policy(), load_catalogue(), {}
    with evidence.tables.settings():
        for subject in subjects:
            rows = evidence.tables.shorten(wide_rows(subject, evidence, policy))
            for finding in judge(rows, catalogue.of_subject(subject), None, PolicyColumns(policy=policy, at=READ_AT)).collect():
                found[finding["resource"], finding["code"]] = finding.asDict()
    return found


VERDICTS = {
    # Kafka's effective minimum counts replicas that are being added.
    ("rising-0", "REP-02"): "fail",
    ("rising-0", "REP-03"): "fail",
    ("falling-0", "REP-02"): "pass",
    # Releases before 3.7 do not bound min.insync.replicas by the number of replicas (KAFKA-15583).
    ("on-new-0", "REP-02"): "pass",
    ("on-old-0", "REP-02"): "fail",
    ("on-unknown-0", "REP-02"): "not_assessed",
    ("on-unknown-0", "REP-03"): "not_applicable",
    ("capped-old-0", "REP-02"): "pass",
    # A reassignment that does not end.
    ("stuck-0", "REP-04"): "fail",
    ("moving-0", "REP-04"): "pass",
    ("retargeted-0", "REP-04"): "pass",
    # What a running reassignment leaves behind.
    ("falling", "TOP-01"): "fail",
    ("falling", "TOP-03"): "fail",
    ("rising", "TOP-01"): "fail",
    ("stuck", "TOP-01"): "pass",
    ("__remote_log_metadata", "TOP-11"): "fail",
    ("tiered", "TOP-11"): "pass",
    # What was read after this snapshot's ends is no earlier end.
    ("late-read-0", "REP-07"): "pass",
    ("younger-0", "REP-07"): "fail",
    ("younger-1", "REP-07"): "not_applicable",
    # Changes are counted from the snapshot of the last audit.
    ("grown", "TOP-15"): "fail",
    ("young", "TOP-15"): "fail",
    ("younger", "TOP-15"): "pass",
    ("churned-0", "REP-05"): "fail",
    # Replicas that are not in sync do not help when a rack is lost.
    ("spread", "TOP-10"): "pass",
    ("short", "TOP-10"): "fail",
}


def test_verdicts(found: dict[tuple[str, str], dict]) -> None:
    wrong = {
        f"{resource} {code}": found[resource, code]["status"]
        for (resource, code), right in VERDICTS.items()
        if found[resource, code]["status"] != right
    }
    assert "\n".join(f"{name}: {given}" for name, given in sorted(wrong.items())) == ""


SAID = {
    ("uneven", "TOP-01"): "fewest on partition 1",
    ("short", "TOP-10"): "in sync after losing a rack: 1 (partition 0)",
    ("stuck-0", "REP-04"): "in every snapshot since 30.0 h ago",
    ("on-old-0", "REP-02"): "older than 3.7",
    ("__remote_log_metadata", "TOP-11"): f"keeps records for {WEEK_MS}",
    ("grown", "TOP-15"): "2 in the snapshot of the last audit",
}


def test_findings_name_what_is_wrong(found: dict[tuple[str, str], dict]) -> None:
    wrong = [found[key]["observed"] for key, text in SAID.items() if text not in found[key]["observed"]]
    assert "\n".join(wrong) == ""


def test_a_reassignment_that_no_earlier_snapshot_tells_of_is_of_unknown_age(spark: SparkSession, tmp_path: Path) -> None:
    one = moves(Synthetic().brokers(RACKS).topic("moving", replicas=[1, 2, 3, 4], isr=[1, 2, 3]), "moving", [4], [3])
    finding = judged(spark, one, tmp_path, subjects=("partition",))["moving-0", "REP-04"]
    assert (finding["status"], finding["reason"]) == ("not_assessed", "a reassignment is in progress, and since when is not known")


@pytest.mark.usefixtures("large_clusters")
def test_large_and_small_clusters_get_the_same_findings(
    spark: SparkSession, tmp_path: Path, found: dict[tuple[str, str], dict], now: Synthetic
) -> None:
    alone = judged(spark, now, tmp_path / "small"), judged(spark, now, tmp_path / "large", small=False)
    assert alone[0] == alone[1]
