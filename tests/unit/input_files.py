"""Valid policy, control, client and connection files for tests to damage, and the function that loads each."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from test_attestations import ONE, PROOF
from test_catalogue import GOOD
from test_policy import SLAS, TIERS
from test_policy_fit import AT, CLIENT, FRAMEWORK, WAIVER

from kafka_audit.audit.policy_fit import check_dates, check_policy
from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.clients.files import read_clients
from kafka_audit.clients.settings import effective, start_problems, unknown_settings
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.connection_file import read_keys
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy

POLICY = ("tiers.yaml", "slas.yaml", "clients.yaml", "waivers.yaml", "attestations.yaml", "frameworks/fw.yaml")
CONTROL = "isr_is_whole.yaml"
CLIENTS = ("x.properties", "x.conf")
CONNECTION = ("connection.properties", "connection.json", "connection.yaml")
FILES = (*POLICY, CONTROL, *CLIENTS, *CONNECTION)
YAML_FILES = (*POLICY, CONTROL, "connection.yaml")

ATTESTED = "restore.txt"

VALID: dict[str, Any] = {
    "tiers.yaml": {
        **yaml.safe_load(TIERS),
        "topics": [{"pattern": "pay*", "tier": "no_loss", "unique_keys": True}],
        "groups": [{"pattern": "g[0-9]*", "owner": "Ada"}],
        "declared_topics": ["orders"],
        "history": {"interval_seconds": 3600, "offsets": {"keep_days": 7}},
    },
    "slas.yaml": {
        "version": 1,
        "groups": [
            {
                "pattern": "*",
                "topics": "a*",
                "name": "default",
                "max_lag_seconds": 10,
                "breach": {"samples": 1, "of": 2},
                "availability": {"target_percent": 99.5},
                "quiet_hours": [{"days": ["mon"], "from": "22:00", "to": "06:00", "timezone": "Europe/Berlin"}],
            }
        ],
    },
    "clients.yaml": {"version": 1, "clients": [{**CLIENT, "settings": {"acks": 1, "linger.ms": "5"}}]},
    "waivers.yaml": {"version": 1, "waivers": [WAIVER]},
    "attestations.yaml": {"version": 1, "attestations": [{**ONE, "file": ATTESTED}]},
    "frameworks/fw.yaml": FRAMEWORK,
    CONTROL: GOOD,
    "x.properties": {
        "acks": "1",
        "linger.ms": "5",
        "spring.kafka.consumer.heartbeat-interval": "3s",
        "spring.kafka.properties[acks]": "all",
    },
    "x.conf": {"acks": "1", "enable.idempotence": "true", "message.timeout.ms": "100"},
    "connection.properties": {"bootstrap.servers": "b:9092", "client.id": "a", "request.timeout.ms": "100"},
}
VALID |= dict.fromkeys(CONNECTION, VALID["connection.properties"])


def written(name: str, value: object) -> bytes:
    """A valid file's value, or what became of it, in the file's own format."""
    if name.endswith(".yaml"):
        return yaml.safe_dump(value, allow_unicode=True).encode()
    if name.endswith(".json"):
        return json.dumps(value).encode()
    return "\n".join(f"{key}={text}" for key, text in value.items()).encode() if isinstance(value, dict) else str(value).encode()


@cache
def catalogue() -> Catalogue:
    return load_catalogue()


def load(folder: Path, name: str, raw: bytes) -> str | None:
    """Load the file with the function that the product uses; the refusal's text, or None when it was taken."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "frameworks").mkdir(exist_ok=True)
    policy = {"tiers.yaml": TIERS.encode(), "slas.yaml": SLAS.encode(), ATTESTED: PROOF} if name in POLICY else {}
    for each, content in {**policy, name: raw}.items():
        (folder / each).write_bytes(content)
    try:
        if name in POLICY:
            policy_read = load_policy(folder)
            check_policy(policy_read, catalogue())
            check_dates(policy_read, AT)
        elif name == CONTROL:
            (folder / "frameworks").rmdir()
            load_catalogue([folder])
        elif name in CLIENTS:
            for client in read_clients(folder / name).clients:
                effective(client), unknown_settings(client), start_problems(client)
        else:
            ConnectionSettings.from_mapping(read_keys(folder / name), where=name)
    except ConfigurationError as problem:
        return str(problem)
    finally:
        for each in {*policy, name}:
            (folder / each).unlink()
    return None


def changed(value: Any, path: tuple[Any, ...], new: object) -> Any:
    """A copy of nested lists and mappings with another value at a place."""
    if not path:
        return new
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = changed(copy[path[0]] if isinstance(value, list) else copy.get(path[0], {}), path[1:], new)
    return copy
