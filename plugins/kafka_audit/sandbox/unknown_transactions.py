"""Writes transactional records that no coordinator knows, as a request does that reaches its partition after the transaction has ended."""

import time
from collections.abc import Iterable
from contextlib import closing
from itertools import groupby

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import for_code
from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from kafka_audit.errors import CollectionError

_VERIFICATION = "transaction.partition.verification.enable"
_PRODUCER_ID = 987_654_321
_TIMEOUT_S = 60
_BEFORE_TRANSACTION_VERSION_2 = 11


def write_unknown_transaction(
    transactional_id: str, records: Iterable[tuple[str, int, bytes, bytes]], timestamp_ms: int, bootstrap: str
) -> None:
    """Write the records (topic, partition, key, value), a batch to each partition, in a transaction that was never begun.

    Brokers refuse such a batch while they verify transactions (KIP-890): on the partition's leader that is switched off meanwhile.
    Raises CollectionError if a batch is not taken within a minute.
    """
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap, client_id=transactional_id)) as admin:
        for (topic, partition), batch in groupby(records, key=lambda record: record[:2]):
            (described,) = admin.describe_topics([topic])
            leader = next(one["leader_id"] for one in described["partitions"] if one["partition_index"] == partition)
            verification = ConfigResource(ConfigResourceType.BROKER, str(leader), configs={_VERIFICATION: "false"})
            admin.alter_configs([verification], raise_on_unknown=False)
            _write(admin, leader, _request(transactional_id, topic, partition, _encoded(batch, timestamp_ms)))
            admin.reset_configs([verification], raise_on_unknown=False)


def _encoded(records: Iterable[tuple[str, int, bytes, bytes]], timestamp_ms: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=True, producer_id=_PRODUCER_ID, producer_epoch=0, base_sequence=0, batch_size=1 << 20
    )
    for offset, (_, _, key, value) in enumerate(records):
        builder.append(offset, timestamp_ms, key, value, [])
    return bytes(builder.build())


def _request(transactional_id: str, topic: str, partition: int, batch: bytes) -> ProduceRequest:
    kind = ProduceRequest.TopicProduceData
    data = kind(name=topic, partition_data=[kind.PartitionProduceData(index=partition, records=batch)])
    version = _BEFORE_TRANSACTION_VERSION_2
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data], max_version=version)


def _write(admin: KafkaAdminClient, leader: int, request: ProduceRequest) -> None:
    """Send the batch until its leader takes it, which verifies transactions for as long as it has not learned of the change.

    KafkaProducer cannot send it: it would begin the transaction with its coordinator first.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    while code := admin._manager.run(admin._manager.send, request, leader).responses[0].partition_responses[0].error_code:
        if time.monotonic() > deadline:
            raise CollectionError(f"broker {leader} did not take a batch of an unknown transaction: {for_code(code).__name__}")
        time.sleep(0.1)
