"""The effective settings of a client: what is declared, its defaults, and what the client changes by itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kafka_audit.clients.defaults import DEFAULTS, JAVA_CLIENTS, JUDGED, SOURCES
from kafka_audit.clients.names import all_names, canonical_name, canonical_value, nearest_name

IDEMPOTENCE, IN_FLIGHT, DELIVERY = "enable.idempotence", "max.in.flight.requests.per.connection", "delivery.timeout.ms"
OF_THE_BROKERS = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")
"""Settings that the brokers decide for a group of the newer protocol (KIP-848)."""
MOST_IN_FLIGHT = 5
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")  # int() would accept 300_000 and digits of other scripts, which clients refuse
_DECLARED = "declared"
_LISTED = 20


class HasSettings(Protocol):
    """A declared client, or one read from a file."""

    @property
    def kind(self) -> str: ...
    @property
    def implementation(self) -> str: ...
    @property
    def settings(self) -> Mapping[str, str | int | float | bool]: ...


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value as the client uses it, and its source: declared, the client's default, or why the client changed it.

    ``value`` is None if it is known only when the client starts, like ``${ACKS}`` in a settings file.
    """

    value: str | None
    source: str


def effective(client: HasSettings) -> dict[str, Setting]:
    """The settings that matter for reliability, as the client would use them: the Java client's name -> Setting, sorted.

    Sources: the observed behaviour of Kafka 4.3.1's clients, librdkafka 2.16.0 and kafka-python 3.0.12; KIP-679, KIP-848.
    """
    given = declared(client)
    if client.implementation not in DEFAULTS:
        return dict(sorted(given.items()))
    source, defaults = SOURCES[client.implementation], DEFAULTS[client.implementation][client.kind]
    found = {name: Setting(value=value, source=source) for name, value in defaults.items()} | given
    if client.kind == "producer":
        found |= _changed_by_producer(client, given, found)
    elif value_of(found, "group.protocol") == "consumer":
        found = {name: setting for name, setting in found.items() if name not in OF_THE_BROKERS or name in given}
    return dict(sorted(found.items()))


def unknown_settings(client: HasSettings) -> list[str]:
    """Declared settings that no known release of the client has, such as ``ack (acks?)``; sorted, at most 20; none for ``other``."""
    known = all_names(client.implementation)
    if not known:
        return []
    strange = sorted(name for name in client.settings if name not in known)[:_LISTED]
    guesses = ((name, nearest_name(name, client.implementation)) for name in strange)
    return [f"{name} ({guess}?)" if guess else name for name, guess in guesses]


def declared(client: HasSettings) -> dict[str, Setting]:
    """The declared settings that matter for reliability: the Java client's name -> Setting, with its value as the Java client writes it."""
    found = {}
    for name, value in client.settings.items():
        canonical = canonical_name(name, client.implementation)
        if canonical in JUDGED[client.kind]:
            found[canonical] = Setting(value=canonical_value(canonical, value, client.implementation), source=_DECLARED)
    return found


def value_of(settings: Mapping[str, Setting], name: str) -> str | None:
    """The value of a setting; None if it is not known."""
    setting = settings.get(name)
    return setting.value if setting is not None else None


def number_of(settings: Mapping[str, Setting], name: str) -> int | None:
    """The value of a setting as a number; None if it is not known or not a number."""
    value = value_of(settings, name)
    return int(value) if value is not None and _WHOLE.fullmatch(value) else None


def against_idempotence(settings: Mapping[str, Setting]) -> dict[str, str]:
    """The settings that conflict with an idempotent producer (KIP-98): name -> the conflict, such as ``acks is 1``."""
    acks, retries, in_flight = value_of(settings, "acks"), number_of(settings, "retries"), number_of(settings, IN_FLIGHT)
    wrong = {
        "acks": f"acks is {acks}" if acks not in (None, "all") else None,
        "retries": "retries is 0" if retries == 0 else None,
        IN_FLIGHT: f"{IN_FLIGHT} is {in_flight}" if in_flight is not None and in_flight > MOST_IN_FLIGHT else None,
    }
    return {name: text for name, text in wrong.items() if text is not None}


def least_delivery_timeout(settings: Mapping[str, Setting]) -> int | None:
    """linger.ms + request.timeout.ms in milliseconds; None if either is not known."""
    linger, request = number_of(settings, "linger.ms"), number_of(settings, "request.timeout.ms")
    return None if linger is None or request is None else linger + request


def _idempotence(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> Setting | None:
    """The value that the client gives enable.idempotence if nobody set it; None if it keeps its default."""
    transactional = bool(value_of(found, "transactional.id"))
    if IDEMPOTENCE in given:
        return None
    if client.implementation == "librdkafka":
        return Setting(value="true", source="turned on by the client because transactional.id is set") if transactional else None
    if transactional or value_of(found, IDEMPOTENCE) != "true":
        return None
    # With too many requests in flight, Java's producer refuses to start; kafka-python's turns idempotence off.
    silent = ("acks", "retries") if client.implementation in JAVA_CLIENTS else ("acks", "retries", IN_FLIGHT)
    conflicts = against_idempotence(found)
    for name in silent:
        if name in conflicts:
            return Setting(value="false", source=f"turned off by the client because {conflicts[name]}")
    unknown = next((name for name in silent if value_of(found, name) is None), None)
    return Setting(value=None, source=f"depends on {unknown}, which is not known") if unknown is not None else None


def _changed_by_producer(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> dict[str, Setting]:
    changed: dict[str, Setting] = {}
    idempotence = _idempotence(client, given, found)
    if idempotence is not None:
        changed[IDEMPOTENCE] = idempotence
    if client.implementation == "librdkafka" and IN_FLIGHT not in given and value_of({**found, **changed}, IDEMPOTENCE) == "true":
        changed[IN_FLIGHT] = Setting(value=str(MOST_IN_FLIGHT), source="lowered by the client because enable.idempotence is true")
    least, delivery = least_delivery_timeout(found), number_of(found, DELIVERY)
    if client.implementation in JAVA_CLIENTS and DELIVERY not in given and least is not None and delivery is not None and delivery < least:
        changed[DELIVERY] = Setting(value=str(least), source="raised by the client to linger.ms + request.timeout.ms")
    return changed
