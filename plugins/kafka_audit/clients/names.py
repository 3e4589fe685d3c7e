"""Names, values and defaults of client settings: translates other clients' names to the Java client's, and knows which names exist.

The defaults are those of each implementation, under the Java client's names, with the release they were read from.
"""

import difflib
import re
from collections.abc import Mapping
from functools import cache
from math import ceil
from pathlib import Path

import yaml

_JAVA_PRODUCER = {
    "acks": "all",
    "delivery.timeout.ms": "120000",
    "enable.idempotence": "true",
    "linger.ms": "5",
    "max.in.flight.requests.per.connection": "5",
    "max.request.size": "1048576",
    "request.timeout.ms": "30000",
    "retries": "2147483647",
    "transactional.id": "",
}
_JAVA_CONSUMER = {
    "auto.offset.reset": "latest",
    "enable.auto.commit": "true",
    # A setting of librdkafka only; every other client behaves as if it were true.
    "enable.auto.offset.store": "true",
    "fetch.max.bytes": "52428800",
    "group.instance.id": "",
    "group.protocol": "classic",
    "heartbeat.interval.ms": "3000",
    "isolation.level": "read_uncommitted",
    "max.partition.fetch.bytes": "1048576",
    "max.poll.interval.ms": "300000",
    "partition.assignment.strategy": "range,cooperative-sticky",
    "session.timeout.ms": "45000",
}

# Read from the classes of Kafka 4.3.1 (ProducerConfig, ConsumerConfig, connect.runtime.Worker), in rd_kafka_conf_properties_show() of
# librdkafka 2.16.0 and in kafka-python 3.0.12; Spring for Apache Kafka: its change GH-945 of release 2.3.
DEFAULTS: Mapping[str, Mapping[str, dict[str, str]]] = {
    "java": {"producer": _JAVA_PRODUCER, "consumer": _JAVA_CONSUMER},
    "spring-kafka": {"producer": _JAVA_PRODUCER, "consumer": {**_JAVA_CONSUMER, "enable.auto.commit": "false"}},
    "kafka-connect": {
        "producer": {
            **_JAVA_PRODUCER,
            "delivery.timeout.ms": "2147483647",
            "enable.idempotence": "false",
            "max.in.flight.requests.per.connection": "1",
        },
        "consumer": {**_JAVA_CONSUMER, "auto.offset.reset": "earliest", "enable.auto.commit": "false"},
    },
    "librdkafka": {
        "producer": {
            **_JAVA_PRODUCER,
            "delivery.timeout.ms": "300000",
            "enable.idempotence": "false",
            "max.in.flight.requests.per.connection": "1000000",
            "max.request.size": "1000000",
        },
        "consumer": {**_JAVA_CONSUMER, "isolation.level": "read_committed", "partition.assignment.strategy": "range,roundrobin"},
    },
    "kafka-python": {
        "producer": {**_JAVA_PRODUCER, "linger.ms": "0"},
        "consumer": {**_JAVA_CONSUMER, "partition.assignment.strategy": "range,roundrobin"},
    },
}
"""Implementation -> kind -> setting -> value. ``other`` has no defaults, so a setting that it does not declare is not known."""

SOURCES: Mapping[str, str] = {
    "java": "default of the Java client 4.3",
    "spring-kafka": "default of Spring for Apache Kafka on the Java client 4.3",
    "kafka-connect": "default of Kafka Connect 4.3",
    "librdkafka": "default of librdkafka 2.16",
    "kafka-python": "default of kafka-python 3.0",
}
"""How the source of a default is printed. Java clients before 3.0 had acks=1 and no idempotence by default (KIP-679)."""

JAVA_CLIENTS = frozenset({"java", "spring-kafka", "kafka-connect"})
"""Implementations that use the Java client."""

JUDGED: Mapping[str, frozenset[str]] = {"producer": frozenset(_JAVA_PRODUCER), "consumer": frozenset(_JAVA_CONSUMER)}
"""The settings that are kept, by kind. No other value of a client's configuration leaves this package: it may be a password."""

_ALIASES: Mapping[str, str] = {
    "auto.commit.enable": "enable.auto.commit",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
}
"""librdkafka's names (CONFIGURATION.md) of settings that the Java client has too."""
_ASSIGNORS: Mapping[str, str] = {
    "RangeAssignor": "range",
    "RangePartitionAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "RoundRobinPartitionAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "StickyPartitionAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
    "StreamsPartitionAssignor": "stream",
}
BOOLEANS = frozenset(name for name, value in (_JAVA_PRODUCER | _JAVA_CONSUMER).items() if value in ("true", "false"))
NUMBERS = frozenset(name for name, value in (_JAVA_PRODUCER | _JAVA_CONSUMER).items() if value.isdecimal())
_LIBRDKAFKAS_BOOLEANS = {"t": "true", "1": "true", "f": "false", "0": "false"}
_TEXTS = frozenset({"group.instance.id", "transactional.id"})
_RESETS: Mapping[str, str] = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest", "error": "none"}
_LONGEST_NAME = 100  # to compare takes the longer, the longer they are
_WITHOUT_LIMIT = "2147483647"
_FRACTION = re.compile(r"[0-9]{0,19}\.[0-9]+")
_PLACEHOLDER = re.compile(r"\$\{|\{\{|^[$%@]\w")


def canonical_name(name: str, implementation: str) -> str:
    """The Java client's name for a setting of an implementation."""
    plain = name.replace("_", ".") if implementation == "kafka-python" else name
    return _ALIASES.get(plain, plain) if implementation in ("librdkafka", "other") else plain


def canonical_value(name: str, value: object, implementation: str) -> str | None:
    """A setting's value as the Java client writes it; None if it is known only when the client starts, like ``${ACKS}`` in a settings file.

    ``name`` is the Java client's. A value that the client would refuse is returned unchanged.
    """
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    if _PLACEHOLDER.search(text) and name not in _TEXTS:
        return None
    if name in BOOLEANS:
        word = text.lower()
        return _LIBRDKAFKAS_BOOLEANS.get(word, word) if implementation == "librdkafka" else word
    if name in NUMBERS:
        return _number(name, text, implementation)
    return _word(name, text, implementation)


def _number(name: str, text: str, implementation: str) -> str:
    if text.lower() in ("inf", "infinity") or (name == "delivery.timeout.ms" and text == "0" and implementation == "librdkafka"):
        return _WITHOUT_LIMIT
    if name == "linger.ms" and implementation == "librdkafka" and _FRACTION.fullmatch(text):
        return str(ceil(float(text)))  # its only setting in milliseconds that may have decimals
    return text.removesuffix(".0")


def _word(name: str, text: str, implementation: str) -> str:
    lenient = implementation == "librdkafka"  # it ignores the case of words
    if name == "acks":
        return "all" if text == "-1" or (lenient and text.lower() == "all") else text
    if name == "auto.offset.reset" and implementation not in JAVA_CLIENTS:
        return _RESETS.get(text.lower() if lenient else text, text)
    if name == "partition.assignment.strategy":
        return ",".join(_assignor(part) for part in text.strip("[]()").split(",") if part.strip())
    if name == "group.protocol" or (name == "isolation.level" and lenient):
        return text.lower()
    return text


def _assignor(text: str) -> str:
    name = text.strip().strip("'\"").removeprefix("class ").rsplit(".", 1)[-1]
    return _ASSIGNORS.get(name, name)


@cache
def known_names(implementation: str) -> Mapping[str, frozenset[str]]:
    """The settings that an implementation has: only for a ``producer``, only for a ``consumer``, and for ``both``. Empty for ``other``."""
    listed = "java" if implementation in JAVA_CLIENTS else implementation
    data: Mapping[str, Mapping[str, list[str]]] = yaml.safe_load(Path(__file__).with_name("known_settings.yaml").read_text("utf-8"))
    return {kind: frozenset(names) for kind, names in data.get(listed, {}).items()}


def all_names(implementation: str) -> frozenset[str]:
    """The settings that an implementation has, for either kind of client. Empty for ``other``."""
    return frozenset().union(*known_names(implementation).values())


def nearest_name(name: str, implementation: str) -> str | None:
    """The known setting that is closest to a misspelt name; None if none is close."""
    if len(name) > _LONGEST_NAME:
        return None
    known = sorted(all_names(implementation))
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.75)), None)
