"""Settings with which a client refuses to start, observed with Kafka 4.3.1's Java clients, librdkafka 2.16.0 and kafka-python 3.0.12."""

from collections.abc import Mapping

from kafka_audit.clients.defaults import DEFAULTS, JAVA_CLIENTS
from kafka_audit.clients.names import BOOLEANS, NUMBERS
from kafka_audit.clients.settings import (
    DELIVERY,
    IDEMPOTENCE,
    IN_FLIGHT,
    OF_THE_BROKERS,
    HasSettings,
    Setting,
    against_idempotence,
    declared,
    effective,
    least_delivery_timeout,
    number_of,
    value_of,
)

_SESSION, _HEARTBEAT, _STRATEGY = "session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"


def start_problems(client: HasSettings) -> list[str]:
    """Why the client refuses to start with these settings, as sentences; empty if no reason is known."""
    if client.implementation not in DEFAULTS:
        return []
    given, found = declared(client), effective(client)
    own = _of_producer(client, given, found) if client.kind == "producer" else _of_consumer(client, given, found)
    return [*own, *_wrong_kinds(given)]


def _of_producer(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> list[str]:
    problems = []
    conflicts = against_idempotence(found)
    if value_of(found, IDEMPOTENCE) == "true":
        problems += [f"{text}, which idempotence does not allow" for text in conflicts.values()]
    elif value_of(found, "transactional.id"):
        problems.append("transactional.id needs enable.idempotence=true")
    elif IN_FLIGHT in conflicts and IDEMPOTENCE not in given and client.implementation in ("java", "spring-kafka"):
        problems.append(f"{conflicts[IN_FLIGHT]}, which the Java client accepts only with enable.idempotence=false")
    acks = value_of(found, "acks")
    if acks not in (None, "all", "0", "1") and client.implementation != "librdkafka":
        problems.append(f"acks={acks} is none of all, -1, 0, 1")
    librdkafka = client.implementation == "librdkafka"
    least, delivery = number_of(found, "linger.ms") if librdkafka else least_delivery_timeout(found), number_of(found, DELIVERY)
    if least is not None and delivery is not None and delivery < least and (DELIVERY in given or client.implementation == "kafka-python"):
        problems.append(f"{DELIVERY} is {delivery}, below {'linger.ms' if librdkafka else 'linger.ms + request.timeout.ms'} ({least})")
    return problems


def _of_consumer(client: HasSettings, given: Mapping[str, Setting], found: Mapping[str, Setting]) -> list[str]:
    problems = []
    librdkafka = client.implementation == "librdkafka"
    if client.implementation == "kafka-python" and "group.protocol" in given:
        problems.append("kafka-python has no setting group_protocol")
    if value_of(found, "group.protocol") == "consumer":
        problems += [f"{name} cannot be set together with group.protocol=consumer" for name in OF_THE_BROKERS if name in given]
    else:
        session, heartbeat, poll = (number_of(found, name) for name in (_SESSION, _HEARTBEAT, "max.poll.interval.ms"))
        if not librdkafka and session is not None and heartbeat is not None and heartbeat >= session:
            problems.append(f"{_HEARTBEAT} is {heartbeat}, not below {_SESSION} ({session})")
        if librdkafka and session is not None and poll is not None and poll < session:
            problems.append(f"max.poll.interval.ms is {poll}, below {_SESSION} ({session})")
        assignors = (value_of(found, _STRATEGY) or "").split(",")
        if librdkafka and len(assignors) > 1 and "cooperative-sticky" in assignors:
            problems.append(f"{_STRATEGY} mixes cooperative-sticky with eager assignors")
    reset = value_of(given, "auto.offset.reset")
    by_duration = client.implementation in JAVA_CLIENTS and (reset or "").startswith("by_duration:P")
    if reset is not None and reset not in ("earliest", "latest", "none") and not by_duration and client.implementation != "kafka-python":
        problems.append(f"auto.offset.reset={reset} does not exist")
    isolation = value_of(given, "isolation.level")
    if isolation not in (None, "read_committed", "read_uncommitted"):
        problems.append(f"isolation.level={isolation} does not exist")
    return problems


def _wrong_kinds(given: Mapping[str, Setting]) -> list[str]:
    """Values that are not a number, or not true or false, although the client expects one."""
    values = {name: setting.value for name, setting in given.items() if setting.value is not None}
    wrong = [f"{name} is neither true nor false" for name, value in values.items() if name in BOOLEANS and value not in ("true", "false")]
    return wrong + [f"{name} is no whole number" for name in values if name in NUMBERS and number_of(given, name) is None]
