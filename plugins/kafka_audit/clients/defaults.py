"""The default settings of each client implementation, under the Java client's names, and the release they were read from."""

from collections.abc import Mapping

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
