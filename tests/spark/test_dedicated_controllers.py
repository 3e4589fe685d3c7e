"""A controller that is no broker, with settings of its own: what it decides is read from it, and judged, or not known."""

import socket
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.protocol.admin.configs import IncrementalAlterConfigsRequest
from pyspark.sql import SparkSession

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.cluster import brokers as reading
from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.configs import describe_broker_configs
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.config_keys import CONTROLLER_KEYS
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.jars.fetch import broker_classpath
from kafka_audit.policy import load_policy
from kafka_audit.sandbox import brokers, processes
from kafka_audit.sandbox.definition import Brokers, Node
from kafka_audit.sandbox.state import Folder
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.rows.build import wide_rows

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BROKER, CONTROLLER = 1, 2
SAFE = {"unclean.leader.election.enable": "false", "default.replication.factor": "3"}
UNSAFE = {"unclean.leader.election.enable": "true", "default.replication.factor": "1"}
_DEFINITION = Brokers(
    config={"offsets.topic.num.partitions": "1", "auto.create.topics.enable": "false"},
    nodes=(Node(id=BROKER, voter=False, config=SAFE), Node(id=CONTROLLER, config=UNSAFE)),
    features={"eligible.leader.replicas.version": 0},
)


@dataclass(frozen=True)
class Taken:
    """One snapshot and how long it took."""

    snapshot: Snapshot
    seconds: float

    def rows(self, dataset: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = pq.read_table(self.snapshot.dataset(dataset)).to_pylist()
        return found


@dataclass(frozen=True)
class Story:
    """Snapshots of the cluster with its controller reachable, and with a listener where nobody answers in the controller's place."""

    replication_factor: int
    reached: Taken
    silent: Taken
    refusing: Taken
    by_default: Taken
    """As ``silent``, once unclean election was disabled for the whole cluster."""


def _take(bootstrap: str, root: Path, name: str) -> Taken:
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap})
    evidence, snapshot_id = EvidenceRoot(path=root), new_id(datetime.now(timezone.utc), name)
    started = time.monotonic()
    take_snapshot(
        settings=settings,
        root=evidence,
        cluster="dedicated",
        snapshot_id=snapshot_id,
        now=lambda: datetime.now(timezone.utc),
        second_look_seconds=0,
    )
    return Taken(evidence.snapshot("dedicated", snapshot_id), time.monotonic() - started)


def _elsewhere(patch: pytest.MonkeyPatch, port: int) -> None:
    """Let the quorum's answer name another port for the controller: a way that a firewall closes."""
    whole = reading._listeners

    def moved(node: Any) -> tuple[reading.Listener, ...]:
        return tuple(reading.Listener(name=one.name, host=one.host, port=port) for one in whole(node))

    patch.setattr(reading, "_listeners", moved)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder, root = Folder(tmp_path_factory.mktemp("cluster")), tmp_path_factory.mktemp("root")
    folder.claim()
    broker, controller = planned = brokers.plan(_DEFINITION, folder)
    for node in planned:
        values = brokers.properties(_DEFINITION, planned, node, folder)
        if node.id == CONTROLLER:
            values |= {"process.roles": "controller", "listeners": f"CONTROLLER://127.0.0.1:{node.controller_port}"}
        brokers.write_properties(values, folder.properties(node.id))
    classpath = broker_classpath(lambda _: None)
    brokers.format_storage(classpath, brokers.new_cluster_id(), planned, folder, features=_DEFINITION.features)
    try:
        running = [brokers.launch(classpath, node, folder) for node in (controller, broker)]
        brokers.wait_until_registered((broker,), running, folder)
        bootstrap = brokers.bootstrap([broker])
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin, closing(socket.socket()) as silent:
            admin.create_topics([NewTopic("orders", 1, -1)])
            reached = _take(bootstrap, root, "reached")
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            with pytest.MonkeyPatch.context() as patch:
                _elsewhere(patch, silent.getsockname()[1])
                nobody = _take(bootstrap, root, "silent")
            (free,) = brokers.free_ports(1)
            with pytest.MonkeyPatch.context() as patch:
                _elsewhere(patch, free)
                refusing = _take(bootstrap, root, "refusing")
            _disable_unclean_elections(admin, bootstrap)
            with pytest.MonkeyPatch.context() as patch:
                _elsewhere(patch, free)
                by_default = _take(bootstrap, root, "default")
            (topic,) = admin.describe_topics(["orders"])
        yield Story(len(topic["partitions"][0]["replica_nodes"]), reached, nobody, refusing, by_default)
    finally:
        processes.stop(folder.processes(), grace=0.0)
        folder.remove_data()


def _disable_unclean_elections(admin: KafkaAdminClient, bootstrap: str) -> None:
    """For the whole cluster, while it runs; returns when the broker knows it. The clients' methods demand a broker's number."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    setting = resource.AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="false")
    whole_cluster = resource(resource_type=4, resource_name="", configs=[setting])
    request = IncrementalAlterConfigsRequest(resources=[whole_cluster], validate_only=False)
    (answer,) = admin._manager.run(admin._manager.send, request).responses
    assert answer.error_code == 0, answer
    deadline = time.monotonic() + 300
    with Cluster(ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap})) as cluster:
        while True:
            (described,) = describe_broker_configs(cluster, ["unclean.leader.election.enable"])
            if described.configs[0].source == "DYNAMIC_DEFAULT_BROKER_CONFIG":
                return
            assert time.monotonic() < deadline, described
            time.sleep(0.05)


def _verdicts(spark: SparkSession, snapshot: Snapshot, *codes: str) -> dict[str, dict[str, Any]]:
    """Code -> the finding on the cluster, the topic orders or the broker."""
    evidence, policy = Evidence(spark=spark, snapshot=snapshot, small_cluster=True), load_policy()
    found: dict[str, dict[str, Any]] = {}
    with evidence.tables.settings():
        for control in (one for one in load_catalogue().controls if one.code in codes):
            rows = wide_rows(control.subject, evidence, policy)
            wanted = {"cluster": "cluster", "topic": "orders", "broker": str(BROKER)}[control.subject]
            (finding,) = [one for one in judge(rows, [control]).collect() if one["resource"] == wanted]
            found[control.code] = finding.asDict()
    return found


def test_a_topic_without_a_replication_factor_gets_the_controllers_and_not_the_brokers(story: Story) -> None:
    assert story.replication_factor == int(UNSAFE["default.replication.factor"])


def test_the_controllers_own_settings_are_read_from_it(story: Story) -> None:
    rows = story.reached.rows("controller_configs")
    assert {row["controller_id"] for row in rows} == {CONTROLLER}
    assert {row["name"] for row in rows} == CONTROLLER_KEYS
    told = {row["name"]: (row["value"], row["source"]) for row in rows}
    assert told["process.roles"] == ("controller", "STATIC_BROKER_CONFIG")
    assert {name: told[name] for name in UNSAFE} == {name: (value, "STATIC_BROKER_CONFIG") for name, value in UNSAFE.items()}
    of_broker = {row["name"]: row["value"] for row in story.reached.rows("broker_configs")}
    assert {name: of_broker[name] for name in SAFE} == SAFE
    assert [row for row in story.reached.rows("errors") if row["dataset"] == "controller_configs"] == []


def test_what_the_controller_decides_is_judged_by_its_settings(spark: SparkSession, story: Story) -> None:
    found = _verdicts(spark, story.reached.snapshot, "QRM-03", "TOP-04")
    assert {code: one["status"] for code, one in found.items()} == {"QRM-03": "fail", "TOP-04": "fail"}
    assert "controller 2: unclean.leader.election.enable=true (STATIC_BROKER_CONFIG)" in found["QRM-03"]["observed"]


@pytest.mark.parametrize(("taken", "error"), [("silent", "REQUEST_TIMED_OUT"), ("refusing", "BROKER_NOT_AVAILABLE")])
def test_a_controller_that_cannot_be_reached_is_an_error_of_its_own(story: Story, taken: str, error: str) -> None:
    one: Taken = getattr(story, taken)
    assert one.rows("controller_configs") == []
    errors = [(row["dataset"], row["broker_id"], row["error"]) for row in one.rows("errors") if row["broker_id"] == CONTROLLER]
    assert errors == [("controller_configs", CONTROLLER, error)]


def test_a_controller_that_cannot_be_reached_leaves_its_decisions_not_assessed(spark: SparkSession, story: Story) -> None:
    found = _verdicts(spark, story.silent.snapshot, "QRM-03", "TOP-04")
    assert {code: one["status"] for code, one in found.items()} == {"QRM-03": "not_assessed", "TOP-04": "not_assessed"}
    assert all("controller 2 did not answer DescribeConfigs" in one["reason"] for one in found.values())


def test_a_value_for_the_whole_cluster_decides_without_the_controllers_word(spark: SparkSession, story: Story) -> None:
    assert _verdicts(spark, story.by_default.snapshot, "TOP-04")["TOP-04"]["status"] == "pass"


def test_a_controller_that_cannot_be_reached_is_no_unread_item(spark: SparkSession, story: Story) -> None:
    evidence = Evidence(spark=spark, snapshot=story.silent.snapshot, small_cluster=True)
    with evidence.tables.settings():
        (row,) = wide_rows("cluster", evidence, load_policy()).select("unread_by_dataset", "errors").collect()
    assert "controller_configs" not in row["unread_by_dataset"]
    assert row["errors"]["controller_configs"]
