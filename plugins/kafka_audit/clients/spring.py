"""Translates Spring Boot's names and values of client settings (spring.kafka.producer.*, spring.kafka.consumer.*) to Kafka's."""

import re
from collections.abc import Mapping

OWN_NAMES: Mapping[str, str] = {
    "acks": "acks",
    "auto-commit-interval": "auto.commit.interval.ms",
    "auto-offset-reset": "auto.offset.reset",
    "batch-size": "batch.size",
    "bootstrap-servers": "bootstrap.servers",
    "buffer-memory": "buffer.memory",
    "client-id": "client.id",
    "compression-type": "compression.type",
    "enable-auto-commit": "enable.auto.commit",
    "fetch-max-wait": "fetch.max.wait.ms",
    "fetch-min-size": "fetch.min.bytes",
    "group-id": "group.id",
    "heartbeat-interval": "heartbeat.interval.ms",
    "isolation-level": "isolation.level",
    "key-deserializer": "key.deserializer",
    "key-serializer": "key.serializer",
    "max-poll-interval": "max.poll.interval.ms",
    "max-poll-records": "max.poll.records",
    "retries": "retries",
    "transaction-id-prefix": "transactional.id",
    "value-deserializer": "value.deserializer",
    "value-serializer": "value.serializer",
}
"""Spring's name -> Kafka's."""

_DURATION = re.compile(r"([0-9]{1,12})\s*(ms|s|m|h|d)?")
_MILLIS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATIONS = frozenset({"auto-commit-interval", "fetch-max-wait", "heartbeat-interval", "max-poll-interval"})
_IN_BRACKETS = re.compile(r"(spring\.kafka\.(?:producer\.|consumer\.)?properties)\.?\[([^\[\]]+)\]")


def _relaxed(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


_RELAXED = {_relaxed(name): name for name in OWN_NAMES}
"""Simplified name -> name: to Spring Boot ``enable-auto-commit``, ``enableAutoCommit`` and ``enable_auto_commit`` are the same."""


def without_brackets(pairs: Mapping[str, str]) -> dict[str, str]:
    """The same pairs, with keys such as ``properties[acks]`` (Spring's other syntax) rewritten to ``properties.acks``."""
    return {_IN_BRACKETS.sub(r"\1.\2", name): value for name, value in pairs.items()}


def in_kafkas_words(name: str, value: str) -> tuple[str, str]:
    """Kafka's name and value for a setting of Spring; durations such as ``3s`` become milliseconds. Unknown names stay unchanged."""
    name = _RELAXED.get(_relaxed(name), name)
    kafkas = OWN_NAMES.get(name, name)
    found = _DURATION.fullmatch(value.strip()) if name in _DURATIONS else None
    if found is not None:
        return kafkas, str(int(found.group(1)) * _MILLIS[found.group(2) or "ms"])
    if name == "isolation-level":
        return kafkas, value.strip().lower().replace("-", "_")
    return kafkas, value
