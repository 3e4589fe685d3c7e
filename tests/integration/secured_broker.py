"""One real broker with SASL/PLAIN, optional TLS and Kafka's authorizer, which allows the auditor to read some resources but not others."""

import base64
import contextlib
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka_tools import started_java
from tls_files import Tls

from kafka_audit.sandbox.brokers import free_ports

ADMIN, AUDITOR, VISITOR = "admin", "auditor", "visitor"
PASSWORDS = {ADMIN: "admin-geheim", AUDITOR: "auditor-geheim", VISITOR: "visitor-geheim"}
_JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_START_SECONDS = 300
# What the auditor may do: topic "open" is described with its configuration, "closed" without, "hidden" not at all. The visitor may nothing.
_GRANTS = (
    (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
    (ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.TOPIC, "open", AclOperation.DESCRIBE),
    (ResourceType.TOPIC, "open", AclOperation.DESCRIBE_CONFIGS),
    (ResourceType.TOPIC, "open", AclOperation.READ),
    (ResourceType.TOPIC, "closed", AclOperation.DESCRIBE),
    (ResourceType.GROUP, "readers", AclOperation.DESCRIBE),
)


def connection(port: int, user: str, password: str | None = None) -> dict[str, str]:
    return {
        "bootstrap.servers": f"127.0.0.1:{port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": user,
        "sasl.password": password or PASSWORDS[user],
    }


@contextlib.contextmanager
def secured_broker(folder: Path, tls: Tls | None = None) -> Iterator[int]:
    """Start the broker with its topics, groups and ACLs; yields its port and stops it at the end.

    ``tls`` gives it one more listener, for clients with certificates.
    """
    port, controller_port = free_ports(2)
    users = " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
    lines = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{_JAAS} username="{ADMIN}" password="{PASSWORDS[ADMIN]}" {users};',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
        "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
        "log.dirs": str(folder / "data"),
        "offsets.topic.num.partitions": "2",
        "offsets.topic.replication.factor": "1",
    }
    if tls:
        lines["listeners"] += f",SSL://127.0.0.1:{tls.port}"
        lines["listener.security.protocol.map"] += ",SSL:SSL"
        lines["super.users"] += f";User:{tls.principal}"
        lines |= tls.broker_properties
    properties = folder / "server.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    kafka = started_java()
    cluster_id = base64.urlsafe_b64encode(b"k" + uuid.uuid4().bytes[1:]).decode()[:22]
    subprocess.run([*kafka, "kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)], check=True, capture_output=True)
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen([*kafka, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            _fill(port, process)
            yield port
        finally:
            process.kill()
            process.wait()


def _fill(port: int, process: "subprocess.Popen[bytes]") -> None:
    admin = AdminClient({**connection(port, ADMIN), "log_level": 0})
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            admin.list_topics(timeout=1)
            break
        except KafkaException:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
    _done(admin.create_topics([NewTopic(name, 1, 1) for name in ("open", "closed", "hidden")]))
    pattern, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
    _done(admin.create_acls([AclBinding(kind, name, pattern, f"User:{AUDITOR}", "*", op, allow) for kind, name, op in _GRANTS]))
    producer = Producer({**connection(port, ADMIN), "enable.idempotence": True})
    for topic in ("open", "closed", "hidden"):
        producer.produce(topic, b"x")
    assert producer.flush(60) == 0
    for group in ("readers", "private"):
        commit(admin, group, *(TopicPartition(topic, 0, 1) for topic in ("open", "hidden")))


def commit(admin: AdminClient, group: str, *offsets: TopicPartition) -> None:
    """Commit for a group without members; again while its coordinator is being made or does not know of a new topic yet."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            (future,) = admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, list(offsets))]).values()
            failure = next((part.error for part in future.result(timeout=600).topic_partitions if part.error), None)
            if failure is None:
                return
            raise KafkaException(failure)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def _done(futures: dict) -> None:
    for future in futures.values():
        future.result(timeout=600)
