"""The effective settings of clients equal the observed behaviour of Kafka 4.3.1's clients, librdkafka 2.16.0 and kafka-python 3.0.12."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer

from kafka_audit.clients.defaults import JUDGED, Setting, defaults
from kafka_audit.clients.names import canonical_value
from kafka_audit.clients.settings import effective, start_problems, unknown_settings

RELEASES = {"java": "4.3", "spring-kafka": "4.3", "kafka-connect": "4.3", "librdkafka": "2.16", "kafka-python": "3.0.12"}
IN_FLIGHT = "max.in.flight.requests.per.connection"


@dataclass
class Client:
    kind: str
    implementation: str
    settings: dict[str, Any] = field(default_factory=dict)
    release: str | None = None


def producer(settings: dict[str, Any], implementation: str = "java") -> Client:
    return Client("producer", implementation, settings, RELEASES.get(implementation))


def consumer(settings: dict[str, Any], implementation: str = "java") -> Client:
    return Client("consumer", implementation, settings, RELEASES.get(implementation))


VALUES = {
    "a default": (producer({}), "acks", "all", "default of the Java client 4.3"),
    "-1 is all": (producer({"acks": -1}), "acks", "all", "declared"),
    "spaces around a value": (producer({"acks": " all "}), "acks", "all", "declared"),
    "librdkafka's own name": (producer({"request.required.acks": 1}, "librdkafka"), "acks", "1", "declared"),
    "librdkafka reads words in any case": (producer({"acks": "ALL"}, "librdkafka"), "acks", "all", "declared"),
    "kafka-python's underscores": (producer({"delivery_timeout_ms": 9}, "kafka-python"), "delivery.timeout.ms", "9", "declared"),
    "no limit": (producer({"message.timeout.ms": 0}, "librdkafka"), "delivery.timeout.ms", "2147483647", "declared"),
    "infinite retries": (producer({"retries": float("inf")}, "kafka-python"), "retries", "2147483647", "declared"),
    "acks=1 turns idempotence off": (
        producer({"acks": 1}),
        "enable.idempotence",
        "false",
        "turned off by the client because acks is 1",
    ),
    "so does retries=0": (producer({"retries": 0}), "enable.idempotence", "false", "turned off by the client because retries is 0"),
    "an explicit one stays": (producer({"acks": 1, "enable.idempotence": True}), "enable.idempotence", "true", "declared"),
    "kafka-python gives it up for requests in flight": (
        producer({"max_in_flight_requests_per_connection": 6}, "kafka-python"),
        "enable.idempotence",
        "false",
        f"turned off by the client because {IN_FLIGHT} is 6",
    ),
    "Java does not": (producer({IN_FLIGHT: 6}), "enable.idempotence", "true", "default of the Java client 4.3"),
    "librdkafka has none by default": (producer({}, "librdkafka"), "enable.idempotence", "false", "default of librdkafka 2.16"),
    "a transactional id brings it": (
        producer({"transactional.id": "t"}, "librdkafka"),
        "enable.idempotence",
        "true",
        "turned on by the client because transactional.id is set",
    ),
    "idempotence lowers librdkafka's requests in flight": (
        producer({"enable.idempotence": "true"}, "librdkafka"),
        IN_FLIGHT,
        "5",
        "set by the client because enable.idempotence is true",
    ),
    "a delivery timeout that nobody set is raised": (
        producer({"linger.ms": 200_000}),
        "delivery.timeout.ms",
        "230000",
        "raised by the client to linger.ms + request.timeout.ms",
    ),
    "a placeholder is not known": (producer({"acks": "${ACKS:all}"}), "acks", None, "declared"),
    "nor is what depends on it": (producer({"acks": "${A}"}), "enable.idempotence", None, "depends on acks, which is not known"),
    "Connect's producers": (producer({}, "kafka-connect"), IN_FLIGHT, "1", "default of Kafka Connect 4.3"),
    "Spring's consumers": (
        consumer({}, "spring-kafka"),
        "enable.auto.commit",
        "false",
        "default of Spring for Apache Kafka on the Java client 4.3",
    ),
    "librdkafka's reset": (consumer({"auto.offset.reset": "smallest"}, "librdkafka"), "auto.offset.reset", "earliest", "declared"),
    "librdkafka's error": (consumer({"auto.offset.reset": "error"}, "librdkafka"), "auto.offset.reset", "none", "declared"),
    "librdkafka isolates by default": (consumer({}, "librdkafka"), "isolation.level", "read_committed", "default of librdkafka 2.16"),
    "assignors by class": (
        consumer({"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}),
        "partition.assignment.strategy",
        "cooperative-sticky",
        "declared",
    ),
}


OF_JAVA = "acks", "enable.idempotence", "retries", "delivery.timeout.ms", "linger.ms"
# What KafkaProducer of these releases was seen to use with these settings; None where releases differ or have no such setting.
BY_RELEASE = {
    ("2.0.1", ""): ("1", "false", "0", None, "0"),
    ("2.8", ""): ("1", "false", "2147483647", "120000", "0"),
    ("2", ""): ("1", "false", None, None, "0"),
    ("3.0.0", ""): ("all", "false", "2147483647", "120000", "0"),
    ("3.0", ""): ("all", None, "2147483647", "120000", "0"),
    ("3.0.2", ""): ("all", "true", "2147483647", "120000", "0"),
    ("3.1.0", ""): ("all", "false", "2147483647", "120000", "0"),
    ("3.9", ""): ("all", "true", "2147483647", "120000", "0"),
    ("4.3.1", ""): ("all", "true", "2147483647", "120000", "5"),
    (None, ""): (None, None, None, None, None),
    (None, "enable.idempotence=true"): ("all", "true", "2147483647", None, None),
    ("2.0.1", "transactional.id=t"): ("all", "true", "2147483647", None, "0"),
    (None, "transactional.id=t"): ("all", "true", "2147483647", None, None),
    (None, "acks=1"): ("1", "false", None, None, None),
    ("3.2", "acks=1"): ("1", "false", "2147483647", "120000", "0"),
    ("3.2", f"{IN_FLIGHT}=6"): ("all", "false", "2147483647", "120000", "0"),
    (None, f"{IN_FLIGHT}=6"): (None, "false", None, None, None),
    ("3.9", "request.timeout.ms=130000"): ("all", "true", "2147483647", "130000", "0"),
    ("4.0.0", "request.timeout.ms=130000"): ("all", "true", "2147483647", "130005", "5"),
    ("1.0", ""): (None, None, None, None, None),
    ("5.0", ""): (None, None, None, None, None),
}


@pytest.mark.parametrize(("release", "given"), BY_RELEASE, ids=str)
def test_what_nobody_set_depends_on_the_clients_release(release: str | None, given: str) -> None:
    settings = dict([given.split("=")]) if given else {}
    found = effective(Client("producer", "java", settings, release))
    assert tuple(found[name].value for name in OF_JAVA) == BY_RELEASE[release, given]
    assert start_problems(Client("producer", "java", settings, release)) == []


OTHERS = {
    ("librdkafka", None, "acks"): None,
    ("librdkafka", "0.11.6", "acks"): "1",
    ("librdkafka", "1.4", "retries"): "2",
    ("librdkafka", "1.5", "retries"): None,
    ("librdkafka", "1.5.2", "retries"): "2147483647",
    ("librdkafka", None, "enable.idempotence"): "false",
    ("kafka-python", "2.0.2", "acks"): "1",
    ("kafka-python", "2.0.2", "retries"): "0",
    ("kafka-python", None, "acks"): None,
    ("kafka-connect", None, "acks"): "all",
    ("kafka-connect", None, "enable.idempotence"): "false",
    ("spring-kafka", "3.4", "acks"): "all",
}


@pytest.mark.parametrize(("implementation", "release", "name"), OTHERS, ids=str)
def test_other_producers_defaults_depend_on_their_release(implementation: str, release: str | None, name: str) -> None:
    assert effective(Client("producer", implementation, {}, release))[name].value == OTHERS[implementation, release, name]


def test_a_default_that_differs_says_in_which_releases() -> None:
    assert effective(Client("producer", "java"))["acks"].source == (
        "default of the Java client, which depends on its release (1 from 1.1, all from 3.0)"
    )
    assert effective(Client("producer", "java"))["request.timeout.ms"].source == "default of the Java client in all releases from 1.1"
    assert effective(Client("producer", "java", {}, "5.0"))["acks"].source == (
        "default of the Java client 5.0, which is not known (known are those of 1.1 to 4.4)"
    )
    assert (
        effective(Client("producer", "kafka-python", {}, "2.0.2"))["delivery.timeout.ms"].source == "kafka-python 2.0.2 has no such setting"
    )


@pytest.mark.parametrize("release", ["2.8", "3.9", None])
def test_a_reset_by_duration_needs_kafka_4(release: str | None) -> None:
    client = Client("consumer", "java", {"auto.offset.reset": "by_duration:PT1H"}, release)
    assert start_problems(client) == ([] if release is None else ["auto.offset.reset=by_duration:PT1H does not exist"])


@pytest.mark.parametrize("case", VALUES)
def test_a_setting_is_what_the_client_uses(case: str) -> None:
    client, name, value, source = VALUES[case]
    assert effective(client)[name] == Setting(value=value, source=source)


def test_a_client_whose_defaults_are_not_known_has_only_what_it_declares() -> None:
    assert effective(producer({"acks": "all"}, "other")) == {"acks": Setting(value="all", source="declared")}


def test_with_the_newer_protocol_the_brokers_decide_the_timeouts() -> None:
    assert not {"session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy"} & set(
        effective(consumer({"group.protocol": "CONSUMER"}))
    )


def test_no_other_value_of_a_configuration_is_kept() -> None:
    assert "sasl.jaas.config" not in effective(producer({"sasl.jaas.config": "password=secret"}))


REFUSED = {
    "acks=1 with idempotence": (producer({"acks": 1, "enable.idempotence": "true"}), "acks is 1"),
    "no retries with idempotence": (producer({"retries": 0, "enable.idempotence": True}, "librdkafka"), "retries is 0"),
    "too many in flight, even with acks=1": (producer({IN_FLIGHT: 6, "acks": 1}), "only with enable.idempotence=false"),
    "transactions without idempotence": (producer({"transactional.id": "t", "enable.idempotence": "false"}), "transactional.id needs"),
    "transactions with acks=1": (producer({"transactional.id": "t", "acks": "1"}), "acks is 1"),
    "capitals": (producer({"acks": "ALL"}), "acks=ALL"),
    "a budget below one request": (producer({"delivery.timeout.ms": 20_000}), "below linger.ms + request.timeout.ms"),
    "kafka-python does not raise its budget": (producer({"linger_ms": 200_000}, "kafka-python"), "below linger.ms"),
    "librdkafka's budget": (producer({"message.timeout.ms": 1, "linger.ms": 5}, "librdkafka"), "below linger.ms (5)"),
    "no boolean": (producer({"enable.idempotence": "yes"}), "neither true nor false"),
    "no number": (producer({"linger.ms": "5s"}), "no whole number"),
    "a number as Python writes it": (producer({"delivery.timeout.ms": "300_000"}), "no whole number"),
    "digits of another script": (producer({"linger.ms": "\u0663"}), "no whole number"),
    "slow heartbeats": (consumer({"heartbeat.interval.ms": 50_000}), "not below session.timeout.ms"),
    "the brokers' settings": (consumer({"group.protocol": "consumer", "session.timeout.ms": 1}), "together with group.protocol=consumer"),
    "a protocol that is not there": (consumer({"group_protocol": "consumer"}, "kafka-python"), "no setting group_protocol"),
    "mixed assignors": (consumer({"partition.assignment.strategy": "range,cooperative-sticky"}, "librdkafka"), "mixes"),
    "polls shorter than a session": (consumer({"max.poll.interval.ms": 10_000}, "librdkafka"), "below session.timeout.ms"),
    "an unknown reset": (consumer({"auto.offset.reset": "smallest"}), "does not exist"),
    "librdkafka has no none": (consumer({"auto.offset.reset": "by_duration:PT1H"}, "librdkafka"), "does not exist"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_client_that_will_not_start_is_known(case: str) -> None:
    client, reason = REFUSED[case]
    assert [problem for problem in start_problems(client) if reason in problem] != []


STARTS = [
    producer({"queue.buffering.max.ms": "0.5"}, "librdkafka"),
    producer({"acks": 1}),
    producer({"acks": 0, "enable.idempotence": "false"}),
    producer({IN_FLIGHT: 6, "enable.idempotence": "false"}),
    producer({"linger.ms": 200_000}),
    producer({"max_in_flight_requests_per_connection": 6}, "kafka-python"),
    producer({"acks": 2}, "librdkafka"),
    producer({"acks": 1}, "kafka-connect"),
    consumer({"auto.offset.reset": "by_duration:PT1H"}),
    consumer({"group.protocol": "consumer"}),
    consumer({"heartbeat.interval.ms": 20_000, "session.timeout.ms": 10_000}, "librdkafka"),
    consumer({"anything": "else"}, "other"),
]


@pytest.mark.parametrize(
    "client", [*STARTS, *(Client(kind, each, release=release) for each, release in RELEASES.items() for kind in JUDGED)], ids=str
)
def test_a_client_that_starts_has_no_problem(client: Client) -> None:
    assert start_problems(client) == []


def test_a_misspelt_name_is_found_with_what_may_have_been_meant() -> None:
    assert unknown_settings(producer({"ack": "all", "acks": "all", "schema.registry.url": "x"})) == ["ack (acks?)", "schema.registry.url"]
    assert unknown_settings(producer({"acks": "all"}, "kafka-python")) == []
    assert unknown_settings(producer({"request_required_acks": 1}, "other")) == []


@pytest.mark.parametrize(("kind", "real"), [("producer", KafkaProducer), ("consumer", KafkaConsumer)])
def test_kafka_pythons_defaults_are_the_installed_ones(kind: str, real: Any) -> None:
    for name, value in defaults("kafka-python", kind, "3.0.12").items():
        own = name.replace(".", "_")
        found = real.DEFAULT_CONFIG.get(own)
        if own in real.DEFAULT_CONFIG and found is not None:
            text = ",".join(each.name for each in found) if isinstance(found, tuple) else str(found)
            text = text.lower() if isinstance(found, bool) else text
            assert value.value == canonical_value(name, text, "kafka-python"), name
