"""Topics and partitions over several snapshots: identity, growth, leader changes, truncation, replicas and open transactions."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from kafka_audit.store.history import History, read_history
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows
from spark_jobs.rows.topic.past_topics import all_were_listed

pytestmark = pytest.mark.spark


def cluster(*, log_end: int, last_stable: int, isr: list[int], epoch: int, grown: int, recreated: str) -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    one.topic("steady", isr=isr).offsets("steady", log_start=0, log_end=log_end, last_stable=last_stable)
    one.tables["partitions"][0]["leader_epoch"] = epoch
    one.topic("grown", partitions=grown).topic("widened", replicas=[1, 2, 3] if grown == 4 else [1, 2], isr=[1, 2])
    one.topic("recreated", topic_id=recreated).offsets("recreated", log_start=0, log_end=log_end * 10, last_stable=log_end * 10)
    return one.topic("without-id", topic_id=None).offsets("without-id", log_start=0, log_end=log_end, last_stable=log_end)


@pytest.fixture(scope="module")
def history() -> tuple[Synthetic, dict[float, Synthetic]]:
    now = cluster(log_end=90, last_stable=70, isr=[1, 2], epoch=9, grown=4, recreated="second")
    now.topic("new").offsets("new", log_start=0, log_end=0, last_stable=0)
    hour = cluster(log_end=80, last_stable=80, isr=[1], epoch=7, grown=2, recreated="first")
    hour.error("offsets", "TIMEOUT", topic="grown")
    day = cluster(log_end=100, last_stable=95, isr=[1, 2, 3], epoch=2, grown=2, recreated="first")
    older = cluster(log_end=60, last_stable=60, isr=[1], epoch=1, grown=1, recreated="zeroth")
    return now, {1: hour, 24: day, 48: older}


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, history) -> dict[str, dict[str, dict[str, Any]]]:
    """Subject -> resource -> row, and "verdicts" -> "code resource" -> finding."""
    folder = tmp_path_factory.mktemp("root")
    for hours, past in history[1].items():
        past.write(folder, READ_AT - timedelta(hours=hours))
    snapshot, policy = history[0].write(folder), load_policy()
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    found: dict[str, dict[str, dict[str, Any]]] = {"verdicts": {}}
    with evidence.tables.settings():
        for subject in ("topic", "partition"):
            rows = evidence.tables.shorten(wide_rows(subject, evidence, policy))
            collected = rows.collect()
            found[subject] = {row["resource"]: row.asDict(recursive=True) for row in collected}
            assert len(found[subject]) == len(collected)
            controls = [one for one in load_catalogue().of_subject(subject) if one.code in {code for _, code in VERDICTS}]
            findings = judge(rows, controls, None, PolicyColumns(policy=policy, at=READ_AT)).collect()
            found["verdicts"] |= {f"{one['code']} {one['resource']}": one.asDict() for one in findings}
    return found


TOPICS = {
    "the same in every snapshot": (
        "steady",
        {"snapshots": 4, "history_ms": 48 * HOUR_MS, "earlier_topic_ids": [], "partition_count_before": 1},
    ),
    "grown since the snapshot before": ("grown", {"snapshots": 4, "partition_count": 4, "partition_count_before": 2}),
    "created again twice": (
        "recreated",
        {"snapshots": 1, "history_ms": 0, "earlier_topic_ids": ["zeroth", "first"], "partition_count_before": None},
    ),
    "seen for the first time": ("new", {"snapshots": 1, "history_ms": 0, "earlier_topic_ids": [], "partition_count_before": None}),
    "without an id nothing is known to be the same": (
        "without-id",
        {"snapshots": 1, "earlier_topic_ids": [], "partition_count_before": None},
    ),
}


@pytest.mark.parametrize("case", TOPICS)
def test_a_topic_over_time(case: str, judged) -> None:
    resource, expected = TOPICS[case]
    assert {name: judged["topic"][resource][name] for name in expected} == expected


PARTITIONS = {
    "the largest earlier end counts, not the nearest": ("steady-0", {"log_end": 90, "log_end_before": 100}),
    "leader changes since the snapshot before": ("steady-0", {"leader_changes": 2, "earlier_ms": HOUR_MS}),
    "replicas and stable offsets, this snapshot first": ("steady-0", {"isr_counts": [2, 1, 3, 1], "behind_stable": [20, 0, 5, 0]}),
    "an interrupted run of missing replicas goes back to its interruption": ("steady-0", {"under_replicated_ms": HOUR_MS}),
    "a partition that was added has no past": (
        "grown-3",
        {"snapshots": 1, "log_end_before": None, "leader_changes": None, "isr_counts": [3]},
    ),
    "a replica that it did not have then was not missing": ("widened-0", {"lagging_replicas": [3], "under_replicated_ms": 0}),
    "all its replicas are there": ("grown-0", {"snapshots": 4, "under_replicated_ms": None}),
    "an earlier topic of the same name is another one": (
        "recreated-0",
        {"snapshots": 1, "log_end": 900, "log_end_before": None, "behind_stable": [0], "earlier_ms": None},
    ),
    "without a topic id nothing is compared": ("without-id-0", {"snapshots": 1, "log_end_before": None, "isr_counts": [3]}),
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_a_partition_over_time(case: str, judged) -> None:
    resource, expected = PARTITIONS[case]
    assert {name: judged["partition"][resource][name] for name in expected} == expected


VERDICTS = {
    ("steady", "TOP-14"): "pass",
    ("recreated", "TOP-14"): "fail",
    ("new", "TOP-14"): "not_applicable",
    ("without-id", "TOP-14"): "not_assessed",
    ("grown", "TOP-15"): "fail",
    ("recreated", "TOP-15"): "not_applicable",
    ("steady-0", "REP-03"): "fail",
    ("steady-0", "REP-05"): "pass",
    ("steady-0", "REP-07"): "fail",
    ("recreated-0", "REP-07"): "not_applicable",
    ("new-0", "REP-07"): "not_applicable",
    ("steady-0", "TXN-02"): "pass",
}


def test_what_earlier_snapshots_show_is_judged(judged) -> None:
    assert {(resource, code): judged["verdicts"][f"{code} {resource}"]["status"] for resource, code in VERDICTS} == VERDICTS


@pytest.mark.parametrize(
    ("before", "said"),
    [
        (None, False),
        ({"scope": {"topics": ["*"]}, "errors": {"offsets": 3}}, True),
        ({"scope": {"topics": ["*"]}, "errors": {"topics": 1}}, False),
        ({"scope": {"topics": ["orders*"]}, "errors": {}}, False),
    ],
)
def test_a_topic_is_new_only_if_the_snapshot_before_would_have_shown_it(before: dict | None, said: bool) -> None:
    now = Snapshot(path=Path("now"), manifest={"scope": {"topics": ["*"]}})
    past = () if before is None else (Snapshot(path=Path("before"), manifest=before),)
    assert all_were_listed(Evidence(spark=None, snapshot=now, history=History(snapshots=past))) is said  # type: ignore[arg-type]
