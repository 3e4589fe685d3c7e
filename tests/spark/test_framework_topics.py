"""Topics that Connect, MirrorMaker 2 and Streams keep for themselves are known by their shape, and others are not taken for them."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import Synthetic

from kafka_audit.policy import load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.population import populations
from spark_jobs.rows.build import wide_rows
from spark_jobs.rows.topic.framework_topics import PERHAPS, framework_topics

pytestmark = pytest.mark.spark

COMPACT = {"cleanup.policy": "compact"}
OWN = {
    "connect-offsets": "Kafka Connect",
    "connect-status": "Kafka Connect",
    "connect-configs": "Kafka Connect",
    "prod.cluster_Offset": "Kafka Connect",
    "prod.cluster_Statuses": "Kafka Connect",
    "prod.cluster_Config": "Kafka Connect",
    "mm2-offset-syncs.west.internal": "MirrorMaker 2",
    "west.checkpoints.internal": "MirrorMaker 2",
    "heartbeats": "MirrorMaker 2",
}
WINDOWED = {"cleanup.policy": "compact,delete"}
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1"}
DELETE = {"cleanup.policy": "delete", "retention.ms": "3600000"}
STREAMS = {"my-app-sums-changelog": COMPACT, "my-app-windows-changelog": WINDOWED, "my-app-KSTREAM-MAP-0000000003-repartition": KEPT}
OWN |= dict.fromkeys(STREAMS, "Kafka Streams")
OTHERS = {
    "my-app-events-changelog": DELETE,
    "my-app-by-customer-repartition": DELETE,
    "my-app-state-repartition": WINDOWED,
    "plain-windows-changelog": WINDOWED,
    "plain-orders-repartition": KEPT,
    "shared-windows-changelog": WINDOWED,
    "connect-orders": COMPACT,
    "my-connect-cluster_status": COMPACT,
    "connect-device-configs": COMPACT,
    "device.heartbeats.seen": COMPACT,
    **{f"disconnected-{kind}": COMPACT for kind in ("offsets", "status", "configs")},
    **{f"wide-connect-{kind}": COMPACT for kind in ("offsets", "status", "configs")},
    **{f"kept-connect-{kind}": COMPACT if kind != "status" else {} for kind in ("offsets", "status", "configs")},
    "disconnect-status": COMPACT,
    "bridge-connect-offsets": {},
    "orders-changelog": COMPACT,
    "status": COMPACT,
}


def evidence(spark: SparkSession, folder: Path, *more: str, workers: tuple[str, ...] = ("workers", "Prod.Cluster")) -> Evidence:
    """A cluster with all of these topics, ``more`` compacted ones, and these groups of Connect's workers."""
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for topic, framework in OWN.items():
        one.topic(topic, config=STREAMS[topic] if framework == "Kafka Streams" else COMPACT)
    for topic, config in OTHERS.items():
        one.topic(topic, config=config, partitions=2 if topic == "wide-connect-configs" else 1)
    for topic in more:
        one.topic(topic, config=COMPACT)
    one.group("my-app", assigned=[], assignor="stream")
    one.group("plain", assigned=[], assignor="range")
    one.group("shared", kind="share", protocol_type="share", assigned=[])
    for group in workers:
        one.group(group, protocol_type="connect", assigned=[])
    return Evidence(spark=spark, snapshot=one.write(folder), small_cluster=True)


def test_a_frameworks_own_topics_are_known_by_name_cleanup_policy_and_groups(spark: SparkSession, tmp_path: Path) -> None:
    rows = framework_topics(evidence(spark, tmp_path)).collect()
    assert {row.topic: row.framework for row in rows} == OWN


def test_without_a_group_of_workers_no_topic_is_taken_for_connects(spark: SparkSession, tmp_path: Path) -> None:
    rows = framework_topics(evidence(spark, tmp_path, workers=())).collect()
    assert {row.topic: row.framework for row in rows} == {name: of for name, of in OWN.items() if of != "Kafka Connect"}


def test_of_more_sets_of_topics_than_groups_of_workers_only_those_with_a_groups_name_are_connects(
    spark: SparkSession, tmp_path: Path
) -> None:
    more = [f"{name}-connect-{kind}" for name in ("acme", "sales") for kind in ("offsets", "status", "configs")]
    rows = framework_topics(evidence(spark, tmp_path, *more)).collect()
    assert {row.topic for row in rows if row.framework == "Kafka Connect"} == {name for name in OWN if name.startswith("prod.cluster")}


def test_where_not_all_topics_and_groups_were_read_a_topic_is_perhaps_connects_by_its_name(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("connect-configs", config=COMPACT).topic("orders", config=COMPACT)
    one.topics_in_scope = ["connect-configs", "orders"]
    found = Evidence(spark=spark, snapshot=one.write(tmp_path))
    assert [tuple(row) for row in framework_topics(found).collect()] == [("connect-configs", PERHAPS)]
    assert populations(["producer"], found, load_policy())["producer"] == 2  # nobody else can say who writes them


def test_heartbeats_are_mirror_makers_only_beside_another_topic_of_its(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("heartbeats", config=COMPACT).topic("device.heartbeats", config=COMPACT)
    assert framework_topics(Evidence(spark=spark, snapshot=one.write(tmp_path))).collect() == []


@pytest.mark.parametrize(
    "streams", [{"kind": "streams", "protocol_type": "streams"}, {"state": "Empty"}, {"state": "Empty", "protocol_type": None}]
)
def test_streams_by_its_own_protocol_and_one_that_is_stopped_keep_their_topics(
    streams: dict[str, str], spark: SparkSession, tmp_path: Path
) -> None:
    one = Synthetic().brokers({1: "a"}).topic("my-app-sums-changelog", config=COMPACT, replicas=[1]).group("my-app", **streams)
    rows = framework_topics(Evidence(spark=spark, snapshot=one.write(tmp_path))).collect()
    assert [(row.topic, row.framework) for row in rows] == [("my-app-sums-changelog", "Kafka Streams")]


def test_nobody_is_asked_to_declare_who_writes_a_frameworks_own_topics(spark: SparkSession, tmp_path: Path) -> None:
    found, policy = evidence(spark, tmp_path), load_policy()
    rows = wide_rows("producer", found, policy).collect()
    assert {row.resource for row in rows} == {f"topic {name}" for name in OTHERS}
    assert populations(["producer"], found, policy)["producer"] == len(rows)
