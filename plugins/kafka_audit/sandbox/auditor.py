"""The audit's own principal on secured brokers: its listener, its password, and its rights, which allow reading only."""

from collections.abc import Iterable

from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import NoError

from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.state import BrokerState, Folder

PRINCIPAL = "auditor"
_HOST = "127.0.0.1"
_READS = (
    (ResourceType.CLUSTER, "kafka-cluster", (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS)),
    (ResourceType.TOPIC, "*", (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS, ACLOperation.READ)),
    (ResourceType.GROUP, "*", (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS)),
    (ResourceType.TRANSACTIONAL_ID, "*", (ACLOperation.DESCRIBE,)),
)


def properties(port: int, password: str) -> dict[str, str]:
    """Return the broker properties for the auditor's listener and Kafka's authorizer.

    The workload's listener has no authentication: its clients are super users, like an administrator on the machine.
    """
    user = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{PRINCIPAL}="{password}";'
    return {
        "listeners": f"AUDIT://{_HOST}:{port}",
        "listener.security.protocol.map": "AUDIT:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.audit.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.audit.plain.sasl.jaas.config": user,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def write_connection(planned: Iterable[BrokerState], password: str, folder: Folder) -> None:
    """Write the connection file for an audit; only its owner may read it."""
    bootstrap = ",".join(f"{_HOST}:{broker.audit_port}" for broker in planned)
    lines = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": PRINCIPAL,
        "sasl.password": password,
    }
    folder.data.mkdir(parents=True, exist_ok=True)
    folder.audit_connection.touch(mode=0o600)
    folder.audit_connection.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), encoding="utf-8")


def grant_reading(admin: KafkaAdminClient) -> None:
    """Give the principal the rights that an audit needs. Raises CollectionError if the brokers refuse one."""
    acls = [
        ACL(
            principal=f"User:{PRINCIPAL}",
            host="*",
            operation=operation,
            permission_type=ACLPermissionType.ALLOW,
            resource_pattern=ResourcePattern(kind, name),
        )
        for kind, name, operations in _READS
        for operation in operations
    ]
    answer = admin.create_acls(acls)
    refused = [f"{acl}: {error.__name__}" for acl, error in answer["failed"] if error is not NoError]
    if refused:
        raise CollectionError(f"The brokers refused the auditor's rights: {'; '.join(refused)}")
