"""Decides which settings of a file belong to a producer or a consumer, and to which implementation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from kafka_audit.clients.defaults import JUDGED
from kafka_audit.clients.names import all_names, canonical_name, known_names
from kafka_audit.errors import ConfigurationError

_KINDS = ("producer", "consumer")
_SPRING = "spring.kafka."
_CONNECT_OVERRIDE = ".override."
_CONNECT = frozenset({"connector.class", "plugin.path", "offset.storage.topic", "offset.storage.file.filename"})
_STREAMS = "application.id"
_BROKER = frozenset({"broker.id", "node.id", "process.roles", "log.dirs"})
_NOT_KEPT = "(not kept)"
_LISTED = ("java", "librdkafka", "kafka-python")
_SPRINGS_DURATIONS = ("auto-commit-interval", "fetch-max-wait", "heartbeat-interval", "max-poll-interval")
_SPRINGS_NAMES = (
    *("acks", "auto-offset-reset", "batch-size", "bootstrap-servers", "buffer-memory", "client-id", "compression-type", "group-id"),
    *("enable-auto-commit", "isolation-level", "key-deserializer", "key-serializer", "max-poll-records", "retries"),
    *("value-deserializer", "value-serializer"),
)
_OF_SPRING: Mapping[str, str] = {
    **{name: name.replace("-", ".") for name in _SPRINGS_NAMES},
    **{name: f"{name.replace('-', '.')}.ms" for name in _SPRINGS_DURATIONS},
    **{"fetch-min-size": "fetch.min.bytes", "transaction-id-prefix": "transactional.id"},
}
"""Spring Boot's name (spring.kafka.producer.*, spring.kafka.consumer.*) -> Kafka's."""
_DURATION = re.compile(r"([0-9]{1,12})\s*(ms|s|m|h|d)?")
_MILLIS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_IN_BRACKETS = re.compile(r"(spring\.kafka\.(?:producer\.|consumer\.)?properties)\.?\[([^\[\]]+)\]")


def _relaxed(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


_RELAXED = {_relaxed(name): name for name in _OF_SPRING}
"""Simplified name -> name: to Spring Boot ``enable-auto-commit``, ``enableAutoCommit`` and ``enable_auto_commit`` are the same."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """The settings of one client under the names of its file; values that no control reads are not kept."""

    kind: str
    implementation: str
    settings: Mapping[str, str] = field(repr=False)


def sections(pairs: Mapping[str, str], *, kind: str | None = None, implementation: str | None = None) -> list[Section]:
    """The clients that a file configures: producer, consumer, both or none. ``kind`` and ``implementation`` override what is detected."""
    if _BROKER & set(pairs) and kind is None:
        return []
    pairs = _without_brackets(pairs)
    plain, found = _by_names(pairs), _by_prefix(pairs)
    found = {each: plain.get(each, {}) | found.get(each, {}) for each in plain | found}
    if kind is not None:
        found = {kind: found.get(kind) or _unprefixed(pairs)}
    chosen = implementation or _implementation(pairs)
    return [Section(kind=each, implementation=chosen, settings=_kept(each, chosen, found[each])) for each in _KINDS if each in found]


def settings_of(pairs: Mapping[str, str], *, kind: str, implementation: str, where: str) -> dict[str, str | int | float | bool]:
    """The settings in a file for a client of known kind and implementation; ConfigurationError if there are none."""
    found = sections(pairs, kind=kind, implementation=implementation)[0].settings
    if not found:
        raise ConfigurationError(f"{where}: contains no setting of a {kind}: give the file that configures it")
    return dict(found)


def _by_prefix(pairs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """For each kind, the settings with a prefix that frameworks use for it, without that prefix; the longest matching prefix is removed."""
    found: dict[str, dict[str, str]] = {}
    for kind in _KINDS:
        if not any(_is_prefixed(name, kind) for name in pairs):
            continue
        own = f"{_SPRING}{kind}."
        prefixes = (f"{kind}.", f"{kind}{_CONNECT_OVERRIDE}", f"{_SPRING}properties.", own, f"{own}properties.")
        settings: dict[str, str] = {}
        for prefix in prefixes:
            longer = tuple(other for other in prefixes if other != prefix and other.startswith(prefix))
            for name, value in pairs.items():
                if name.startswith(prefix) and not name.startswith(longer or ("\0",)):
                    rest = name.removeprefix(prefix)
                    setting, word = _in_kafkas_words(rest, value) if prefix == own else (rest, value)
                    settings[setting] = word
        found[kind] = settings
    return found


def _is_prefixed(name: str, kind: str) -> bool:
    """Whether this name shows that the file configures this kind of client; ``consumer.threads``, a service's own key, does not."""
    common = f"{_SPRING}properties."
    if name.startswith(_SPRING):
        return name.startswith(f"{_SPRING}{kind}.") or (name.startswith(common) and name.removeprefix(common) in _exclusive_names(kind))
    rest = name.removeprefix(f"{kind}.").removeprefix(_CONNECT_OVERRIDE.removeprefix("."))
    return name.startswith(f"{kind}.") and any(rest in all_names(each) for each in _LISTED)


def _by_names(pairs: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Settings without a prefix, for each kind of client that alone has one of these names; none in a file of Kafka Connect or Spring."""
    plain = _unprefixed(pairs)
    if _CONNECT & set(pairs) or any(name.startswith(_SPRING) for name in pairs):
        return {}
    if _STREAMS in plain:
        return dict.fromkeys(_KINDS, plain)
    names = set(plain)
    return {kind: plain for kind in _KINDS if names & _exclusive_names(kind)}


def _unprefixed(pairs: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in pairs.items() if not name.startswith((_SPRING, "producer.", "consumer."))}


@cache
def _exclusive_names(kind: str) -> frozenset[str]:
    """Names that only a client of this kind has, in any implementation."""
    listed = [known_names(each) for each in _LISTED]
    own = frozenset().union(*(names[kind] for names in listed))
    other = next(each for each in _KINDS if each != kind)
    return own - frozenset().union(*(names["both"] | names[other] for names in listed))


def _implementation(pairs: Mapping[str, str]) -> str:
    names = set(pairs)
    if any(name.startswith(_SPRING) for name in names):
        return "spring-kafka"
    if _CONNECT & names or any(_CONNECT_OVERRIDE in name for name in names):
        return "kafka-connect"
    if _STREAMS in names:
        return "other"  # Kafka Streams sets the defaults of its clients itself
    plain = {name.removeprefix("producer.").removeprefix("consumer.") for name in names}
    known = {each: all_names(each) for each in _LISTED}
    own = {
        each: plain & listed - frozenset().union(*(other for name, other in known.items() if name != each))
        for each, listed in known.items()
    }
    if own["kafka-python"]:
        return "kafka-python"
    return "librdkafka" if own["librdkafka"] and not own["java"] else "java"


def _kept(kind: str, implementation: str, settings: Mapping[str, str]) -> dict[str, str]:
    judged = JUDGED[kind]
    return {
        name: value if canonical_name(name, implementation) in judged or (kind == "consumer" and name == "group.id") else _NOT_KEPT
        for name, value in settings.items()
    }


def _without_brackets(pairs: Mapping[str, str]) -> dict[str, str]:
    """The same pairs, with keys such as ``properties[acks]`` (Spring's other syntax) rewritten to ``properties.acks``."""
    return {_IN_BRACKETS.sub(r"\1.\2", name): value for name, value in pairs.items()}


def _in_kafkas_words(name: str, value: str) -> tuple[str, str]:
    """Kafka's name and value for a setting of Spring; durations such as ``3s`` become milliseconds. Unknown names stay unchanged."""
    name = _RELAXED.get(_relaxed(name), name)
    kafkas = _OF_SPRING.get(name, name)
    found = _DURATION.fullmatch(value.strip()) if name in _SPRINGS_DURATIONS else None
    if found is not None:
        return kafkas, str(int(found.group(1)) * _MILLIS[found.group(2) or "ms"])
    if name == "isolation-level":
        return kafkas, value.strip().lower().replace("-", "_")
    return kafkas, value
