"""The properties with which a broker is started, and the ports and ids that are chosen for it."""

import re
from pathlib import Path

import pytest

from kafka_audit.sandbox import brokers
from kafka_audit.sandbox.definition import Brokers, Node, load
from kafka_audit.sandbox.state import Folder


def properties(definition: Brokers, folder: Folder) -> dict[int, dict[str, str]]:
    planned = brokers.plan(definition, folder)
    return {broker.id: brokers.properties(definition, planned, broker, folder) for broker in planned}


def test_voters_run_both_roles_and_the_others_are_brokers_only(tmp_path: Path) -> None:
    values = properties(load("faulty").brokers, Folder(tmp_path))
    assert {node: v["process.roles"] for node, v in values.items()} == {1: "broker,controller", 2: "broker,controller", 3: "broker"}
    assert {v["controller.quorum.voters"] for v in values.values()} == {values[1]["controller.quorum.voters"]}
    assert re.fullmatch(r"1@127\.0\.0\.1:\d+,2@127\.0\.0\.1:\d+", values[1]["controller.quorum.voters"])
    assert "CONTROLLER://" not in values[3]["listeners"]


def test_racks_and_log_dirs_are_set_where_the_seed_has_them(tmp_path: Path) -> None:
    values = properties(load("faulty").brokers, Folder(tmp_path))
    assert [v.get("broker.rack") for v in values.values()] == ["rack-a", "rack-b", None]
    assert [len(v["log.dirs"].split(",")) for v in values.values()] == [2, 1, 2]
    assert all(v["metadata.log.dir"] not in v["log.dirs"].split(",") for v in values.values())


def test_a_node_overrides_the_shared_properties_but_not_the_addresses(tmp_path: Path) -> None:
    definition = Brokers(
        config={"num.partitions": "3", "num.io.threads": "9"},
        nodes=(Node(id=1, config={"num.partitions": "5", "listeners": "PLAINTEXT://0.0.0.0:1"}),),
    )
    values = properties(definition, Folder(tmp_path))[1]
    assert (values["num.partitions"], values["num.io.threads"]) == ("5", "9")
    assert values["listeners"].startswith("PLAINTEXT://127.0.0.1:")


def test_no_two_listeners_share_a_port(tmp_path: Path) -> None:
    planned = brokers.plan(load("healthy").brokers, Folder(tmp_path))
    ports = [port for broker in planned for port in (broker.port, broker.controller_port)]
    assert len(set(ports)) == 6
    assert brokers.bootstrap(planned) == ",".join(f"127.0.0.1:{broker.port}" for broker in planned)


def test_properties_survive_what_java_would_read_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    brokers.write_properties({"log.dirs": "/tmp/caf\u00e9 \U0001f600\\x", "a": "1"}, path)
    assert path.read_text(encoding="ascii") == "a=1\nlog.dirs=/tmp/caf\\u00e9 \\ud83d\\ude00\\\\x\n"


def test_a_cluster_id_is_never_taken_for_an_option() -> None:
    ids = {brokers.new_cluster_id() for _ in range(500)}
    assert len(ids) == 500
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", cluster_id) for cluster_id in ids)


def test_a_jvm_starts_from_the_archive_of_the_jars_it_runs_if_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert brokers.from_class_data("/jars/broker-1/*") == []
    archive = brokers.class_data("/jars/broker-1/*")
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert brokers.from_class_data("/jars/broker-1/*") == [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"]
    assert brokers.from_class_data("/jars/broker-2/*") == []
