"""Snapshots of real brokers: complete, restricted by ACLs, and with faults."""

import subprocess
from datetime import datetime, timezone

import pyarrow.parquet as pq
import pytest
from secured_broker import AUDITOR, VISITOR, connection, secured_broker

from expectations.snapshot_profile import profile_snapshot
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.config_keys import BROKER_KEYS, GROUP_KEYS, THROTTLE_RATE_KEYS
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.collect.part import parts_of
from kafka_audit.collect.parts import join_parts, read_part
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.errors import CollectionError
from kafka_audit.policy.managed_service import REFUSALS
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id

pytestmark = pytest.mark.kafka


def now():
    return datetime.now(timezone.utc)


def snapshot(keys, folder):
    return take_snapshot(
        settings=ConnectionSettings.from_mapping(keys),
        root=EvidenceRoot(path=folder),
        cluster="real",
        snapshot_id=new_id(now(), str(folder)),
        now=now,
        second_look_seconds=1,
    )


def split_snapshot(keys, root_on, count):
    """The same as :func:`snapshot`, read in parts, and each part on a machine of its own; ``root_on``: the root as a machine sees it."""
    where = {"cluster": "real", "snapshot_id": new_id(now(), "split"), "scope": Scope(), "now": now}
    for part in parts_of(count):
        read_part(part, root=root_on(part.name), settings=ConnectionSettings.from_mapping(keys), second_look_seconds=1, **where)
    return join_parts(count, root=root_on("joins"), **where)


@pytest.fixture
def root_on(request, tmp_path, monkeypatch):
    """A folder that all machines share, or a root in an object store, of which each machine has a mirror."""
    if request.param == "folder":
        return lambda machine: EvidenceRoot(path=tmp_path / "split")
    store = request.getfixturevalue("object_store")
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    url = store.new_root()

    def root(machine):
        monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / machine))
        return EvidenceRoot.at(url)

    return root


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    with secured_broker(tmp_path_factory.mktemp("secured")) as port:
        yield port


@pytest.fixture(scope="module")
def restricted(secured, tmp_path_factory):
    return snapshot(connection(secured, AUDITOR), tmp_path_factory.mktemp("restricted"))


@pytest.fixture(scope="module")
def uninvited(secured, tmp_path_factory):
    return snapshot(connection(secured, VISITOR), tmp_path_factory.mktemp("uninvited"))


@pytest.fixture(scope="module")
def faulty_keys(faulty_cluster):
    return {"bootstrap.servers": faulty_cluster.bootstrap}


@pytest.fixture(scope="module")
def faulty(faulty_keys, tmp_path_factory):
    return snapshot(faulty_keys, tmp_path_factory.mktemp("faulty"))


def rows(result, dataset):
    return pq.read_table(result.path / f"{dataset}.parquet").to_pylist()


def failed(result, dataset):
    return {(row["topic"], row["group_id"], row["error"]) for row in rows(result, "errors") if row["dataset"] == dataset}


MOVING = {
    "log_dirs": {"usable_bytes"},
    "offsets": {"headroom_timestamp_ms"},
    "quorum": {"log_end_offset", "last_fetch_timestamp_ms", "last_caught_up_timestamp_ms"},
    "sla_offsets": {"timestamp_ms"},
}
"""Columns that differ between two snapshots of one cluster at rest, apart from ``read_at``."""


@pytest.mark.parametrize(("which", "root_on"), [("restricted", "folder"), ("faulty", "store")], indirect=["root_on"])
def test_a_split_snapshot_is_the_same_as_one_that_is_not_split(which, root_on, request, secured, tmp_path):
    keys = connection(secured, AUDITOR) if which == "restricted" else request.getfixturevalue("faulty_keys")
    whole, split = snapshot(keys, tmp_path / "whole"), split_snapshot(keys, root_on, 3)

    assert [path.name for path in split.path.parent.iterdir()] == [split.path.name]
    for dataset in DATASETS.values():
        one, other = (pq.read_table(found.path / f"{dataset.name}.parquet") for found in (whole, split))
        assert other.schema == one.schema == dataset.schema
        still = [name for name in one.column_names if name not in {"read_at", *MOVING.get(dataset.name, ())}]
        assert other.select(still).to_pylist() == one.select(still).to_pylist(), dataset.name
    times, files = {"started_at", "finished_at", "snapshot_id"}, "files"
    assert {k: v for k, v in split.manifest.items() if k not in {*times, files}} == {
        k: v for k, v in whole.manifest.items() if k not in {*times, files}
    }
    assert {name: entry["rows"] for name, entry in split.manifest[files].items()} == {
        name: entry["rows"] for name, entry in whole.manifest[files].items()
    }


def test_a_refused_topic_has_an_error_and_no_configuration_never_defaults(restricted):
    assert {row["topic"] for row in rows(restricted, "topic_configs")} == {"open"}
    assert failed(restricted, "topic_configs") == {("closed", None, "TOPIC_AUTHORIZATION_FAILED")}


def test_a_topic_without_describe_is_found_on_disk_and_reported_as_hidden(restricted):
    assert {row["topic"] for row in rows(restricted, "topics")} == {"closed", "open"}
    assert ("hidden", None, "TOPIC_HIDDEN") in failed(restricted, "topics")


def test_producers_of_a_topic_without_read_are_an_error_and_the_others_are_there(restricted):
    assert {row["topic"] for row in rows(restricted, "producers")} == {"open"}
    assert failed(restricted, "producers") == {("closed", None, "TOPIC_AUTHORIZATION_FAILED")}


def test_the_last_batch_of_a_topic_without_read_is_an_error_and_the_others_are_there(restricted):
    batches = {row["topic"]: row for row in rows(restricted, "last_batches")}

    assert (batches["open"]["last_offset"], batches["open"]["base_sequence"], batches["open"]["error"]) == (0, 0, None)
    assert batches["open"]["producer_id"] >= 0
    assert (batches["closed"]["producer_id"], batches["closed"]["error"]) == (None, "TOPIC_AUTHORIZATION_FAILED")
    assert failed(restricted, "last_batches") == {("closed", None, "TOPIC_AUTHORIZATION_FAILED")}


def test_the_auditors_own_operations_are_exactly_those_it_was_granted(restricted):
    assert rows(restricted, "cluster")[0]["authorized_operations"] == ["Describe", "DescribeConfigs"]
    assert {row["topic"]: row["authorized_operations"] for row in rows(restricted, "topics")} == {
        "closed": ["Describe"],
        "open": ["Describe", "DescribeConfigs", "Read"],
    }


def test_acls_are_read_with_describe_on_the_cluster_and_refused_without(restricted, uninvited):
    acl = {"principal": "User:auditor", "host": "*", "operation": "Read", "permission_type": "Allow"}
    on_topic = {"resource_type": "Topic", "resource_name": "open", "pattern_type": "Literal"}

    assert {**acl, **on_topic} in rows(restricted, "acls")
    assert len(rows(restricted, "acls")) == 7
    assert rows(uninvited, "acls") == []
    assert failed(uninvited, "acls") == {(None, None, "CLUSTER_AUTHORIZATION_FAILED")}


def test_what_a_broker_refuses_may_be_hidden_by_a_managed_service(uninvited):
    refused = {name: {error for _, _, error in failed(uninvited, name)} for name in ("acls", "broker_configs", "log_dirs", "quorum")}
    assert set().union(*refused.values()) <= set(REFUSALS)
    assert all(refused.values())
    profile = profile_snapshot(Snapshot.verified(uninvited.path), now=datetime.now(timezone.utc), hidden=refused)
    ours = {row["dataset"]: row for row in profile.datasets.rows}
    assert {ours[name]["importance"] for name in refused} == {"hidden"}
    assert ours["topics"]["importance"] == "core"


def test_a_cluster_without_an_authorizer_says_so_in_kafkas_own_word(faulty):
    assert rows(faulty, "acls") == []
    assert failed(faulty, "acls") == {(None, None, "SECURITY_DISABLED")}


def test_settings_that_plug_ins_read_are_known_to_be_set_and_their_values_are_not(restricted):
    settings = {row["name"]: (row["value"], row["is_sensitive"]) for row in rows(restricted, "broker_configs")}

    assert settings["authorizer.class.name"] == ("org.apache.kafka.metadata.authorizer.StandardAuthorizer", False)
    assert settings["allow.everyone.if.no.acl.found"] == (None, True)
    assert settings["rlmm.config.remote.log.metadata.topic.replication.factor"] == (None, True)
    assert set(settings) == BROKER_KEYS - {"rlmm.config.remote.log.metadata.topic.min.isr"} - THROTTLE_RATE_KEYS
    assert "super.users" not in settings


def test_the_commits_of_a_group_that_may_not_be_described_are_an_error_and_no_row(restricted):
    groups = {row["group_id"]: (row["state"], row["error"]) for row in rows(restricted, "groups")}

    # Both are Empty by ListGroups, which Describe on the cluster allows: that they have no members is known without asking.
    assert groups == {"private": ("Empty", None), "readers": ("Empty", None)}
    assert {row["group_id"] for row in rows(restricted, "committed_offsets")} == {"readers"}
    assert failed(restricted, "committed_offsets") == {(None, "private", "GROUP_AUTHORIZATION_FAILED")}


def test_the_capability_matrix_tells_allowed_from_partly_refused(restricted):
    matrix = {row["api"]: row for row in rows(restricted, "capabilities")}

    assert matrix["DescribeConfigs"]["allowed"] is True
    assert "TOPIC_AUTHORIZATION_FAILED" in matrix["DescribeConfigs"]["detail"]
    assert matrix["ListGroups"]["allowed"] is True


def test_wrong_credentials_are_said_with_mechanism_and_user_and_without_the_password(secured, tmp_path):
    with pytest.raises(CollectionError) as caught:
        snapshot(connection(secured, AUDITOR, "wrong-geheim"), tmp_path)

    assert "authentication failed" in str(caught.value)
    assert "PLAIN user 'auditor'" in str(caught.value)
    assert "geheim" not in str(caught.value)
    assert not list(tmp_path.rglob("*.parquet"))


def test_a_client_without_credentials_on_a_sasl_port_is_told_to_check_the_protocol(secured, tmp_path):
    with pytest.raises(CollectionError, match=r"security\.protocol"):
        snapshot({"bootstrap.servers": f"127.0.0.1:{secured}", "request.timeout.ms": "3000"}, tmp_path)


def test_a_group_on_the_new_protocol_has_its_type_state_and_assignments(faulty):
    group = next(row for row in rows(faulty, "groups") if row["group_id"] == "shipping-kip848")
    assignments = [row["assignment"] for row in rows(faulty, "members") if row["group_id"] == "shipping-kip848"]

    assert (group["group_type"], group["state"], group["error"]) == ("consumer", "Stable", None)
    assert {part["topic"] for assignment in assignments for part in assignment} == {"shipments"}


def test_a_group_on_the_new_protocol_has_the_brokers_assignor_and_configuration_and_its_topics(faulty):
    group = next(row for row in rows(faulty, "groups") if row["group_id"] == "shipping-kip848")
    configs = {row["name"]: row["value"] for row in rows(faulty, "group_configs") if row["group_id"] == "shipping-kip848"}

    assert group["assignor"] == "uniform"
    assert {tuple(row["subscribed_topics"]) for row in rows(faulty, "members") if row["group_id"] == "shipping-kip848"} == {("shipments",)}
    assert set(configs) == {key for key in GROUP_KEYS if key.startswith("consumer.")}
    assert configs["consumer.session.timeout.ms"] == "45000"


def test_members_of_a_classic_group_have_their_subscription_and_protocol(faulty):
    classic = {row["group_id"]: row for row in rows(faulty, "groups") if row["group_type"] == "classic" and row["state"] == "Stable"}
    members = [row for row in rows(faulty, "members") if row["group_id"] in classic]

    assert members
    for row in members:
        assert classic[row["group_id"]]["assignor"]
        assert {part["topic"] for part in row["assignment"]} <= set(row["subscribed_topics"])


def test_the_last_batch_ends_where_the_log_ends_and_knows_whether_its_writer_was_idempotent(faulty):
    ends = {(row["topic"], row["partition"]): (row["log_start"], row["log_end"]) for row in rows(faulty, "offsets")}
    batches = {(row["topic"], row["partition"]): row for row in rows(faulty, "last_batches")}
    read = {key: row for key, row in batches.items() if row["error"] is None}
    remembered = {(row["topic"], row["partition"]) for row in rows(faulty, "producers")}

    assert {key[0] for key, row in batches.items() if row["error"]} == {"legacy-import"}
    assert all(row["last_offset"] >= ends[key][1] - 1 for key, row in read.items())
    assert all(ends[key][0] < ends[key][1] for key in read)
    assert {key for key, row in read.items() if row["producer_id"] >= 0} <= remembered
    assert {row["producer_id"] >= 0 for row in read.values()} == {True, False}


def test_a_partition_whose_only_replica_is_on_a_dead_disk_is_leaderless_confirmed_and_alone_unread(faulty):
    partition = next(row for row in rows(faulty, "partitions") if row["topic"] == "legacy-import")
    unread = {row["topic"] for row in rows(faulty, "offsets") if row["error"]}

    assert (partition["leader"], partition["confirmed"]) == (-1, True)
    assert unread == {"legacy-import"}
    assert [row["broker_id"] for row in rows(faulty, "log_dirs") if row["error"]] == [3]


def test_lag_facts_of_the_faulty_seed_are_read_as_they_were_made(faulty):
    offsets = {(row["topic"], row["partition"]): row for row in rows(faulty, "offsets")}
    commits = {(row["group_id"], row["topic"], row["partition"]): row["committed"] for row in rows(faulty, "committed_offsets")}

    assert commits["billing", "invoices", 0] < offsets["invoices", 0]["log_start"]
    assert commits["fraud-check", "payments", 0] > offsets["payments", 0]["log_end"]
    assert commits["newsletter", "sessions", 0] is None
    assert commits["email-sender", "email-outbox", 0] < offsets["email-outbox", 0]["headroom_offset"]


def test_a_hostile_group_id_is_stored_as_it_is(faulty):
    assert "=cmd|' /C calc'!A0 <script>alert(1)</script>" in {row["group_id"] for row in rows(faulty, "groups")}


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 64 KiB: less than the snapshot that will be written to it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a file system cannot be mounted here ({mounted.stderr.strip()}); the unit test injects the error")
    yield folder
    # Lazily: the caught exception's traceback keeps the refused file open until the test's frame is gone.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_really_fills_up_is_one_clear_error_and_leaves_nothing(faulty_cluster, tiny_disk):
    with pytest.raises(CollectionError, match="the disk is full: free space") as caught:
        snapshot({"bootstrap.servers": faulty_cluster.bootstrap}, tiny_disk)
    assert caught.value.exit_code == 1
    assert list((tiny_disk / "evidence" / "real").iterdir()) == []
