"""Topics and partitions: replication, racks, leaders and writers, also where part of the evidence is missing."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import Policy, load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.judge.population import populations
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

TIERS = """
version: 1
default_tier: best_effort
tiers:
  best_effort: {replication_factor: 1, min_insync_replicas: 1, retention_ms: 1000}
  no_loss: {replication_factor: 3, min_insync_replicas: 2, retention_ms: -1}
topics:
  - {pattern: "pay*s", tier: no_loss, owner: till, cleanup_policy: delete}
  - {pattern: "pay*", tier: best_effort}
  - {pattern: "wr[io]*", tier: no_loss}
"""

CLIENTS = """
version: 1
clients:
  - {name: till, kind: producer, implementation: java, owner: shop, declared_on: 2025-01-01, source: till.properties,
     topics: ["pay*"], settings: {max.request.size: 5000000}}
  - {name: report, kind: consumer, implementation: java, owner: shop, declared_on: 2025-01-01, source: report.properties,
     group: report, topics: ["payments"], settings: {fetch.max.bytes: "1000"}}
"""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    folder: Path = tmp_path_factory.mktemp("policy")
    (folder / "tiers.yaml").write_text(TIERS)
    (folder / "slas.yaml").write_text("version: 1\ngroups: []\n")
    (folder / "clients.yaml").write_text(CLIENTS)
    return load_policy(folder)


@pytest.fixture(scope="module")
def cluster() -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "b", 4: None}, {3: {"unclean.leader.election.enable": "true"}})
    one.topic("payments", replicas=[1, 2, 3]).topic("pay.log", replicas=[1]).topic("shrunk", replicas=[1, 2, 3], isr=[1])
    one.topic("offline", replicas=[2, 3], leader=-1, isr=[]).topic("dead-leader", replicas=[9, 2], leader=9)
    one.topic("unracked", replicas=[1, 2, 4]).topic("one-rack", replicas=[2, 3]).topic("growing", replicas=[1, 2, 3])
    one.add("reassignments", topic="growing", partition=0, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[])
    one.topic("clamped", replicas=[1], config={"min.insync.replicas": "5"}).topic("dark", without_config=True)
    one.error("topic_configs", "TOPIC_AUTHORIZATION_FAILED", topic="dark")
    one.topic("__consumer_offsets", replicas=[1], internal=True, config={"cleanup.policy": "compact"})
    one.topic("writes", partitions=6)
    recent, old = {"log_start": 0, "log_end": 9, "max_timestamp_ms": READ_MS - HOUR_MS}, {"max_timestamp_ms": READ_MS - 25 * HOUR_MS}
    for number in (0, 1, 2):
        one.offsets("writes", number, **recent)
    one.offsets("writes", 3, **{**recent, **old}).offsets("writes", 4, log_start=7, log_end=7).offsets(
        "writes", 5, error="NOT_LEADER_OR_FOLLOWER"
    )
    producer = {"producer_id": 1, "producer_epoch": 0, "last_sequence": 3, "coordinator_epoch": 0}
    one.add("producers", topic="writes", partition=0, last_timestamp_ms=READ_MS - HOUR_MS, **producer)
    one.add("producers", topic="writes", partition=1, last_timestamp_ms=READ_MS - 2 * HOUR_MS, **producer)
    one.error("producers", "TOPIC_AUTHORIZATION_FAILED", topic="writes", partition=2)
    # Times out of order within an hour: the newest record may be an earlier one of the same idempotent producer.
    one.topic("disordered").offsets("disordered", **recent)
    one.add("producers", topic="disordered", partition=0, last_timestamp_ms=READ_MS - HOUR_MS - HOUR_MS + 1, **producer)
    one.topic("writ-unread", partitions=2)
    for number in (0, 1):
        one.offsets("writ-unread", number, **recent)
    one.error("producers", "TOPIC_AUTHORIZATION_FAILED", topic="writ-unread")
    one.topic("headers", partitions=4)
    for number, told in enumerate(({"producer_id": 1}, {"producer_id": -1}, {"error": "OLD_FORMAT"}, {"error": "UNREAD"})):
        one.offsets("headers", number, **recent).add("last_batches", topic="headers", partition=number, **told)
    for number in (1, 2):
        one.add("producers", topic="headers", partition=number, last_timestamp_ms=READ_MS - HOUR_MS, **producer)
    one.add("topics", topic="refused", is_internal=False, error="TOPIC_AUTHORIZATION_FAILED")
    one.topic("leaderless", replicas=[1])
    one.tables["partitions"][-1] |= {"leader": -1, "error": "LEADER_NOT_AVAILABLE"}
    one.topic("hidden-replicas", replicas=[1])
    one.tables["partitions"][-1] |= {"error": "TOPIC_AUTHORIZATION_FAILED", "replicas": None, "isr": None, "leader": None}
    return one.add("replica_sizes", broker_id=2, path="/d", topic="payments", partition=0, size_bytes=5000, offset_lag=0, is_future=False)


@pytest.fixture(scope="module")
def topics(rows_of, cluster, policy):
    return rows_of(cluster, "topic", policy)


@pytest.fixture(scope="module")
def partitions(rows_of, cluster, policy):
    return rows_of(cluster, "partition", policy)


TOPICS = {
    "replication and racks": (
        "payments",
        {"replication_factor_min": 3, "rack_spread_min": 2, "rack_survivors_min": 1, "min_insync_replicas": 2},
    ),
    "all replicas are in sync": ("payments", {"isr_count_min": 3}),
    "the partition with the fewest in-sync replicas counts": ("shrunk", {"isr_count_min": 1}),
    "the largest replica counts": ("payments", {"size_bytes_max": 5000, "partition_count": 1}),
    "an unknown rack makes the spread unknown": (
        "unracked",
        {"rack_spread_min": None, "rack_survivors_min": None, "rack_survivors_best_case": 2, "racks": None},
    ),
    "all replicas in one rack": ("one-rack", {"rack_spread_min": 1, "rack_survivors_min": 0, "rack_survivors_best_case": 0}),
    "a replica being added does not count yet": ("growing", {"replication_factor_min": 2, "replication_factor_max": 2}),
    "min.insync.replicas above the replication factor is clamped": ("clamped", {"min_insync_replicas": 1}),
    "refused configuration is unknown": ("dark", {"config": None, "min_insync_replicas": None, "replication_factor_min": 3}),
    "internal topics are judged too": ("__consumer_offsets", {"is_internal": True, "replication_factor_min": 1}),
    "who wrote": (
        "writes",
        {
            "recent_write_partitions": 3,
            "identified_write_partitions": 1,
            "unidentified_write_partitions": 1,
            "unidentified_partitions": [1],
            "undecided_write_partitions": 2,
        },
    ),
    "a batch's own header decides before the producer state": (
        "headers",
        {
            "recent_write_partitions": 4,
            "identified_write_partitions": 2,
            "unidentified_write_partitions": 2,
            "unidentified_partitions": [1, 3],
            "undecided_write_partitions": 0,
            "header_read_partitions": 2,
        },
    ),
    "times out of order are no proof of another writer": (
        "disordered",
        {"recent_write_partitions": 1, "unidentified_write_partitions": None, "undecided_write_partitions": 1},
    ),
    "unreadable producers are not idempotent ones": (
        "writ-unread",
        {
            "recent_write_partitions": 2,
            "identified_write_partitions": None,
            "unidentified_write_partitions": None,
            "unidentified_partitions": None,
            "undecided_write_partitions": 2,
        },
    ),
    "unread offsets are no absence of writes": ("payments", {"recent_write_partitions": None, "undecided_write_partitions": 1}),
    "a refused topic has no figures": (
        "refused",
        {"replication_factor_min": None, "undecided_write_partitions": None, "partition_count": None},
    ),
}


@pytest.mark.parametrize("case", TOPICS)
def test_a_topic(case: str, topics) -> None:
    resource, expected = TOPICS[case]
    assert {name: topics[resource][name] for name in expected} == expected


def test_the_first_matching_pattern_decides_the_tier(topics) -> None:
    tiers = {name: topics[name]["policy"]["tier"] for name in ("payments", "pay.log", "writes", "shrunk")}
    assert tiers == {"payments": "no_loss", "pay.log": "best_effort", "writes": "no_loss", "shrunk": "best_effort"}
    asked = {"tier": "no_loss", "replication_factor": 3, "min_insync_replicas": 2, "retention_ms": -1, "cleanup_policy": "delete"}
    declared = topics["payments"]["policy"]
    assert {name: declared[name] for name in asked} == asked
    assert (declared["owner"], declared["unique_keys"], topics["shrunk"]["policy"]["owner"]) == ("till", None, None)


def test_a_topic_names_the_clients_that_are_declared_for_it(topics) -> None:
    producers, consumers = topics["payments"]["declared_producers"], topics["payments"]["declared_consumers"]
    assert [(one["name"], one["settings"]["max.request.size"]) for one in producers] == [("till", "5000000")]
    assert [(one["name"], one["settings"]["fetch.max.bytes"]) for one in consumers] == [("report", "1000")]
    assert [one["name"] for one in topics["pay.log"]["declared_producers"]] == ["till"]
    assert topics["pay.log"]["declared_consumers"] == topics["shrunk"]["declared_producers"] == []


def test_broker_values_are_the_distinct_values_of_all_brokers(topics) -> None:
    assert topics["payments"]["broker_values"]["unclean.leader.election.enable"] == ["false", "true"]
    assert topics["payments"]["broker_values"]["min.insync.replicas"] == ["2"]


def test_a_topic_carries_the_errors_of_its_partitions_with_count_and_first_example(topics) -> None:
    assert topics["writes"]["errors"]["producers"].startswith("on 1 of its partitions, first 2: TOPIC_AUTHORIZATION_FAILED")
    assert topics["writes"]["errors"]["offsets"] == "on 1 of its partitions, first 5: NOT_LEADER_OR_FOLLOWER"
    assert topics["dark"]["errors"]["topic_configs"].startswith("TOPIC_AUTHORIZATION_FAILED (SomeApi): refused")
    assert topics["refused"]["errors"] == {"topics": "TOPIC_AUTHORIZATION_FAILED"}
    assert topics["payments"]["errors"] == {}


PARTITIONS = {
    "healthy": (
        "payments-0",
        {"leader_alive": True, "isr_count": 3, "lagging_replicas": [], "reassigning": False, "min_insync_replicas": 2},
    ),
    "out of sync": ("shrunk-0", {"isr_count": 1, "lagging_replicas": [2, 3]}),
    "without a leader": ("offline-0", {"leader": -1, "leader_alive": False, "isr_count": 0}),
    "a leader that is not alive": ("dead-leader-0", {"leader_alive": False}),
    "a replica being added is not lagging": ("growing-0", {"reassigning": True, "replication_factor": 2, "lagging_replicas": []}),
    "unknown configuration": ("dark-0", {"min_insync_replicas": None, "isr_count": 3}),
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_a_partition(case: str, partitions) -> None:
    resource, expected = PARTITIONS[case]
    assert {name: partitions[resource][name] for name in expected} == expected


def test_a_leaderless_partition_is_a_state_and_no_missing_evidence(partitions) -> None:
    assert partitions["leaderless-0"]["errors"] == {}
    refused = partitions["hidden-replicas-0"]
    assert refused["errors"] == {"partitions": "TOPIC_AUTHORIZATION_FAILED"}
    unknown = ("leader_alive", "isr_count", "lagging_replicas", "replication_factor", "min_insync_replicas")
    assert {name: refused[name] for name in unknown} == dict.fromkeys(unknown)


def test_whole_datasets_that_failed_leave_every_row_unknown_and_say_why(rows_of) -> None:
    cluster = (
        Synthetic()
        .topic("t")
        .error("brokers", "TIMEOUT")
        .error("topic_configs", "REFUSED")
        .error("reassignments", "CLUSTER_AUTHORIZATION_FAILED")
    )
    cluster.error("offsets", "TIMEOUT")
    for dataset in ("topic_configs", "replica_sizes"):
        cluster.tables[dataset].clear()
    topic, partition = rows_of(cluster, "topic")["t"], rows_of(cluster, "partition")["t-0"]
    unknown = (
        "config",
        "racks",
        "rack_spread_min",
        "rack_survivors_best_case",
        "size_bytes_max",
        "min_insync_replicas",
        "recent_write_partitions",
    )
    assert {name: topic[name] for name in unknown} == dict.fromkeys(unknown)
    assert {name: partition[name] for name in ("leader_alive", "reassigning", "min_insync_replicas")} == {
        "leader_alive": None,
        "reassigning": None,
        "min_insync_replicas": None,
    }
    for row in (topic, partition):
        assert {"brokers", "topic_configs", "reassignments", "offsets"} <= set(row["errors"])
        assert row["errors"]["brokers"] == "TIMEOUT (SomeApi): refused"


def test_a_broker_that_did_not_answer_leaves_its_partitions_and_the_brokers_settings_unknown(rows_of) -> None:
    cluster = Synthetic().brokers({1: "a", 2: "b"}).topic("led-by-2", replicas=[2, 1]).topic("led-by-1", replicas=[1])
    cluster.offsets("led-by-1", log_start=0, log_end=0)
    for dataset in ("offsets", "broker_configs", "log_dirs"):
        cluster.error(dataset, "REQUEST_TIMED_OUT", broker_id=2)
    cluster.tables["broker_configs"] = [row for row in cluster.tables["broker_configs"] if row["broker_id"] == 1]
    found = rows_of(cluster, "topic")
    assert set(found["led-by-2"]["errors"]) == {"offsets", "broker_configs", "replica_sizes"}
    assert set(found["led-by-1"]["errors"]) == {"broker_configs"}
    assert found["led-by-1"]["broker_values"] == {}
    assert found["led-by-2"]["errors"]["broker_configs"] == "REQUEST_TIMED_OUT (SomeApi on broker 2): refused"


def test_an_internal_topic_that_is_hidden_from_the_auditor_is_not_assessed(spark: SparkSession, tmp_path: Path) -> None:
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("orders")
    for topic in ("__consumer_offsets", "secret"):
        cluster.add("replica_sizes", broker_id=1, path="/data", topic=topic, partition=0, size_bytes=1, offset_lag=0, is_future=False)
    evidence, policy = Evidence(spark=spark, snapshot=cluster.write(tmp_path), small_cluster=True), load_policy()
    topics = evidence.tables.shorten(wide_rows("topic", evidence, policy))
    rows = {row.topic: row for row in topics.collect()}
    assert set(rows) == {"orders", "__consumer_offsets"}
    assert rows["__consumer_offsets"].is_internal
    assert populations(["topic"], evidence, policy)["topic"] == len(rows)
    controls = [control for control in load_catalogue().of_subject("topic") if control.code == "BRK-03"]
    judged = judge(topics, controls, None, PolicyColumns(policy=policy, at=READ_AT)).collect()
    found = {row.resource: (row.status, row.reason) for row in judged}
    assert found["orders"][0] == "not_applicable"
    status, reason = found["__consumer_offsets"]
    assert status == "not_assessed"
    assert "the auditor lacks Describe on this topic" in reason
