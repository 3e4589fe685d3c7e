"""Topics that Connect, MirrorMaker 2 and Streams keep for themselves are known by their shape, and others are not taken for them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import Synthetic

from kafka_audit.policy import load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.part import population
from spark_jobs.rows.build import wide_rows
from spark_jobs.rows.topic.framework_topics import framework_topics

pytestmark = pytest.mark.spark

COMPACT = {"cleanup.policy": "compact"}
OWN = {
    "connect-offsets": "Kafka Connect",
    "my-connect-cluster_status": "Kafka Connect",
    "team.connect.configs": "Kafka Connect",
    "mm2-offset-syncs.west.internal": "MirrorMaker 2",
    "west.checkpoints.internal": "MirrorMaker 2",
    "heartbeats": "MirrorMaker 2",
    "my-app-sums-changelog": "Kafka Streams",
    "my-app-KSTREAM-MAP-0000000003-repartition": "Kafka Streams",
}
OF_STREAMS = {
    "my-app-sums-changelog": {"cleanup.policy": "compact,delete"},
    "my-app-KSTREAM-MAP-0000000003-repartition": {"retention.ms": "-1"},
}
OTHERS = {
    "my-app-events-changelog": {"cleanup.policy": "delete", "retention.ms": "3600000"},
    "my-app-by-customer-repartition": {"cleanup.policy": "delete", "retention.ms": "3600000"},
    "connect-orders": COMPACT,
    "disconnect-status": COMPACT,
    "bridge-connect-offsets": {},
    "orders-changelog": COMPACT,
    "status": COMPACT,
}


def evidence(spark: SparkSession, folder: Path, *, workers: bool = True) -> Evidence:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for topic in OWN:
        one.topic(topic, config=OF_STREAMS.get(topic, COMPACT))
    for topic, config in OTHERS.items():
        one.topic(topic, config=config)
    one.group("my-app", assigned=[])
    if workers:
        one.group("workers", protocol_type="connect", assigned=[])
    return Evidence(spark=spark, snapshot=one.write(folder))


def test_a_frameworks_own_topics_are_known_by_name_cleanup_policy_and_groups(spark: SparkSession, tmp_path: Path) -> None:
    rows = framework_topics(evidence(spark, tmp_path)).collect()
    assert {row.topic: row.framework for row in rows} == OWN


def test_without_a_group_of_workers_no_topic_is_taken_for_connects(spark: SparkSession, tmp_path: Path) -> None:
    rows = framework_topics(evidence(spark, tmp_path, workers=False)).collect()
    assert {row.topic: row.framework for row in rows} == {name: of for name, of in OWN.items() if of != "Kafka Connect"}


def test_nobody_is_asked_to_declare_who_writes_a_frameworks_own_topics(spark: SparkSession, tmp_path: Path) -> None:
    found, policy = evidence(spark, tmp_path), load_policy()
    rows = wide_rows("producer", found, policy).collect()
    assert {row.resource for row in rows} == {f"topic {name}" for name in OTHERS}
    assert population("producer", found, policy) == len(rows)
