"""Places replicas in the log dirs of a broker, and makes a log dir fail while the broker keeps running."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import NoError, ReplicaNotAvailableError, UnknownTopicOrPartitionError

from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.definition import LogDirFailure, Seed
from kafka_audit.sandbox.state import BrokerState

_TIMEOUT_S = 60
# With each of these answers the broker remembers the requested log dir (KIP-113; Kafka 4.3 gives the last one).
_REMEMBERED = (NoError, ReplicaNotAvailableError, UnknownTopicOrPartitionError)


def prefer_log_dirs(admin: KafkaAdminClient, seed: Seed, broker: BrokerState) -> None:
    """Ask the broker, before the topics exist, to put the replicas that will fail into their log dirs and all others into its first.

    A broker remembers the log dir for a replica that it does not have yet (KIP-113), although it answers with an error.
    """
    failures = [failure for failure in seed.log_dir_failures() if can_fail(failure, [broker])]
    failing = {name: broker.log_dirs[failure.log_dir - 1] for failure in failures for name in failure.replicas}
    if not failing:
        return
    names = {name for name, replicas in seed.partitions().items() if broker.id in replicas}
    for topic, key in (
        ("__consumer_offsets", "offsets.topic.num.partitions"),
        ("__transaction_state", "transaction.state.log.num.partitions"),
    ):
        names |= {f"{topic}-{p}" for p in range(int(seed.brokers.config.get(key, "50")))}
    wishes = {(*partition_named(name), broker.id): failing.get(name, broker.log_dirs[0]) for name in names}
    answers = admin.alter_replica_log_dirs(wishes)
    refused = {replica: error for replica, error in answers.items() if error not in _REMEMBERED}
    if refused or len(answers) != len(wishes):
        raise CollectionError(f"broker {broker.id} did not accept the log dirs of its replicas: {refused or 'some were not answered'}")


def can_fail(failure: LogDirFailure, brokers: Iterable[BrokerState]) -> bool:
    """Return whether the brokers were started with that log dir: those of a sandbox without a seed have one each."""
    return any(broker.id == failure.broker and len(broker.log_dirs) >= failure.log_dir for broker in brokers)


def fail_log_dir(admin: KafkaAdminClient, failure: LogDirFailure, brokers: Iterable[BrokerState]) -> None:
    """Replace the log dir by a plain file, and wait until the broker reports the dir offline and the metadata shows its replicas offline.

    The broker notices at its next high-watermark checkpoint. Raises CollectionError if the dir holds other replicas, or after a minute.
    """
    broker = next(broker for broker in brokers if broker.id == failure.broker)
    path = Path(broker.log_dirs[failure.log_dir - 1])
    wanted = set(failure.replicas)
    _wait(lambda: _replicas_in(_log_dir(admin, broker.id, path)) == wanted, f"{path} to hold exactly {', '.join(sorted(wanted))}")
    path.rename(path.with_name(path.name + ".failed"))
    path.write_text("This log dir was made to fail by the sandbox.\n", encoding="utf-8")
    _wait(lambda: _log_dir(admin, broker.id, path)["error_code"] != 0, f"broker {broker.id} to report {path} offline")
    _wait(lambda: not _not_yet_offline(admin, failure), f"the replicas of {path} to be offline in the metadata")


def _wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not done():
        if time.monotonic() > deadline:
            raise CollectionError(f"Waited {_TIMEOUT_S} s without success for {what}.")
        time.sleep(0.2)


def _log_dir(admin: KafkaAdminClient, broker_id: int, path: Path) -> Mapping[str, Any]:
    (answer,) = admin.describe_log_dirs(brokers=[broker_id])
    return next(entry for entry in answer["log_dirs"] if entry["log_dir"] == str(path))


def _replicas_in(log_dir: Mapping[str, Any]) -> set[str]:
    return {f"{topic['name']}-{partition['partition_index']}" for topic in log_dir["topics"] for partition in topic["partitions"]}


def _not_yet_offline(admin: KafkaAdminClient, failure: LogDirFailure) -> list[str]:
    """Return the failed replicas that the metadata does not yet show as offline."""
    lost = {partition_named(name) for name in failure.replicas}
    return [
        f"{topic['name']}-{partition['partition_index']}"
        for topic in admin.describe_topics(sorted({partition.topic for partition in lost}))
        for partition in topic["partitions"]
        if (topic["name"], partition["partition_index"]) in lost and failure.broker not in partition["offline_replicas"]
    ]


def partition_named(name: str) -> TopicPartition:
    """Return the partition of a name like "orders-0"."""
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition))
