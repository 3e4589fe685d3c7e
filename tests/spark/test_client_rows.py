"""Wide rows of producers and consumers: declared ones, with what the cluster shows about them, and undeclared ones."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.policy import Policy, load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.population import populations

pytestmark = pytest.mark.spark

TIERS = """
version: 1
default_tier: standard
tiers:
  no_loss: {replication_factor: 3, min_insync_replicas: 2, retention_ms: -1}
  standard: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 1000}
  best_effort: {replication_factor: 1, min_insync_replicas: 1, retention_ms: 1000}
topics: [{pattern: "pay*", tier: no_loss}, {pattern: "logs", tier: best_effort}]
groups: [{pattern: "g-logs", tier: best_effort}]
"""
WHO = "implementation: java, owner: shop team, declared_on: 2026-11-01, source: repo"
CLIENTS = f"""
version: 1
clients:
  - {{name: shop, kind: producer, {WHO}, topics: ["pay*", "logs"], settings: {{acks: 1, ack: all}}, attests: [send_errors_handled]}}
  - {{name: gone, kind: producer, {WHO}, topics: ["gone-*"], settings: {{transactional.id: t}}}}
  - {{name: bank, kind: producer, {WHO}, topics: ["ledger"], settings: {{transactional.id: t}}}}
  - {{name: books, kind: consumer, {WHO}, topics: ["pay*"], group: g-books, settings: {{enable.auto.commit: false}},
     attests: [commits_after_processing]}}
  - {{name: again, kind: consumer, {WHO}, topics: ["ledger"], group: g-books}}
  - {{name: abroad, kind: consumer, {WHO}, topics: ["other-*"], group: g-books}}
  - {{name: near, kind: consumer, {WHO}, topics: ["sec*"], group: g-books}}
  - {{name: lost, kind: consumer, {WHO}, group: "g' OR 1=1 --"}}
"""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    folder: Path = tmp_path_factory.mktemp("policy")
    (folder / "tiers.yaml").write_text(TIERS)
    (folder / "clients.yaml").write_text(CLIENTS)
    (folder / "slas.yaml").write_text("version: 1\ngroups: []\n")
    return load_policy(folder)


def batch(one: Synthetic, topic: str, producer_id: int | None, partition: int = 0, **more: object) -> None:
    one.offsets(topic, partition, log_start=0, log_end=9, max_timestamp_ms=READ_MS - HOUR_MS)
    header = {"producer_id": producer_id, "is_transactional": False, "is_control": False, "read_at": READ_AT}
    one.add("last_batches", topic=topic, partition=partition, **{**header, **more})


@pytest.fixture(scope="module")
def cluster() -> Synthetic:
    limits = {"group.min.session.timeout.ms": "6000", "group.max.session.timeout.ms": "1800000"}
    one = Synthetic(topics_in_scope=["[!o]*"]).brokers(
        {1: "a", 2: "b", 3: "c"}, {1: limits, 2: {**limits, "group.min.session.timeout.ms": "9000"}, 3: limits}
    )
    one.topic("payments", config={"unclean.leader.election.enable": "true"}).topic("logs").topic("ledger")
    one.topic("idempotent", partitions=2).topic("mixed", partitions=2).topic("idle").topic("dark")
    one.topic("__consumer_offsets", internal=True)
    batch(one, "payments", 7, is_transactional=True)
    batch(one, "logs", -1)
    for number, producer_id in ((0, 1), (1, 2)):
        batch(one, "idempotent", producer_id, number)
    for number, producer_id in ((0, 1), (1, -1)):
        batch(one, "mixed", producer_id, number)
    for topic in ("ledger", "idle", "__consumer_offsets"):
        one.offsets(topic, log_start=5, log_end=5)
    batch(one, "dark", None, error="TOPIC_AUTHORIZATION_FAILED", is_transactional=None, is_control=None)
    one.error("producers", "TOPIC_AUTHORIZATION_FAILED", topic="dark")
    one.group("g-books", assigned=[("payments", 0)], assignor="range").group("g-logs", state="Empty").commit("g-logs", "logs", 4)
    one.group("g-abroad", state="Empty").commit("g-abroad", "logs", 4).commit("g-abroad", "other-1", 4)
    one.group("g-hidden", state="Empty").commit("g-hidden", "secret", 4).group("g-deleted", state="Empty").commit("g-deleted", "gone", 4)
    one.add("replica_sizes", broker_id=1, path="/data", topic="secret", partition=0, size_bytes=1, is_future=False)
    one.group("g-dark", kind="consumer", assigned=[("dark", 0)]).group("g-share", kind="share", state="Empty")
    one.add("members", group_id="g-static", member_id="m", client_id="c", instance_id="pod-1", assignment=[])
    one.add("groups", group_id="g-static", group_type="classic", state="Stable", protocol_type="consumer", coordinator_id=1)
    one.add("groups", group_id="worker", group_type="classic", state="Empty", protocol_type="connect", coordinator_id=1)
    for name, value in (("consumer.session.timeout.ms", "45000"), ("consumer.heartbeat.interval.ms", "5000")):
        one.add("group_configs", group_id="g-dark", name=name, value=value, source="DEFAULT_CONFIG", is_sensitive=False, synonyms=[])
    return one


@pytest.fixture(scope="module")
def producers(rows_of, cluster, policy):
    return rows_of(cluster, "producer", policy)


@pytest.fixture(scope="module")
def consumers(rows_of, cluster, policy):
    return rows_of(cluster, "consumer", policy)


PRODUCERS = {
    "a declared one stands for its topics, in the strictest of their tiers": (
        "producer shop",
        {"declared": True, "topics": ["logs", "payments"], "topic_count": 2, "tier": "no_loss", "errors": {}},
    ),
    "what its owner stands for": ("producer shop", {"attested_error_handling": True, "unknown_settings": ["ack (acks?)"]}),
    "what its owner does not stand for": ("producer bank", {"attested_error_handling": False, "tier": "standard"}),
    "topics that are not there": ("producer gone", {"topics": [], "topic_count": 0, "tier": None, "errors": {}}),
    "all newest records have a producer id": (
        "topic idempotent",
        {"declared": False, "recent_write_partitions": 2, "idempotent_write_partitions": 2, "undecided_write_partitions": 0},
    ),
    "one has none": ("topic mixed", {"recent_write_partitions": 2, "idempotent_write_partitions": 1, "plain_write_partitions": 1}),
    "nobody writes": ("topic idle", {"recent_write_partitions": 0, "undecided_write_partitions": 0, "settings": None}),
    "who writes was not told": ("topic dark", {"plain_write_partitions": None, "undecided_write_partitions": 1}),
}


@pytest.mark.parametrize("case", PRODUCERS)
def test_a_producer(case: str, producers) -> None:
    resource, expected = PRODUCERS[case]
    assert {name: producers[resource][name] for name in expected} == expected


def test_a_declaration_says_who_when_where_and_what_is_odd(producers) -> None:
    assert producers["producer gone"]["declaration"] == (
        "declared by shop team on 2026-11-01, read from repo (java); none of its topics is in the snapshot"
    )
    assert producers["producer shop"]["declaration"].endswith("settings it does not have: ack (acks?)")
    assert producers["producer shop"]["settings"]["enable.idempotence"] == {
        "value": "false",
        "source": "turned off by the client because acks is 1",
    }


def test_internal_and_declared_topics_have_no_row_of_their_own(producers) -> None:
    assert sorted(name for name in producers if name.startswith("topic ")) == [
        "topic dark",
        "topic idempotent",
        "topic idle",
        "topic mixed",
    ]


CONSUMERS = {
    "a declared one with its group": (
        "consumer books",
        {
            "group_type": "classic",
            "assignor": "range",
            "member_count": 1,
            "static_members": 0,
            "attested_processing": True,
            "tier": "no_loss",
        },
    ),
    "its transactional topics": (
        "consumer books",
        {"topics": ["payments"], "transactional_topics": ["payments"], "unclean_topics": ["payments"]},
    ),
    "two may share a group; a declared transactional producer counts": (
        "consumer again",
        {"group_type": "classic", "transactional_topics": ["ledger"], "unclean_topics": [], "attested_processing": False},
    ),
    "the brokers' limits, where they are narrowest": ("consumer books", {"session_min_ms": 9000, "session_max_ms": 1_800_000}),
    "a group that is not there is no reason not to judge": (
        "consumer lost",
        {"group_type": None, "topics": None, "transactional_topics": None, "errors": {}},
    ),
    "a group that nobody declared": (
        "group g-logs",
        {"declared": False, "settings": None, "topics": ["logs"], "transactional_topics": [], "unclean_topics": [], "tier": "best_effort"},
    ),
    "unread topics may be transactional": (
        "group g-dark",
        {"transactional_topics": None, "unclean_topics": None, "group_type": "consumer", "tier": "standard"},
    ),
    "topics outside the scope may be transactional": ("consumer abroad", {"topics": None, "transactional_topics": None}),
    "so may a hidden one": ("consumer near", {"topics": None, "topic_count": None, "transactional_topics": None, "unclean_topics": None}),
    "the same of a group that nobody declared": ("group g-abroad", {"topics": ["logs"], "transactional_topics": None}),
    "and of one that reads nothing else": ("group g-hidden", {"topics": None, "transactional_topics": None, "unclean_topics": None}),
    "a deleted topic has no aborted records": ("group g-deleted", {"topics": [], "transactional_topics": [], "unclean_topics": []}),
    "configuration on the brokers": (
        "group g-dark",
        {
            "group_config": {
                "consumer.session.timeout.ms": {"value": "45000", "source": "DEFAULT_CONFIG"},
                "consumer.heartbeat.interval.ms": {"value": "5000", "source": "DEFAULT_CONFIG"},
            }
        },
    ),
    "static members": ("group g-static", {"member_count": 1, "static_members": 1, "group_config": None}),
}


@pytest.mark.parametrize("case", CONSUMERS)
def test_a_consumer(case: str, consumers) -> None:
    resource, expected = CONSUMERS[case]
    assert {name: consumers[resource][name] for name in expected} == expected


def test_share_groups_and_connects_workers_are_no_consumers(consumers) -> None:
    assert {name for name in consumers if name.startswith("group ")} == {
        f"group g-{each}" for each in ("abroad", "dark", "deleted", "hidden", "logs", "static")
    }
    assert consumers["consumer lost"]["declaration"].endswith("; the snapshot lists no such group")


@pytest.mark.parametrize("subject", ["producer", "consumer"])
def test_the_evidence_counts_as_many_clients_as_there_are_rows(
    subject: str, spark: SparkSession, cluster, policy, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue("tmp_path")
    rows = request.getfixturevalue(f"{subject}s")
    assert populations([subject], Evidence(spark=spark, snapshot=cluster.write(folder), small_cluster=True), policy)[subject] == len(rows)
