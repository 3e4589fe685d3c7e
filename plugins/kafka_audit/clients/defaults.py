"""The defaults of client settings by release: what a client uses where nobody set a value.

A default is known only if the client's release is declared, or if it is the same in all releases. Values were read from the classes of
kafka-clients 1.1.1 to 4.4.0 and connect-runtime 3.0.0 to 4.3.1, CONFIGURATION.md of librdkafka 0.11.6 to 2.16 and DEFAULT_CONFIG of
kafka-python 1.4.7 to 3.0.12; Spring for Apache Kafka: its change GH-945 of release 2.3.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_audit.errors import ConfigurationError

_History = str | tuple[tuple[str, str | None], ...]
"""A value that all releases have, or (first release with the value, value) from the oldest to the newest; None: no such setting."""
_NO_LIMIT = "2147483647"
DEFAULT_OF = "default of "
"""With this begins the source of a value that is a default, or would be if it were known."""

_JAVA_PRODUCER: Mapping[str, _History] = {
    "acks": (("1.1", "1"), ("3.0", "all")),  # KIP-679
    "delivery.timeout.ms": (("1.1", None), ("2.1", "120000")),  # KIP-91
    # 3.0.0 and 3.1.0 document true, but their producers are not idempotent (KAFKA-13598).
    "enable.idempotence": (("1.1", "false"), ("3.0.1", "true"), ("3.1.0", "false"), ("3.1.1", "true")),
    "linger.ms": (("1.1", "0"), ("4.0", "5")),  # KIP-1030
    "max.in.flight.requests.per.connection": "5",
    "max.request.size": "1048576",
    "request.timeout.ms": "30000",
    "retries": (("1.1", "0"), ("2.1", _NO_LIMIT)),
    "transactional.id": "",
}
_JAVA_CONSUMER: Mapping[str, _History] = {
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
    "partition.assignment.strategy": (("1.1", "range"), ("3.0", "range,cooperative-sticky")),  # KIP-726
    "session.timeout.ms": (("1.1", "10000"), ("3.0", "45000")),  # KIP-735
}


@dataclass(frozen=True, kw_only=True)
class _Client:
    name: str
    first: str
    last: str
    """The oldest and the newest release whose defaults were read."""
    producer: Mapping[str, _History]
    consumer: Mapping[str, _History]


_CLIENTS: Mapping[str, _Client] = {
    "java": _Client(name="the Java client", first="1.1", last="4.4", producer=_JAVA_PRODUCER, consumer=_JAVA_CONSUMER),
    # Releases are those of its kafka-clients. Spring's own releases before 2.3, on kafka-clients before 2.3, left auto-commit on.
    "spring-kafka": _Client(
        name="Spring for Apache Kafka on the Java client",
        first="2.3",
        last="4.4",
        producer=_JAVA_PRODUCER,
        consumer={**_JAVA_CONSUMER, "enable.auto.commit": "false"},
    ),
    "kafka-connect": _Client(
        name="Kafka Connect",
        first="3.0",
        last="4.3",
        producer={
            **_JAVA_PRODUCER,
            "acks": "all",
            "delivery.timeout.ms": _NO_LIMIT,
            "enable.idempotence": "false",
            "max.in.flight.requests.per.connection": "1",
        },
        consumer={**_JAVA_CONSUMER, "auto.offset.reset": "earliest", "enable.auto.commit": "false"},
    ),
    "librdkafka": _Client(
        name="librdkafka",
        first="0.11",
        last="2.16",
        producer={
            "acks": (("0.11", "1"), ("1.0", "all")),
            "delivery.timeout.ms": "300000",
            "enable.idempotence": "false",
            "linger.ms": (("0.11", "0"), ("1.2", "1"), ("1.5", "5")),  # 0.5 from 1.2 to 1.4
            "max.in.flight.requests.per.connection": "1000000",
            "max.request.size": "1000000",
            "request.timeout.ms": (("0.11", "5000"), ("1.5.2", "30000")),
            "retries": (("0.11", "2"), ("1.5.2", _NO_LIMIT)),
            "transactional.id": "",
        },
        consumer={
            **_JAVA_CONSUMER,
            "heartbeat.interval.ms": (("0.11", "1000"), ("1.0", "3000")),
            "isolation.level": (("0.11", "read_uncommitted"), ("1.2", "read_committed")),
            "max.poll.interval.ms": (("0.11", None), ("1.0", "300000")),
            "partition.assignment.strategy": "range,roundrobin",
            "session.timeout.ms": (("0.11", "30000"), ("1.0", "10000"), ("1.7", "45000")),
        },
    ),
    "kafka-python": _Client(
        name="kafka-python",
        first="1.4",
        last="3.0",
        producer={
            **_JAVA_PRODUCER,
            "acks": (("1.4", "1"), ("3.0", "all")),
            "delivery.timeout.ms": (("1.4", None), ("2.2", "120000")),
            "enable.idempotence": (("1.4", "false"), ("3.0", "true")),
            "linger.ms": "0",
            "retries": (("1.4", "0"), ("2.2", _NO_LIMIT)),
        },
        consumer={
            **_JAVA_CONSUMER,
            "partition.assignment.strategy": "range,roundrobin",
            "session.timeout.ms": (("1.4", "10000"), ("3.0", "45000")),
        },
    ),
}
"""Implementation -> its defaults, under the Java client's names. ``other`` has none: a setting that it does not declare is not known."""

JAVA_CLIENTS = frozenset({"java", "spring-kafka", "kafka-connect"})
"""Implementations that use the Java client."""

JUDGED: Mapping[str, frozenset[str]] = {"producer": frozenset(_JAVA_PRODUCER), "consumer": frozenset(_JAVA_CONSUMER)}
"""The settings that are kept, by kind. No other value of a client's configuration leaves this package: it may be a password."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value as the client uses it, and its source: declared, the client's default, or why the client changed it.

    ``value`` is None if it is not known: like ``${ACKS}`` in a settings file, or a default of a release that nobody declared.
    """

    value: str | None
    source: str


def known(implementation: str) -> bool:
    """Whether the defaults of an implementation are known."""
    return implementation in _CLIENTS


def values_of(name: str) -> frozenset[str]:
    """All values that any release of the Java client has as the default of a setting."""
    history = {**_JAVA_PRODUCER, **_JAVA_CONSUMER}[name]
    return frozenset({history} if isinstance(history, str) else {value for _, value in history if value is not None})


def defaults(implementation: str, kind: str, release: str | None) -> dict[str, Setting]:
    """The default of each judged setting, by the Java client's name; empty for an implementation whose defaults are not known.

    ``release``: what the owner declares, such as ``3.9.1``, or its beginning, ``3.9``: then a default is known if all releases that
    begin so have it.
    """
    if implementation not in _CLIENTS:
        return {}
    client = _CLIENTS[implementation]
    histories = client.producer if kind == "producer" else client.consumer
    return {name: _setting(client, history, release) for name, history in histories.items()}


def began_with(implementation: str, release: str | None, first: str) -> bool | None:
    """Whether the release is ``first`` or a later one; None if that is not known."""
    if release is None or implementation not in _CLIENTS:
        return None
    lowest, beyond = _span(release)
    if lowest >= _padded(first):
        return True
    return False if beyond <= _padded(first) else None


def check_release(implementation: str, release: str) -> None:
    """ConfigurationError for a release of an implementation whose releases are not known, or one that is no release number."""
    if implementation not in _CLIENTS:
        raise ConfigurationError(f"the defaults of implementation {implementation} are not known in any release: remove release")
    parts = release.split(".")
    if len(parts) > 4 or not all(part.isascii() and part.isdecimal() and len(part) < 5 for part in parts):
        raise ConfigurationError(f"{release!r:.80} is not a release: write its numbers, such as {_CLIENTS[implementation].last}")


def _setting(client: _Client, history: _History, release: str | None) -> Setting:
    steps = ((client.first, history),) if isinstance(history, str) else history
    if release is None:
        lowest, beyond = _span(client.first)[0], _span(client.last)[1]
    else:
        lowest, beyond = _span(release)
    if lowest < _padded(client.first) or lowest[0] > _padded(client.last)[0]:
        beside = f"known are those of {client.first} to {client.last}"
        return Setting(value=None, source=f"{DEFAULT_OF}{client.name} {release}, which is not known ({beside})")
    starting = [value for first, value in steps if _padded(first) <= lowest][-1:]
    values = {*starting, *(value for first, value in steps if lowest < _padded(first) < beyond)}
    if len(values) > 1:
        story = ", ".join(f"{value or 'none'} from {first}" for first, value in steps)
        return Setting(value=None, source=f"{DEFAULT_OF}{client.name}, which depends on its release ({story})")
    (value,) = values
    if value is None:
        return Setting(value=None, source=f"{client.name} {release} has no such setting")
    where = f"in all releases from {client.first}" if release is None else release
    return Setting(value=value, source=f"{DEFAULT_OF}{client.name} {where}")


def _padded(release: str) -> tuple[int, ...]:
    numbers = [int(part) for part in release.split(".")]
    return tuple([*numbers, 0, 0, 0, 0][:4])


def _span(release: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lowest release that begins so, and the lowest one beyond all that do."""
    numbers = [int(part) for part in release.split(".")]
    return _padded(release), tuple([*numbers[:-1], numbers[-1] + 1, 0, 0, 0, 0][:4])
