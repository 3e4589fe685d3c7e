"""Writes the seed's records: idempotent with kafka-python, acks=1 and transactional with confluent-kafka."""

import json
import time
from collections.abc import Iterator

import confluent_kafka
from kafka import KafkaProducer

from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.definition import Producer

_TIMEOUT_S = 60
_LONG = {"transaction.timeout.ms": 900_000}  # a transaction left open must outlive the audit; brokers allow no more than this by default


def write(producer: Producer, partitions: dict[str, int], bootstrap: str) -> int:
    """Write the producer's records to every partition of its topics (topic -> partition count); returns how many records were acknowledged.

    Raises CollectionError, KafkaError or KafkaException if a record is not acknowledged.
    """
    timestamp_ms = int((time.time() - producer.age_hours * 3600) * 1000)
    records = list(_records(producer, partitions))
    if producer.mode == "idempotent":
        _write_idempotent(producer, records, timestamp_ms, bootstrap)
    else:
        _write_librdkafka(producer, records, timestamp_ms, bootstrap)
    return len(records)


def _records(producer: Producer, partitions: dict[str, int]) -> Iterator[tuple[str, int, bytes, bytes]]:
    for topic, count in producer.records.items():
        for partition in range(partitions[topic]):
            for number in range(count):
                key = f"{topic}-{partition}-{number}"
                yield topic, partition, key.encode(), json.dumps({"id": key, "amount": number % 100}).encode()


def _write_idempotent(producer: Producer, records: list[tuple[str, int, bytes, bytes]], timestamp_ms: int, bootstrap: str) -> None:
    client = KafkaProducer(
        bootstrap_servers=bootstrap, client_id=producer.client_id, acks="all", enable_idempotence=True, linger_ms=20, max_block_ms=30_000
    )
    try:
        sent = [
            client.send(topic, partition=partition, key=key, value=value, timestamp_ms=timestamp_ms)
            for topic, partition, key, value in records
        ]
        client.flush(timeout=_TIMEOUT_S)
        for future in sent:
            future.get(timeout=1)  # raises if this record was not written
    finally:
        client.close(timeout=5)


def _write_librdkafka(producer: Producer, records: list[tuple[str, int, bytes, bytes]], timestamp_ms: int, bootstrap: str) -> None:
    refused: list[str] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            refused.append(str(error))

    transactional = producer.mode == "transactional"
    guarantees: dict[str, object] = (
        {"transactional.id": producer.client_id, **_LONG} if transactional else {"acks": 1, "enable.idempotence": False}
    )
    # Log level 3 is errors: retries while a coordinator loads are of no interest to the user.
    settings = {"bootstrap.servers": bootstrap, "client.id": producer.client_id, "linger.ms": 20, "log_level": 3, **guarantees}
    client = confluent_kafka.Producer(settings)
    if transactional:
        client.init_transactions(_TIMEOUT_S)
        client.begin_transaction()
    for topic, partition, key, value in records:
        client.produce(topic, value=value, key=key, partition=partition, timestamp=timestamp_ms, on_delivery=delivered)
    if transactional and producer.ends == "committed":
        client.commit_transaction(_TIMEOUT_S)
    left = client.flush(_TIMEOUT_S)
    if left or refused:
        raise CollectionError(f"producer {producer.client_id}: {left} records not acknowledged in {_TIMEOUT_S} s, refused: {refused[:3]}")
