"""Names and values of client settings: translates other clients' names and values to the Java client's, and knows which names exist."""

import difflib
import re
from collections.abc import Mapping
from functools import cache
from math import ceil
from pathlib import Path

import yaml

from kafka_audit.clients.defaults import JAVA_CLIENTS, JUDGED, values_of

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
_JUDGED = frozenset().union(*JUDGED.values())
BOOLEANS = frozenset(name for name in _JUDGED if values_of(name) <= {"true", "false"})
NUMBERS = frozenset(name for name in _JUDGED if all(value.isdecimal() for value in values_of(name)))
_LIBRDKAFKAS_BOOLEANS = {"t": "true", "1": "true", "f": "false", "0": "false"}
_TEXTS = frozenset({"group.instance.id", "transactional.id"})
_RESETS: Mapping[str, str] = {"smallest": "earliest", "beginning": "earliest", "largest": "latest", "end": "latest", "error": "none"}
_LONGEST_NAME = 100  # to compare takes the longer, the longer they are
_WITHOUT_LIMIT = "2147483647"
_FRACTION = re.compile(r"[0-9]{0,19}\.[0-9]+")
_PLACEHOLDER = re.compile(r"\$\{|\{\{|^[$%@]\w")
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,79}")


def looks_like_a_name(text: str) -> bool:
    """Whether a key of a file looks like the name of a setting; another may be a line of a private key, and is never shown."""
    return _NAME.fullmatch(text) is not None


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
