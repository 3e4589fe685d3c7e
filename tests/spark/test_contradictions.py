"""Evidence with contradictions: the verdicts that it touches say so, none passes, none is doubled, and the others stay as they are."""

import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

Findings = dict[tuple[str, str], dict[str, Any]]
SUBJECTS = ("broker", "cluster", "group", "group_partition", "group_sla", "partition", "topic")
LOG = {"log_start": 0, "log_end": 100, "last_stable": 100}


def twice(one: Synthetic, dataset: str, where: Mapping[str, Any], **other: Any) -> None:
    """The row of a dataset that has these values once more, with other ones."""
    (row,) = [row for row in one.tables[dataset] if where.items() <= row.items()]
    one.add(dataset, **{**row, **other})


def contradictory() -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for name in ("sound", "two-partitions", "two-configs", "two-ids", "two-ends", "two-commits", "two-groups", "same-twice", "future"):
        one.topic(name).offsets(name, **LOG)
    one.topic("strange-leader", leader=9).offsets("strange-leader", **LOG)
    one.topic("strange-isr", isr=[1, 2, 9]).offsets("strange-isr", **LOG)
    one.topic("negative").offsets("negative", log_start=0, log_end=-5, last_stable=-5)
    one.topic("backwards").offsets("backwards", log_start=200, log_end=100, last_stable=100)
    one.topic("read-tomorrow").add("offsets", topic="read-tomorrow", partition=0, read_at=READ_AT + timedelta(days=1), **LOG)
    for topic in ("sound", "two-ends", "negative", "backwards", "read-tomorrow", "two-commits", "two-groups", "same-twice", "future"):
        committed = {"two-commits": 40, "future": 130}.get(topic, 100)
        one.group(topic, assigned=[(topic, 0)], subscribed=[topic]).commit(topic, topic, committed)
    one.group("negative-commit", assigned=[("sound", 0)], subscribed=["sound"]).commit("negative-commit", "sound", -7)
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
