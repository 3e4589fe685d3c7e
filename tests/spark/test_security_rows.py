"""Columns of the cluster's wide row on security: authorizer, grants, and the auditor's own rights."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import Synthetic

from kafka_audit.policy import Policy, load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.cluster import access

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c"}
STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
READS = ["Describe", "DescribeConfigs", "Read"]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    folder: Path = tmp_path_factory.mktemp("policy")
    (folder / "tiers.yaml").write_text(
        "version: 1\ndefault_tier: a\ntiers: {a: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 1}}\n"
        'approved_principals: ["User:admin", "User:*"]\nhistory: {interval_seconds: 60}\n'
    )
    (folder / "slas.yaml").write_text("version: 1\n")
    return load_policy(folder)


def setting(cluster: Synthetic, broker: int, name: str, value: str | None, **columns) -> None:
    cluster.add("broker_configs", **{"broker_id": broker, "name": name, "value": value, "is_sensitive": False, "synonyms": [], **columns})


def secured(*, hidden_on: tuple[int, ...] = (), without_on: tuple[int, ...] = (), silent: tuple[int, ...] = ()) -> Synthetic:
    cluster = Synthetic().brokers(RACKS)
    cluster.tables["cluster"][0]["authorized_operations"] = READS
    for broker in RACKS.keys() - set(silent):
        setting(cluster, broker, "authorizer.class.name", "" if broker in without_on else STANDARD)
    for broker in hidden_on:
        setting(cluster, broker, "allow.everyone.if.no.acl.found", None, is_sensitive=True)
    return cluster


def grant(cluster: Synthetic, principal: str, operation: str, kind: str = "Topic", name: str = "*", **columns: str) -> Synthetic:
    row = {"host": "*", "permission_type": "Allow", "pattern_type": "Literal", **columns}
    return cluster.add("acls", principal=principal, operation=operation, resource_type=kind, resource_name=name, **row)


@pytest.fixture
def row_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, policy: Policy) -> Callable[[Synthetic], dict]:
    """The columns of the cluster's row that tell of access, without the others, which take longer to build."""

    def build(cluster: Synthetic) -> dict:
        evidence = Evidence(spark=spark, snapshot=cluster.write(tmp_path_factory.mktemp("root")), small_cluster=True)
        parts = access.destructive_grants(evidence, policy).crossJoin(access.own_operations(evidence))
        return parts.withColumns(access.authorizer(evidence)).collect()[0].asDict(recursive=True)

    return build


def some(row: dict, *names: str) -> tuple:
    return tuple(row[name] for name in names)


def test_only_wide_grants_to_alter_or_delete_for_strangers_are_destructive(row_of) -> None:
    cluster = secured()
    grant(cluster, "User:bob", "Delete")
    grant(cluster, "User:*", "AlterConfigs", "Cluster", "kafka-cluster")
    grant(cluster, "User:app", "All", "Group", host="10.0.0.1")
    grant(cluster, "User:bob", "Alter", "Topic", "*", pattern_type="Prefixed")  # covers names that begin with an asterisk
    grant(cluster, "User:bob", "Delete", "Topic", "bobs")
    grant(cluster, "User:bob", "Delete", permission_type="Deny")
    grant(cluster, "User:bob", "Write")
    grant(cluster, "User:bob", "Create", "Cluster", "kafka-cluster")
    grant(cluster, "User:bob", "All", "TransactionalId")
    grant(cluster, "User:admin", "All", "Cluster", "kafka-cluster")
    grant(cluster, "User:administrator", "ClusterAction", "Cluster", "kafka-cluster")
    row = row_of(cluster)
    assert row["destructive_grants"] == [
        "User:* may AlterConfigs on cluster",
        "User:administrator may ClusterAction on cluster",
        "User:app may All on group * from 10.0.0.1",
        "User:bob may Delete on topic *",
    ]
    assert row["destructive_grant_count"] == 4


def test_a_secured_cluster_is_known_to_deny_by_default_only_where_no_broker_sets_it(row_of) -> None:
    names = ("authorizers", "brokers_without_authorizer", "allow_if_no_acl", "acls_disabled", "destructive_grant_count")
    cluster = grant(secured(), "User:auditor", "Describe")
    assert some(row_of(cluster), *names) == ([STANDARD], [], "not set", False, 0)
    assert row_of(secured(hidden_on=(2,)))["allow_if_no_acl"] == "hidden"


def test_what_a_silent_broker_is_set_to_is_not_known(row_of) -> None:
    names = ("authorizers", "brokers_without_authorizer", "allow_if_no_acl")
    assert some(row_of(secured(silent=(3,))), *names) == ([STANDARD], None, None)
    assert row_of(secured(silent=(3,), without_on=(2,)))["brokers_without_authorizer"] == [2]


def test_an_operation_that_is_not_known_is_not_taken_for_harmless(row_of) -> None:
    cluster = grant(secured(), "User:bob", "Unknown")
    assert some(row_of(cluster), "destructive_grant_count", "destructive_grants") == (None, None)
    assert row_of(grant(cluster, "User:bob", "Delete"))["destructive_grant_count"] == 1


def test_a_cluster_without_an_authorizer_is_evidence_and_nothing_unread(rows_of, policy) -> None:
    everything = ["Alter", "Delete", "Describe", "Write"]
    cluster = secured(without_on=(1, 2, 3)).topic("orders", authorized_operations=everything)
    row = rows_of(cluster.error("acls", "SECURITY_DISABLED"), "cluster", policy)["cluster"]
    assert (row["acls_disabled"], row["authorizers"], row["brokers_without_authorizer"]) == (True, [], [1, 2, 3])
    assert (row["unread_items"], row["unread_by_dataset"], row["destructive_grants"]) == (0, {}, None)
    assert (row["own_operation_count"], row["own_operations"]) == (3, ["topic orders: Alter, Delete, Write"])
    assert row["policy"] == {"tier": "a", "replication_factor": 3, "interval_ms": 60_000, "clients_declared": False}


@pytest.mark.parametrize("where", [{}, {"broker_id": 1}])
def test_acls_that_were_refused_are_unknown(where: dict, rows_of, policy) -> None:
    row = rows_of(secured().error("acls", "CLUSTER_AUTHORIZATION_FAILED", **where), "cluster", policy)["cluster"]
    assert some(row, "acls_disabled", "destructive_grant_count", "unread_items") == (None, None, 1)
    assert "CLUSTER_AUTHORIZATION_FAILED" in row["errors"]["acls"]


def test_the_auditors_own_rights_are_summed_over_cluster_topics_and_groups(row_of) -> None:
    cluster = secured().topic("t", authorized_operations=READS).topic("u", authorized_operations=["Describe", "Write"])
    cluster.group("idle", state="Empty").group("busy", authorized_operations=["Delete", "Read"])
    names = ("own_operation_count", "own_operations", "own_rights_unread")
    assert some(row_of(cluster), *names) == (2, ["group busy: Delete", "topic u: Write"], 0)
    cluster = secured().topic("t", authorized_operations=READS).topic("untold").group("untold")
    assert some(row_of(cluster), *names) == (0, [], 2)
    cluster.tables["cluster"].clear()
    assert row_of(cluster)["own_rights_unread"] is None
