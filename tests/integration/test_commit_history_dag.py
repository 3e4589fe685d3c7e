"""A real Airflow reads a real broker's offsets topic over SASL and TLS; it is refused without the right to; an audit uses what was read.

The root lies in an S3 store, and the machine loses its copies before the second run and before the audit. At the end that Airflow is killed.
"""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pyarrow.parquet as pq
import pytest
from airflow_api import DAG as AUDIT_KIND
from airflow_api import Api
from airflow_processes import left_of, processes_of
from command_line import AirflowDatabase
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from object_store import ObjectStore
from process_words import words_of
from secured_broker import ADMIN, AUDITOR, PASSWORDS, commit, connection, secured_broker
from tls_files import Tls, make_tls

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.airflow.run_dag import only_one
from kafka_audit.sandbox.brokers import free_ports
from kafka_audit.store.commit_batches import batches_in
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import bring
from kafka_audit.store.objects import Objects
from kafka_audit.store.sealed import AUDIT as SEALED_AUDIT

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark]
DAG = "kafka_commit_history"
AUDIT = f"{AUDIT_KIND}__kafka"
TOPIC = "__consumer_offsets"
KEY_PASSWORD = "key-geheim"
SECRETS = (*PASSWORDS.values(), KEY_PASSWORD)
SERVE = """
import sys
from kafka_audit.airflow.standalone import running_airflow
from kafka_audit.store.layout import EvidenceRoot
with running_airflow(root=EvidenceRoot.at(sys.argv[1]).path, port=int(sys.argv[2])) as process:
    process.wait()
"""
"""The command that runs Airflow on one machine takes a local folder only."""


class Cluster:
    """The broker, with a consumer that commits every second until it is told to stop."""

    def __init__(self, port: int, tls: Tls) -> None:
        self.keys = connection(port, ADMIN)
        self.tls = tls
        self.admin = AdminClient(self.keys)
        self._stop = threading.Event()
        self._working = threading.Thread(target=self._work, daemon=True)
        self.commit("rewound", 40)
        self._working.start()

    def _work(self) -> None:
        producer = Producer(self.keys)
        consumer = Consumer({**self.keys, "group.id": "automatic", "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1000})
        consumer.subscribe(["open"])
        while not self._stop.wait(0.02):
            producer.produce("open", b"x")
            producer.poll(0)
            consumer.poll(0)
        producer.flush(10)
        consumer.close()

    def stop(self) -> None:
        self._stop.set()
        self._working.join(300)

    def commit(self, group: str, offset: int) -> None:
        commit(self.admin, group, TopicPartition("open", 0, offset))

    def ends(self) -> list[int]:
        consumer = Consumer({**self.keys, "group.id": "none"})
        with contextlib.closing(consumer):
            partitions = consumer.list_topics(TOPIC, timeout=600).topics[TOPIC].partitions
            return [consumer.get_watermark_offsets(TopicPartition(TOPIC, one), timeout=600)[1] for one in sorted(partitions)]


class Airflow:
    """The DAG's runs, and whether any of them let a secret be seen. ``copies``: the folder of its copies of the objects in the store."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int, url: str, copies: Path) -> None:
        self.process, self.url, self.copies = process, url, copies
        base, deadline = f"http://127.0.0.1:{port}", time.monotonic() + 300
        while not Api(base, None).is_ready():
            assert time.monotonic() < deadline and process.poll() is None, "Airflow did not get ready"
            time.sleep(1)
        self.api = Api(base, "admin")

    def connect(self, name: str, keys: dict[str, str], *, anew: bool = False) -> None:
        body = {"connection_id": name, "conn_type": "kafka", "extra": json.dumps(keys)}
        way, place = ("PATCH", f"/api/v2/connections/{name}") if anew else ("POST", "/api/v2/connections")
        status, answer = self.api.call(way, place, body)
        assert status in (200, 201), answer

    def run(self, cluster: str = "kafka", **conf: Any) -> tuple[dict[str, Any], str]:
        """The one task's instance and its log, at the end of a run of the cluster's DAG."""
        dag_id = f"{DAG}__{cluster}"
        place = f"/api/v2/dags/{dag_id}/dagRuns/{quote(self.api.trigger(dag_id, **conf))}"
        deadline = time.monotonic() + 900
        while self.api.state(place) not in ("success", "failed"):
            assert time.monotonic() < deadline, "the run did not end"
            commands = [" ".join(words_of(one)) for one in psutil.process_iter()]
            assert not [command for command in commands if any(secret in command for secret in SECRETS)]
            time.sleep(0.5)
        (task,) = self.api.call("GET", f"{place}/taskInstances")[1]["task_instances"]
        log = json.dumps(self.api.call("GET", f"{place}/taskInstances/read_commits/logs/1?full_content=true")[1], ensure_ascii=False)
        assert not [secret for secret in SECRETS if secret in log]
        objects = Objects(url=self.url)
        kept = {one.name: objects.read(one.name, 1 << 30) or b"" for one in objects.names("")}
        assert not [name for name, data in kept.items() for secret in SECRETS if secret.encode() in data]
        return task, log

    def last_run(self) -> dict[str, Any]:
        return json.loads(Objects(url=self.url).read("work/history/kafka/commits/last_run.json") or b"{}")

    def lose_copies(self) -> None:
        """Remove what it has copied, as when the next task runs on another machine."""
        shutil.rmtree(self.copies)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    tls = make_tls(tmp_path_factory.mktemp("tls"), key_password=KEY_PASSWORD)
    with secured_broker(tmp_path_factory.mktemp("broker"), tls) as port:
        made = Cluster(port, tls)
        yield made
        made.stop()


@pytest.fixture(scope="module")
def airflow(
    cluster: Cluster, airflow_database: AirflowDatabase, object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Airflow]:
    url, port = object_store.new_root(), free_ports(1)[0]
    settings = {
        "KAFKA_AUDIT_CLUSTERS": "kafka=kafka_broker,refused=kafka_refused",
        "KAFKA_AUDIT_COMMITS_SCHEDULE": "0 0 29 2 *",  # runs are those of the tests
        "KAFKA_AUDIT_SNAPSHOT_RETRIES": "2",
        "KAFKA_AUDIT_MIRROR": str(tmp_path_factory.mktemp("airflow")),
        **object_store.environment,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        copies = EvidenceRoot.at(url).path
        airflow_database.give(copies)
        process = subprocess.Popen([sys.executable, "-c", SERVE, url, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        patch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path_factory.mktemp("reader")))
        try:
            made = Airflow(process, port, url, copies)
            made.connect("kafka_broker", cluster.keys)
            made.connect("kafka_refused", connection(int(cluster.keys["bootstrap.servers"].rpartition(":")[2]), AUDITOR))
            deadline = time.monotonic() + 300
            for name in ("kafka", "refused"):
                while made.api.call("PATCH", f"/api/v2/dags/{DAG}__{name}", {"is_paused": False})[0] != 200:
                    assert time.monotonic() < deadline, "the DAG was not loaded"
                    time.sleep(1)
            yield made
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(120)


@pytest.fixture(scope="module")
def history(cluster: Cluster, airflow: Airflow) -> Path:
    """The history after a run by SASL and one by TLS, with commits in between, as a machine sees it that had no part in them."""
    cluster.stop()
    first = cluster.ends()
    task, log = airflow.run()
    assert task["state"] == "success", log
    assert cluster.ends() == first, "reading must write nothing into the topic"
    said = airflow.last_run()
    assert (said["totals"]["expected"], said["totals"]["lost"], said["held_back"]) == (sum(first), 0, 0)

    for offset in (50, 20):
        cluster.commit("rewound", offset)
    second = cluster.ends()
    airflow.lose_copies()
    airflow.connect("kafka_broker", cluster.tls.connection, anew=True)
    task, log = airflow.run()
    assert task["state"] == "success", log
    assert cluster.ends() == second
    assert airflow.last_run()["totals"] == {"expected": 2, "rows": 2, "lost": 0, "skipped": 0}
    return EvidenceRoot.at(airflow.url).commit_history("kafka")


def test_two_runs_hold_every_record_once(cluster: Cluster, history: Path) -> None:
    assert batches_in(history / "raw") == batches_in(history / "decoded") == ["00000001", "00000002"]
    for batch in batches_in(history / "raw"):
        bring(history / "raw" / batch)
    parts = [pq.read_table(part, columns=["partition", "offset"]) for part in history.glob("raw/*/records.parquet/*.parquet")]
    places = [(row["partition"], row["offset"]) for part in parts for row in part.to_pylist()]
    assert sorted(places) == [(partition, offset) for partition, end in enumerate(cluster.ends()) for offset in range(end)]


def test_without_the_right_to_read_the_run_fails_once_and_names_what_is_missing(airflow: Airflow, history: Path) -> None:
    task, log = airflow.run("refused")
    assert (task["state"], task["try_number"]) == ("failed", 1)
    assert "__consumer_offsets may not be read: grant Read and Describe on it to the audit's account" in log


def test_a_mistyped_parameter_fails_the_run_before_anything_is_read(airflow: Airflow, history: Path) -> None:
    before = airflow.last_run()
    task, log = airflow.run(behavior_hours=1)
    assert (task["state"], task["try_number"]) == ("failed", 1)
    assert "behavior_hours: is not a parameter of kafka_commit_history__kafka; did you mean 'behaviour_hours'?" in log
    assert airflow.last_run() == before


def test_an_audit_judges_what_the_offsets_topic_shows(airflow: Airflow, history: Path) -> None:
    airflow.lose_copies()
    run_id = airflow.api.trigger(AUDIT)
    _, tasks = airflow.api.wait(run_id, AUDIT)
    assert {task for task, state in tasks.items() if state != "success"} <= {"gate"}, f"{AUDIT}: {tasks}"
    root = EvidenceRoot.at(airflow.url)
    (audit_id,) = root.ids("kafka", SEALED_AUDIT)
    rows = pq.read_table(root.bring_audit("kafka", audit_id).lag / "findings.parquet").to_pylist()
    found = {(row["code"], row["resource"]): (row["status"], row["observed"]) for row in rows}
    status, observed = found["CON-05", "rewound:open-0"]
    assert status == "fail"
    assert "its commits went back 1 times, from 50 at most, last at" in observed
    assert "(observed in the offsets topic)" in observed
    status, observed = found["CON-06", "rewound:open-0"]  # one snapshot alone does not tell whether a group moves on
    assert status == "pass"
    assert "(observed in the offsets topic)" in observed
    assert found["CON-06", "private:open-0"][0] == "not_applicable"  # it committed only once, and this is the first audit


def test_a_killed_airflow_with_its_ui_leaves_no_process_behind_and_the_next_one_may_start(airflow: Airflow) -> None:
    home = airflow_home(airflow.copies)
    running = processes_of(home)
    assert all(any(name in line for line in running) for name in ("scheduler", "triggerer", "dag-processor", "api")), running
    airflow.process.kill()
    airflow.process.wait()
    assert left_of(home, 60) == []
    with only_one(home):
        pass
