"""The effective settings of a client (declared, default, or changed by the client itself), and those with which it refuses to start."""

import re
from collections.abc import Mapping
from typing import Protocol

from kafka_audit.clients.defaults import JAVA_CLIENTS, JUDGED, Setting, began_with, defaults, known
from kafka_audit.clients.names import (
    BOOLEANS,
    NUMBERS,
    all_names,
    canonical_name,
    canonical_value,
    looks_like_a_name,
    nearest_name,
)

_IDEMPOTENCE, _IN_FLIGHT, _DELIVERY = "enable.idempotence", "max.in.flight.requests.per.connection", "delivery.timeout.ms"
_SESSION, _HEARTBEAT, _STRATEGY = "session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"
_OF_THE_BROKERS = (_HEARTBEAT, _SESSION, _STRATEGY)
"""Settings that the brokers decide for a group of the newer protocol (KIP-848)."""
_MOST_IN_FLIGHT = 5
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
    def release(self) -> str | None: ...
    @property
    def settings(self) -> Mapping[str, str | int | float | bool]: ...


def effective(client: HasSettings) -> dict[str, Setting]:
    """The settings that matter for reliability, as the client would use them: the Java client's name -> Setting, sorted.

    Sources: the observed behaviour of the producers of kafka-clients 2.0.1 to 4.3.1, of librdkafka 2.16.0 and kafka-python 3.0.12;
    KIP-679, KIP-848.
    """
    given = _declared(client)
    if not known(client.implementation):
        return dict(sorted(given.items()))
    found = defaults(client.implementation, client.kind, client.release) | given
    if client.kind == "producer":
        found |= _changed_by_producer(client, given, found)
    elif _value_of(found, "group.protocol") == "consumer":
        found = {name: setting for name, setting in found.items() if name not in _OF_THE_BROKERS or name in given}
    return dict(sorted(found.items()))


def unknown_settings(client: HasSettings) -> list[str]:
    """Declared settings that no known release of the client has, such as ``ack (acks?)``: sorted, at most 20, and the number of those whose
    name is not shown because it may be a part of a value, such as a line of a private key; none for ``other``.
    """
    known = all_names(client.implementation)
    if not known:
        return []
    strange = sorted(name for name in client.settings if name not in known)
    shown = [name for name in strange if looks_like_a_name(name)]
    guesses = ((name, nearest_name(name, client.implementation)) for name in shown[:_LISTED])
    hidden = len(strange) - len(shown)
    words = "name that does not look like a setting" if hidden == 1 else "names that do not look like settings"
    return [*(f"{name} ({guess}?)" if guess else name for name, guess in guesses), *([f"{hidden:,} {words}"] if hidden else [])]


def _declared(client: HasSettings) -> dict[str, Setting]:
    """The declared settings that matter for reliability: the Java client's name -> Setting, with its value as the Java client writes it."""
    found = {}
    for name, value in client.settings.items():
        canonical = canonical_name(name, client.implementation)
        if canonical in JUDGED[client.kind]:
            found[canonical] = Setting(value=canonical_value(canonical, value, client.implementation), source=_DECLARED)
    return found


def _value_of(settings: Mapping[str, Setting], name: str) -> str | None:
    """The value of a setting; None if it is not known."""
    setting = settings.get(name)
    return setting.value if setting is not None else None


def _number_of(settings: Mapping[str, Setting], name: str) -> int | None:
    """The value of a setting as a number; None if it is not known or not a number."""
    value = _value_of(settings, name)
    return int(value) if value is not None and _WHOLE.fullmatch(value) else None


def _against_idempotence(settings: Mapping[str, Setting]) -> dict[str, str]:
    """The settings that conflict with an idempotent producer (KIP-98): name -> the conflict, such as ``acks is 1``."""
    acks, retries, in_flight = _value_of(settings, "acks"), _number_of(settings, "retries"), _number_of(settings, _IN_FLIGHT)
    wrong = {
        "acks": f"acks is {acks}" if acks not in (None, "all") else None,
        "retries": "retries is 0" if retries == 0 else None,
        _IN_FLIGHT: f"{_IN_FLIGHT} is {in_flight}" if in_flight is not None and in_flight > _MOST_IN_FLIGHT else None,
    }
    return {name: text for name, text in wrong.items() if text is not None}


def _least_delivery_timeout(settings: Mapping[str, Setting]) -> int | None:
    """linger.ms + request.timeout.ms in milliseconds; without the first if only that is not known, None without the second."""
    linger, request = _number_of(settings, "linger.ms"), _number_of(settings, "request.timeout.ms")
    return None if request is None else (linger or 0) + request


def _idempotence(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> Setting | None:
    """The value that the client gives enable.idempotence if nobody set it; None if it keeps its default."""
    by_default = _value_of(found, _IDEMPOTENCE)
    if _IDEMPOTENCE in given:
        return None
    if _value_of(found, "transactional.id"):
        return Setting(value="true", source="turned on by the client because transactional.id is set") if by_default != "true" else None
    if by_default == "false":
        return None
    # From 4.0 on, Java's producer refuses to start with too many requests in flight; before, and in kafka-python, it turns idempotence off.
    refuses = client.implementation in JAVA_CLIENTS and began_with(client.implementation, client.release, "4.0")
    silent = ("acks", "retries") if refuses else ("acks", "retries", _IN_FLIGHT)
    conflicts = _against_idempotence(given)
    for name in silent:
        if name in conflicts:
            return Setting(value="false", source=f"turned off by the client because {conflicts[name]}")
    if by_default is None:
        return None
    unknown = next((name for name in silent if _value_of(found, name) is None), None)
    return Setting(value=None, source=f"depends on {unknown}, which is not known") if unknown is not None else None


def _changed_by_producer(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> dict[str, Setting]:
    changed: dict[str, Setting] = {}
    idempotence = _idempotence(client, given, found)
    if idempotence is not None:
        changed[_IDEMPOTENCE] = idempotence
    if _value_of({**found, **changed}, _IDEMPOTENCE) == "true":
        # In every release, an idempotent producer uses these values, or does not start.
        needed = {"acks": "all", "retries": "2147483647"}
        if client.implementation == "librdkafka":
            needed[_IN_FLIGHT] = str(_MOST_IN_FLIGHT)
        for name, value in needed.items():
            if name not in given and _value_of(found, name) != value:
                changed[name] = Setting(value=value, source="set by the client because enable.idempotence is true")
    least, delivery = _least_delivery_timeout(found), _number_of(found, _DELIVERY)
    if client.implementation in JAVA_CLIENTS and _DELIVERY not in given and least is not None and delivery is not None and delivery < least:
        changed[_DELIVERY] = Setting(value=str(least), source="raised by the client to linger.ms + request.timeout.ms")
    return changed


def start_problems(client: HasSettings) -> list[str]:
    """Why the client refuses to start with these settings, as sentences; empty if no reason is known.

    Source: the observed behaviour of kafka-clients 2.0.1 to 4.3.1, librdkafka 2.16.0 and kafka-python 3.0.12.
    """
    if not known(client.implementation):
        return []
    given, found = _declared(client), effective(client)
    own = _of_producer(client, given, found) if client.kind == "producer" else _of_consumer(client, given, found)
    return [*own, *_wrong_kinds(given)]


def _of_producer(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> list[str]:
    problems = []
    conflicts = _against_idempotence(found)
    if _value_of(found, _IDEMPOTENCE) == "true":
        problems += [f"{text}, which idempotence does not allow" for text in conflicts.values()]
    elif _value_of(found, "transactional.id"):
        problems.append("transactional.id needs enable.idempotence=true")
    elif (
        _IN_FLIGHT in conflicts
        and _IDEMPOTENCE not in given
        and client.implementation in ("java", "spring-kafka")
        and began_with(client.implementation, client.release, "4.0")
    ):
        problems.append(f"{conflicts[_IN_FLIGHT]}, which the Java client accepts only with enable.idempotence=false")
    acks = _value_of(found, "acks")
    if acks not in (None, "all", "0", "1") and client.implementation != "librdkafka":
        problems.append(f"acks={acks} is none of all, -1, 0, 1")
    librdkafka = client.implementation == "librdkafka"
    least, delivery = _number_of(found, "linger.ms") if librdkafka else _least_delivery_timeout(found), _number_of(found, _DELIVERY)
    if least is not None and delivery is not None and delivery < least and (_DELIVERY in given or client.implementation == "kafka-python"):
        problems.append(f"{_DELIVERY} is {delivery}, below {'linger.ms' if librdkafka else 'linger.ms + request.timeout.ms'} ({least})")
    return problems


def _of_consumer(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> list[str]:
    problems = []
    librdkafka = client.implementation == "librdkafka"
    if client.implementation == "kafka-python" and "group.protocol" in given:
        problems.append("kafka-python has no setting group_protocol")
    if _value_of(found, "group.protocol") == "consumer":
        problems += [f"{name} cannot be set together with group.protocol=consumer" for name in _OF_THE_BROKERS if name in given]
    else:
        session, heartbeat, poll = (_number_of(found, name) for name in (_SESSION, _HEARTBEAT, "max.poll.interval.ms"))
        if not librdkafka and session is not None and heartbeat is not None and heartbeat >= session:
            problems.append(f"{_HEARTBEAT} is {heartbeat}, not below {_SESSION} ({session})")
        if librdkafka and session is not None and poll is not None and poll < session:
            problems.append(f"max.poll.interval.ms is {poll}, below {_SESSION} ({session})")
        assignors = (_value_of(found, _STRATEGY) or "").split(",")
        if librdkafka and len(assignors) > 1 and "cooperative-sticky" in assignors:
            problems.append(f"{_STRATEGY} mixes cooperative-sticky with eager assignors")
    reset = _value_of(given, "auto.offset.reset")
    has_durations = (
        client.implementation in JAVA_CLIENTS and began_with(client.implementation, client.release, "4.0") is not False
    )  # KIP-1106
    by_duration = has_durations and (reset or "").startswith("by_duration:P")
    if reset is not None and reset not in ("earliest", "latest", "none") and not by_duration and client.implementation != "kafka-python":
        problems.append(f"auto.offset.reset={reset} does not exist")
    isolation = _value_of(given, "isolation.level")
    if isolation not in (None, "read_committed", "read_uncommitted"):
        problems.append(f"isolation.level={isolation} does not exist")
    return problems


def _wrong_kinds(given: Mapping[str, Setting]) -> list[str]:
    """Values that are not a number, or not true or false, although the client expects one."""
    values = {name: setting.value for name, setting in given.items() if setting.value is not None}
    wrong = [f"{name} is neither true nor false" for name, value in values.items() if name in BOOLEANS and value not in ("true", "false")]
    return wrong + [f"{name} is no whole number" for name in values if name in NUMBERS and _number_of(given, name) is None]
