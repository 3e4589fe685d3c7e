"""Wide rows of the cluster, of brokers, and of what the policy declares."""

import hashlib
from pathlib import Path

import pytest
from snapshot_builder import READ_AT, READ_MS, Synthetic

from kafka_audit.policy import Policy, load_policy

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c"}


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    folder: Path = tmp_path_factory.mktemp("policy")
    (folder / "tiers.yaml").write_text(
        "version: 1\ndefault_tier: a\ntiers: {a: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 1}}\n"
        'declared_topics: [there, gone, hidden, refused, outside, "it\'s"]\ndeclared_groups: [alive, gone, outside]\n'
    )
    (folder / "slas.yaml").write_text("version: 1\n")
    return load_policy(folder)


def the(rows_of, cluster: Synthetic, **where) -> dict:
    return rows_of(cluster, "cluster", **where)["cluster"]


@pytest.fixture(scope="module")
def healthy(rows_of) -> dict:
    return the(rows_of, Synthetic().brokers(RACKS).topic("t"))


def test_a_healthy_cluster_has_nothing_unread_and_nothing_hidden(healthy: dict) -> None:
    expected = {
        "cluster_id": "cluster-id",
        "brokers_known": [1, 2, 3],
        "brokers_alive": [1, 2, 3],
        "brokers_answered": [1, 2, 3],
        "racks": 3,
        "brokers_without_rack": [],
        "voters": [1, 2, 3],
        "healthy_voters": [1, 2, 3],
        "drifting_keys": [],
        "weaker_override_count": 0,
        "weaker_overrides": [],
        "clock_skew_ms": 5,
        "unread_items": 0,
        "unread_by_dataset": {},
        "hidden_topics": [],
        "snapshot_seconds": 1.5,
        "policy": {"tier": "no_loss", "replication_factor": 3, "interval_ms": 86_400_000, "clients_declared": True},
        "errors": {},
    }
    assert {name: healthy[name] for name in expected} == expected


# Each of the next clusters has several peculiarities, none of which touches what the others are about: a row costs one query.


def drifting() -> Synthetic:
    one = Synthetic().brokers(RACKS, {2: {"offsets.retention.minutes": "5", "broker.rack": "b"}})
    one.topic("weak", config={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    return one.topic("same", config={"min.insync.replicas": "2"}).topic("stronger", config={"min.insync.replicas": "3"})


def add_topics_on_disk(one: Synthetic) -> Synthetic:
    for topic in ("secret", "__cluster_metadata", "elsewhere", "__consumer_offsets"):
        one.add("replica_sizes", broker_id=1, path="/d", topic=topic, partition=0, size_bytes=1, offset_lag=0, is_future=False)
    one.topics_in_scope = ["s*", "weak"]
    return one


def add_observers(one: Synthetic) -> Synthetic:
    for row in one.tables["quorum"]:
        row["replica_id"] += 100  # controllers of their own
    last_times = {1: READ_MS - 60_004, 2: READ_MS - 60_006, 3: -1, 4: READ_MS, 104: READ_MS}
    for number, last in last_times.items():
        one.add("quorum", replica_id=number, role="observer", is_leader=False, last_caught_up_timestamp_ms=last, read_at=READ_AT)
    return one


@pytest.fixture(scope="module")
def peculiar(rows_of) -> dict:
    return the(rows_of, add_observers(add_topics_on_disk(drifting())))


def test_drift_and_weaker_overrides_are_named_with_their_values(peculiar: dict) -> None:
    assert peculiar["drifting_keys"] == ["offsets.retention.minutes: 10080 (broker 1, 3), 5 (broker 2)"]
    assert peculiar["weaker_override_count"] == 2
    assert peculiar["weaker_overrides"] == [
        "weak: min.insync.replicas=1 (brokers: 2)",
        "weak: unclean.leader.election.enable=true (brokers: false)",
    ]


def test_topics_on_disk_that_metadata_does_not_show_are_hidden_unless_they_are_out_of_scope(peculiar: dict) -> None:
    assert peculiar["hidden_topics"] == ["__consumer_offsets", "secret"]


def test_observers_are_the_alive_brokers_that_are_no_voters_and_caught_up_by_the_leaders_clock(
    peculiar: dict, partly_unread: dict, lagging: dict, healthy: dict, unreadable: dict
) -> None:
    def observers(row: dict) -> tuple:
        return row["observers"], row["caught_up_observers"]

    assert observers(peculiar) == ([1, 2, 3], [1])
    assert observers(partly_unread) == ([1, 2, 3], None)
    assert observers(lagging) == ([5], []), "the leader drops an observer that has not fetched for five minutes"
    assert observers(healthy) == ([], [])
    assert observers(unreadable) == (None, None)


def add_topics_with_elr(one: Synthetic) -> Synthetic:
    one.topic("weak", config={"min.insync.replicas": "1"}).topic("unknown", config={"min.insync.replicas": "1"})
    one.tables["broker_configs"] = [row for row in one.tables["broker_configs"] if row["name"] != "min.insync.replicas"]
    chain = [("1", "DYNAMIC_TOPIC_CONFIG"), ("2", "DYNAMIC_DEFAULT_BROKER_CONFIG"), ("1", "DEFAULT_CONFIG")]
    for row in one.tables["topic_configs"]:
        if row["topic"] == "weak" and row["name"] == "min.insync.replicas":
            row["synonyms"] = [{"name": "min.insync.replicas", "value": value, "source": source} for value, source in chain]
    return one


@pytest.fixture(scope="module")
def lagging(rows_of) -> dict:
    """A cluster with voters that are behind, a broker of which the quorum tells nothing, and ELR."""
    cluster = Synthetic().brokers({1: "a", 2: "a", 3: "a", 4: None, 5: "a"})
    cluster.tables["quorum"] = [row for row in cluster.tables["quorum"] if row["replica_id"] != 5]
    for row, time in zip(cluster.tables["quorum"], (READ_MS - 700, READ_MS - 10_701, -1, READ_MS - 10_700), strict=True):
        row["last_caught_up_timestamp_ms"] = time
    return the(rows_of, add_topics_with_elr(cluster))


def test_with_elr_the_cluster_default_is_taken_from_the_topics_synonyms(lagging: dict) -> None:
    assert lagging["weaker_overrides"] == ["weak: min.insync.replicas=1 (brokers: 2)"]


def test_a_voter_that_is_behind_or_has_no_time_is_not_healthy(lagging: dict) -> None:
    assert (lagging["voters"], lagging["healthy_voters"], lagging["clock_skew_ms"]) == ([1, 2, 3, 4], [1, 4], 700)
    assert (lagging["racks"], lagging["brokers_without_rack"]) == (1, [4])


@pytest.fixture(scope="module")
def partly_unread(rows_of) -> dict:
    """A cluster whose quorum tells no times, with a topic whose configuration and a broker whose disks were not read."""
    cluster = add_observers(Synthetic().brokers(RACKS)).topic("dark", without_config=True).topic("shown")
    for row in cluster.tables["quorum"]:
        row["last_caught_up_timestamp_ms"] = None
    return the(rows_of, cluster.error("log_dirs", "REQUEST_TIMED_OUT", broker_id=2))


def test_no_weaker_override_is_claimed_while_something_could_not_be_compared(partly_unread: dict) -> None:
    assert (partly_unread["weaker_override_count"], partly_unread["weaker_overrides"]) == (None, None)


def test_without_quorum_times_health_and_clock_are_unknown(partly_unread: dict) -> None:
    figures = tuple(partly_unread[name] for name in ("voters", "healthy_voters", "clock_skew_ms"))
    assert figures == ([101, 102, 103], None, None)


def test_no_hidden_topic_is_claimed_to_be_absent_while_a_disk_is_unread(partly_unread: dict) -> None:
    assert partly_unread["hidden_topics"] is None
    assert "REQUEST_TIMED_OUT" in partly_unread["errors"]["log_dirs"]


@pytest.fixture(scope="module")
def unreadable(rows_of) -> dict:
    cluster = Synthetic()
    for dataset in ("brokers", "topics", "quorum", "broker_configs", "log_dirs", "replica_sizes"):
        cluster.error(dataset, "CLUSTER_AUTHORIZATION_FAILED")
    return the(rows_of, cluster)


def test_a_cluster_of_which_nothing_could_be_read_still_has_its_row_and_every_reason(unreadable: dict) -> None:
    unknown = (
        "cluster_id",
        "brokers_known",
        "brokers_alive",
        "racks",
        "brokers_without_rack",
        "voters",
        "healthy_voters",
        "drifting_keys",
        "hidden_topics",
    )
    assert {name: unreadable[name] for name in unknown} == dict.fromkeys(unknown)
    assert unreadable["unread_items"] == 6
    assert unreadable["unread_by_dataset"]["quorum"] == 1
    assert unreadable["errors"]["quorum"] == "CLUSTER_AUTHORIZATION_FAILED (SomeApi): refused"


def test_a_broker_that_is_silent_or_dead_has_unknown_settings_with_the_reason(rows_of) -> None:
    cluster = Synthetic().brokers(RACKS)
    cluster.tables["log_dirs"][0] |= {"error": "KAFKA_STORAGE_ERROR"}
    cluster.tables["log_dirs"][1] |= {"error": "CLUSTER_AUTHORIZATION_FAILED", "path": None}
    for dataset in ("broker_configs", "log_dirs"):
        cluster.tables[dataset] = [row for row in cluster.tables[dataset] if row["broker_id"] != 3]
    cluster.tables["brokers"][2] |= {"answered": False}
    cluster.add("brokers", broker_id=4, alive=False, answered=False)
    rows = rows_of(cluster, "broker")
    assert (rows["1"]["log_dirs"], rows["1"]["failed_log_dirs"], rows["1"]["errors"]) == (1, ["/data: KAFKA_STORAGE_ERROR"], {})
    assert (rows["2"]["log_dirs"], rows["2"]["failed_log_dirs"]) == (None, None)
    assert rows["2"]["errors"]["log_dirs"] == "CLUSTER_AUTHORIZATION_FAILED"
    assert rows["3"]["config"] is None
    assert rows["3"]["errors"]["broker_configs"] == "broker 3 did not answer every request"
    assert rows["4"]["errors"]["broker_configs"] == "broker 4 is not registered in the cluster"
    assert rows["1"]["config"]["default.replication.factor"]["value"] == "3"


def test_a_declared_topic_is_absent_only_when_nothing_can_hide_it(rows_of, policy) -> None:
    cluster = Synthetic().brokers(RACKS).topic("there")
    cluster.add("replica_sizes", broker_id=1, path="/d", topic="hidden", partition=0, size_bytes=1, offset_lag=0, is_future=False)
    cluster.error("topics", "TOPIC_AUTHORIZATION_FAILED", topic="refused")
    cluster.topics_in_scope = ["[!o]*"]
    rows = rows_of(cluster, "declared_topic", policy)
    assert {name: row["present"] for name, row in rows.items()} == {
        "there": True,
        "gone": False,
        "it's": False,
        "hidden": None,
        "refused": None,
        "outside": None,
    }
    assert "lacks Describe" in rows["hidden"]["errors"]["topics"]
    assert "outside the scope" in rows["outside"]["errors"]["topics"]
    assert {name for name, row in rows.items() if not row["in_scope"]} == {"outside"}
    assert rows["there"]["tier"] == "a"


@pytest.mark.parametrize(("dataset", "where"), [("topics", {}), ("log_dirs", {"broker_id": 2}), ("replica_sizes", {})])
def test_a_declared_topic_is_unknown_while_topics_or_disks_are_unread(dataset: str, where: dict, rows_of, policy) -> None:
    rows = rows_of(Synthetic().brokers(RACKS).error(dataset, "TIMEOUT", **where), "declared_topic", policy)
    assert rows["gone"]["present"] is None
    assert "TIMEOUT" in rows["gone"]["errors"]["topics"]


def test_a_declared_group_is_absent_only_when_every_broker_listed_its_groups(rows_of, policy) -> None:
    cluster = Synthetic().brokers(RACKS).topic("t").group("alive", assigned=[("t", 0)])
    cluster.groups_in_scope = ["a*", "g*"]
    rows = rows_of(cluster, "declared_group", policy)
    assert {name: row["present"] for name, row in rows.items()} == {"alive": True, "gone": False, "outside": None}
    assert {name for name, row in rows.items() if not row["in_scope"]} == {"outside"}
    assert (rows["alive"]["state"], rows["alive"]["member_count"]) == ("Stable", 1)
    rows = rows_of(cluster.error("groups", "COORDINATOR_NOT_AVAILABLE", broker_id=2), "declared_group", policy)
    assert {name: row["present"] for name, row in rows.items()} == {"alive": True, "gone": None, "outside": None}
    assert "COORDINATOR_NOT_AVAILABLE" in rows["gone"]["errors"]["groups"]


def test_a_declared_group_is_unknown_while_a_partition_of_the_offsets_topic_has_no_leader(rows_of, policy) -> None:
    cluster = Synthetic().brokers(RACKS).topic("t").group("alive", assigned=[("t", 0)])
    cluster.error("groups", "COORDINATOR_NOT_AVAILABLE", "no leader", topic="__consumer_offsets", partition=7)
    rows = rows_of(cluster, "declared_group", policy)
    assert {name: row["present"] for name, row in rows.items()} == {"alive": True, "gone": None, "outside": None}
    assert rows["gone"]["errors"]["groups"] == "COORDINATOR_NOT_AVAILABLE (SomeApi, __consumer_offsets-7): no leader"
    row = rows_of(cluster, "cluster", policy, columns=("unread_items", "group_count"))["cluster"]
    assert (row["unread_items"], row["group_count"]) == (1, 1)
    empty = Synthetic().brokers(RACKS).topic("t")
    empty.error("groups", "COORDINATOR_NOT_AVAILABLE", "no leader", topic="__consumer_offsets", partition=7)
    row = rows_of(empty, "cluster", policy, columns=["group_count"])["cluster"]
    assert row["group_count"] is None, "the groups may all lie there"


DEMANDING = "replication_factor: 3, min_insync_replicas: 2, retention_ms: 1, clients_declared: true"
LENIENT = "replication_factor: 3, min_insync_replicas: 2, retention_ms: 1"


def declaring(folder: Path, topics: str = "[]", clients: str = "[]", tier: str = DEMANDING) -> Policy:
    folder.mkdir()
    tiers = f"{{a: {{{tier}}}, b: {{{LENIENT}}}}}"
    rules = f"topics: {topics}\ngroups: [{{pattern: 'console-*', tier: b}}]\n"
    (folder / "tiers.yaml").write_text(f"version: 1\ndefault_tier: a\ntiers: {tiers}\n{rules}")
    (folder / "slas.yaml").write_text("version: 1\n")
    (folder / "clients.yaml").write_text(f"version: 1\nclients: {clients}\n")
    return load_policy(folder)


def undeclared_cluster() -> Synthetic:
    create_time = {"message.timestamp.type": "CreateTime", "cleanup.policy": "delete"}
    compacted = {"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"}
    cluster = Synthetic().brokers(RACKS).topic("orders", config=create_time).topic("keyed", config=compacted)
    cluster.topic("__consumer_offsets", config=compacted, internal=True).topic("metrics", config=create_time)
    return cluster.group("billing").group("console-1").group("shares", kind="share")


@pytest.fixture(scope="module")
def undeclared(rows_of, tmp_path_factory: pytest.TempPathFactory) -> dict:
    policy = declaring(tmp_path_factory.mktemp("nothing") / "policy", topics="[{pattern: metrics, tier: b}]")
    return the(rows_of, undeclared_cluster(), policy=policy, columns=("undeclared", "attestations", "policy"))


def test_what_nobody_declared_is_counted_and_named_in_one_place(undeclared: dict) -> None:
    assert [(one["what"].split(" (")[0], one["count"], one["names"]) for one in undeclared["undeclared"]] == [
        ("topics without a declared producer", 2, ["keyed", "orders"]),
        ("topics with times set by producers whose clocks nobody attests", 1, ["orders"]),
        ("compacted topics without a declared cleanup_policy and unique_keys", 1, ["keyed"]),
        ("groups without a declared consumer", 1, ["billing"]),
    ]
    assert undeclared["policy"]["clients_declared"] is True


@pytest.fixture(scope="module")
def lenient(rows_of, tmp_path_factory: pytest.TempPathFactory) -> dict:
    """The row where no tier demands declarations and people attest something."""
    place = tmp_path_factory.mktemp("lenient") / "policy"
    declaring(place, tier=LENIENT)
    (place / "proof.txt").write_bytes(b"minutes")
    about = f"attested_by: Ada, statement: it was rehearsed, file: proof.txt, sha256: {hashlib.sha256(b'minutes').hexdigest()}"
    listed = [
        f"{{id: a, control: OPS-01, attested_on: 2024-01-01, expires: 2026-01-01T00:00:00Z, {about}}}",
        f"{{id: b, control: OPS-01, attested_on: 2025-02-01, expires: 2025-09-01T00:00:00Z, outcome: failed, {about}}}",
        f"{{id: c, control: OPS-03, attested_on: 2024-01-01, expires: 2025-02-28T00:00:00Z, {about}}}",
        f"{{id: d, control: OPS-02, attested_on: 2025-06-01, expires: 2026-01-01T00:00:00Z, {about}}}",
    ]
    (place / "attestations.yaml").write_text(f"version: 1\nattestations: [{', '.join(listed)}]\n")
    return the(rows_of, undeclared_cluster(), policy=load_policy(place), columns=("undeclared", "attestations", "policy"))


def test_where_everything_is_declared_nothing_is_left_to_declare(rows_of, tmp_path: Path, lenient: dict) -> None:
    topics = "[{pattern: keyed, cleanup_policy: compact, unique_keys: true}, {pattern: '*', producer_clocks_attested: false}]"
    about = "implementation: java, owner: team, declared_on: 2026-11-01, source: here, settings: {}"
    clients = f"[{{name: shop, kind: producer, topics: ['*'], {about}}}, {{name: billing, kind: consumer, group: billing, {about}}}]"
    declared = the(rows_of, undeclared_cluster(), policy=declaring(tmp_path / "all", topics, clients), columns=["undeclared"])
    assert declared["undeclared"] == []
    assert (lenient["undeclared"], lenient["policy"]["clients_declared"]) == ([], False)


@pytest.mark.parametrize("dataset", ["topics", "groups"])
def test_what_is_not_declared_is_not_known_where_topics_or_groups_could_not_be_listed(dataset: str, rows_of, tmp_path: Path) -> None:
    cluster = undeclared_cluster().error(dataset, "TIMEOUT")
    row = the(rows_of, cluster, policy=declaring(tmp_path / "policy"), columns=["undeclared"])
    assert row["undeclared"] is None


def test_of_what_people_attest_the_newest_counts_and_only_until_it_expires(undeclared: dict, lenient: dict) -> None:
    assert undeclared["attestations"] == {}
    found = lenient["attestations"]
    assert {code: (one["in_force"], one["outcome"]) for code, one in found.items()} == {
        "OPS-01": (True, "failed"),
        "OPS-03": (False, "passed"),
    }
    assert found["OPS-01"]["attested_on"] == "2025-02-01"
