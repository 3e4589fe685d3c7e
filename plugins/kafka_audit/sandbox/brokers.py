"""Three Kafka brokers in KRaft mode on this machine: writes their properties, formats their storage and starts them."""

import base64
import random
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

import javaproperties
from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from kafka_audit.cluster.bootstrap import find_brokers
from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import CollectionError
from kafka_audit.jars.fetch import java
from kafka_audit.sandbox import auditor, processes
from kafka_audit.sandbox.definition import Brokers
from kafka_audit.sandbox.processes import ProcessRecord
from kafka_audit.sandbox.state import BrokerState, Folder

START_TIMEOUT_S = 300
PORTS = range(20_000, 32_000)
_HOST = "127.0.0.1"
_LOG4J = Path(__file__).with_name("log4j2.properties")
# Brokers live for minutes, too short for the optimizing compiler (C2) to pay off.
_JVM = (
    *("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-XX:+ExitOnOutOfMemoryError", "-XX:-UsePerfData", f"-Dlog4j2.configurationFile={_LOG4J}"),
)
# Sizes for a laptop; no control judges these settings.
_SMALL = {
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.recovery.threads.per.data.dir": "1",
    "log.cleaner.dedupe.buffer.size": str(8 << 20),
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    # By default an idle controller writes an empty record twice a second, and every broker reads it: half of an idle sandbox's CPU time.
    "metadata.max.idle.interval.ms": "10000",
    # Some of a seed's records are days old: at the first check, after ten minutes, brokers would forget the producers that wrote them.
    "producer.id.expiration.check.interval.ms": "86400000",
}


def class_data(classpath: str) -> Path:
    """Return the place of the archive of these jars' classes, which class_data.py makes."""
    return Path(sys.prefix, "share", "kafka-audit", f"{Path(classpath).parent.name}.jsa")


def from_class_data(classpath: str) -> list[str]:
    """Return the options of a JVM that starts from the archive of these jars' classes, if there is one."""
    archive = class_data(classpath)
    # A JVM that cannot use it warns on standard output.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"] if archive.is_file() else []


def new_cluster_id() -> str:
    """Return a random KRaft cluster id: 22 characters of URL-safe base64 that do not start like an option."""
    while (cluster_id := base64.urlsafe_b64encode(uuid.uuid4().bytes)[:22].decode()).startswith("-"):
        pass
    return cluster_id


def plan(brokers: Brokers, folder: Folder) -> tuple[BrokerState, ...]:
    """Choose free ports and log dirs for each node."""
    ports = iter(free_ports(3 * len(brokers.nodes)))
    return tuple(
        BrokerState(
            id=node.id,
            rack=node.rack,
            port=next(ports),
            controller_port=next(ports) if node.voter else None,
            audit_port=next(ports) if brokers.secured else None,
            log_dirs=tuple(str(folder.data / f"broker-{node.id}" / f"log-{letter}") for letter in "abcd"[: node.log_dirs]),
        )
        for node in brokers.nodes
    )


def properties(
    brokers: Brokers, planned: Iterable[BrokerState], broker: BrokerState, folder: Folder, *, password: str = ""
) -> dict[str, str]:
    """Return the server.properties of one broker: the seed's keys override the sandbox's sizes, but never its addresses.

    ``password`` is the auditor's on secured brokers.
    """
    node = next(node for node in brokers.nodes if node.id == broker.id)
    voters = ",".join(f"{other.id}@{_HOST}:{other.controller_port}" for other in planned if other.controller_port)
    listeners = f"PLAINTEXT://{_HOST}:{broker.port}"
    if broker.controller_port:
        listeners += f",CONTROLLER://{_HOST}:{broker.controller_port}"
    protocols = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    security: dict[str, str] = {}
    if broker.audit_port:
        security = auditor.properties(broker.audit_port, password)
        listeners += f",{security.pop('listeners')}"
        protocols += f",{security.pop('listener.security.protocol.map')}"
    return {
        **_SMALL,
        **brokers.config,
        **node.config,
        **({"broker.rack": broker.rack} if broker.rack else {}),
        "node.id": str(broker.id),
        "process.roles": "broker,controller" if broker.controller_port else "broker",
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": listeners,
        "listener.security.protocol.map": protocols,
        **security,
        "log.dirs": ",".join(broker.log_dirs),
        "metadata.log.dir": str(folder.properties(broker.id).parent / "metadata"),
    }


def write_properties(values: dict[str, str], path: Path) -> None:
    """Write a Java properties file: pure ASCII, with every character escaped that Java would read differently."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(javaproperties.dumps(values, timestamp=False, sort_keys=True), encoding="ascii")


def format_storage(
    classpath: str, cluster_id: str, planned: Iterable[BrokerState], folder: Folder, *, features: Mapping[str, int] | None = None
) -> None:
    """Run Kafka's StorageTool for all brokers in parallel. If one fails, raises CollectionError with the end of its log."""
    runs = []
    for broker in planned:
        log = folder.log(f"format-{broker.id}")
        log.parent.mkdir(parents=True, exist_ok=True)
        levels = [part for name, level in (features or {}).items() for part in ("--feature", f"{name}={level}")]
        options = ("format", f"--cluster-id={cluster_id}", "--config", str(folder.properties(broker.id)), *levels)
        command = [java(), *_JVM, *from_class_data(classpath), "-cp", classpath, "kafka.tools.StorageTool", *options]
        with log.open("wb") as output:
            runs.append((log, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)))
    try:
        codes = [(log, run.wait(START_TIMEOUT_S)) for log, run in runs]
    finally:
        for _, run in runs:
            run.kill()
            run.wait()
    for log, code in codes:
        if code != 0:
            raise CollectionError(f"Kafka could not format its storage (exit {code}); {log} ends with:\n{processes.tail(log)}")


def launch(classpath: str, broker: BrokerState, folder: Folder, *jvm: str) -> ProcessRecord:
    """Start one broker process, with more options of the JVM; returns before the broker is ready."""
    argument = str(folder.properties(broker.id))
    role = f"broker-{broker.id}"
    command = [java(), *_JVM, *(jvm or from_class_data(classpath)), "-cp", classpath, "kafka.Kafka", argument]
    return processes.launch(role, command, argument=argument, log=folder.log(role), cwd=folder.data)


def wait_until_registered(planned: tuple[BrokerState, ...], started: Iterable[ProcessRecord], folder: Folder) -> None:
    """Wait until every broker is in the metadata of each of them and none is fenced.

    A client that connects then knows all brokers: kafka-python keeps the list of the broker that it asks first for minutes.

    Raises CollectionError with the end of a broker's log if one dies or START_TIMEOUT_S passes.
    """
    records = list(started)

    def none_died() -> None:
        for record in records:
            if record.find() is None:
                log = folder.log(record.role)
                raise CollectionError(f"{record.role} stopped while starting; {log} ends with:\n{processes.tail(log)}")

    deadline = time.monotonic() + START_TIMEOUT_S
    # After a refused connection kafka-python waits for seconds: use it only once every port answers.
    _poll(lambda: all(_listens(broker.port) for broker in planned), none_died, deadline, f"their ports to open; see {folder.logs}")
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap(planned), client_id="sandbox")) as admin:
        _poll(lambda: _registered(admin) == len(planned), none_died, deadline, f"all of them to register; see {folder.logs}")
    _poll(
        lambda: all(_known_to(broker) == len(planned) for broker in planned),
        none_died,
        deadline,
        f"each of them to know all others; see {folder.logs}",
    )


def bootstrap(planned: Iterable[BrokerState]) -> str:
    """Return the bootstrap servers, comma-separated."""
    return ",".join(f"{_HOST}:{broker.port}" for broker in planned)


def _registered(admin: KafkaAdminClient) -> int:
    try:
        # Brokers before 4.0 (DescribeCluster version 1) list only those that are not fenced.
        return sum(not broker.get("is_fenced") for broker in admin.describe_cluster()["brokers"])
    except KafkaError:
        return 0  # still electing a leader; the caller's deadline decides


def _known_to(broker: BrokerState) -> int:
    """How many brokers the metadata of this one lists."""
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap([broker])})
    with closing(Channel(settings, deadline_seconds=START_TIMEOUT_S)) as channel:
        try:
            return len(find_brokers(channel))
        except CollectionError:
            return 0  # it knows no brokers yet; the caller's deadline decides


def _poll(done: Callable[[], bool], check: Callable[[], None], deadline: float, what: str) -> None:
    while not done():
        check()
        if time.monotonic() > deadline:
            raise CollectionError(f"The brokers did not start: waited {START_TIMEOUT_S} s for {what}")
        time.sleep(0.1)


def _listens(port: int) -> bool:
    with closing(socket.socket()) as probe:
        probe.settimeout(1)
        return probe.connect_ex((_HOST, port)) == 0


def free_ports(count: int) -> list[int]:
    """Return free ports below the system's range for outgoing connections, so that no connection takes one before the broker does."""
    ports: list[int] = []
    for port in random.sample(PORTS, 2_000):
        with closing(socket.socket()) as probe:
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise CollectionError(f"Fewer than {count} free TCP ports between {PORTS[0]} and {PORTS[-1]} on {_HOST}: stop what uses them.")
