"""Writes a seed with real clients: topics, records, groups, deleted records, and finally a failed disk."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress

import confluent_kafka
from confluent_kafka import KafkaException
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.jars.fetch import Progress
from kafka_audit.sandbox import disks, leaders, processes
from kafka_audit.sandbox.definition import Producer, Seed
from kafka_audit.sandbox.state import Folder, State
from kafka_audit.sandbox.unknown_transactions import write_unknown_transaction
from kafka_audit.sandbox.workload import Plan, report_path

_WORKLOAD_TIMEOUT_S = 300  # longer than a member's SETTLE_TIMEOUT_S, whose error says what the member waited for
_TOPICS_TIMEOUT_MS = 120_000
_WRITE_TIMEOUT_S = 60
_LONG = {"transaction.timeout.ms": 900_000}  # a transaction left open must outlive the audit; brokers allow no more than this by default


def execute(seed: Seed, state: State, folder: Folder, launch_workload: Callable[[], None], progress: Progress) -> None:
    """Write the seed; when this returns, nothing writes or commits any more, so the offsets no longer change.

    On another Kafka (no ``state.brokers``) nothing that exists is changed: a topic of the same name is a ConfigurationError, and
    everything that needs the brokers' own settings or disks is left out. Raises CollectionError if a client or a broker refuses.
    """
    own = state.brokers
    seed = seed if own else seed.for_another_kafka()
    with refusals("connecting"), closing(KafkaAdminClient(bootstrap_servers=state.bootstrap, client_id="seed")) as admin:
        with refusals("preparing the brokers"):
            for broker in own:
                disks.prefer_log_dirs(admin, seed, broker)
        progress(f"Creating {len(seed.topics)} topics")
        with refusals("creating topics"):
            _refuse_existing(admin, seed)
            create_topics(admin, seed)
        if seed.groups:
            # The answer does not matter: the request makes the brokers create __consumer_offsets while records are being written.
            with suppress(KafkaError):
                admin.describe_groups([seed.groups[0].id])
        progress(f"Writing records with {len(seed.producers)} producers")
        with refusals("writing records"):
            _write_records(seed, state.bootstrap)
        progress(f"Starting {len(seed.groups)} consumer groups")
        with refusals("committing offsets"):
            _run_groups(seed, state, folder, launch_workload)
            staying = [group for group in seed.groups if group.stays]
            _wait_until_settled(admin, {group.id: "PreparingRebalance" if group.stuck else "Stable" for group in staying})
        with refusals("finishing"):
            if seed.delete_records:
                admin.delete_records({disks.partition_named(name): before for name, before in seed.delete_records.items()})
            if own:
                dynamic = {str(node.id): node.dynamic_config for node in seed.brokers.nodes if node.dynamic_config}
                alter_configs(admin, ConfigResourceType.TOPIC, seed.internal_topics)
                alter_configs(admin, ConfigResourceType.BROKER, dynamic)
                leaders.prefer(admin, seed)
            if seed.log_dir_failure and disks.can_fail(seed.log_dir_failure, own):
                progress(f"Failing a log dir of broker {seed.log_dir_failure.broker}")
                disks.fail_log_dir(admin, seed.log_dir_failure, own)


def _refuse_existing(admin: KafkaAdminClient, seed: Seed) -> None:
    existing = sorted({topic.name for topic in seed.topics}.intersection(admin.list_topics()))
    if existing:
        raise ConfigurationError(
            f"The cluster has topics the seed would create: {', '.join(existing)}. "
            "Delete them, or seed another cluster; nothing was changed."
        )


def create_topics(admin: KafkaAdminClient, seed: Seed) -> None:
    """Create the seed's topics with their replicas and settings; ConfigurationError if a broker is missing.

    The brokers refuse topics that exist. There is no check beforehand, because a broker may still list a topic that was just deleted.
    """
    if not seed.topics:
        return
    wanted = [node.id for node in seed.brokers.nodes]
    found = sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    if len(found) < len(wanted):
        raise ConfigurationError(f"The seed needs {len(wanted)} brokers, the cluster has {len(found)}; nothing was changed.")
    real = dict(zip(sorted(wanted), found, strict=False))  # another cluster may have other broker ids
    admin.create_topics(
        {
            topic.name: {
                "assignments": {p: [real[broker] for broker in replicas] for p, replicas in enumerate(topic.replicas)},
                "configs": topic.config,
            }
            for topic in seed.topics
        }
    )
    admin.wait_for_topics([topic.name for topic in seed.topics], timeout_ms=_TOPICS_TIMEOUT_MS)


def _write_records(seed: Seed, bootstrap: str) -> None:
    counts = {topic.name: len(topic.replicas) for topic in seed.topics}
    with ThreadPoolExecutor(max_workers=4) as pool:
        for written in [pool.submit(_write, producer, counts, bootstrap) for producer in seed.producers]:
            written.result()


def _run_groups(seed: Seed, state: State, folder: Folder, launch_workload: Callable[[], None]) -> None:
    if not seed.groups:
        return
    plan = folder.workload_plan
    counts = {topic.name: len(topic.replicas) for topic in seed.topics}
    plan.write_text(Plan(bootstrap=state.bootstrap, partitions=counts, groups=seed.groups).model_dump_json(), encoding="utf-8")
    report, log = report_path(plan), folder.log("workload")
    launch_workload()
    deadline = time.monotonic() + _WORKLOAD_TIMEOUT_S
    while not report.is_file():
        if time.monotonic() > deadline or not processes.running([str(plan)]):
            raise CollectionError(f"The consumer groups did not settle; {log} ends with:\n{processes.tail(log)}")
        time.sleep(0.1)
    outcome: dict[str, str | None] = json.loads(report.read_text(encoding="utf-8"))
    failed = {group: words for group, words in outcome.items() if words is not None}
    if failed:
        lines = "\n".join(f"  {group!r}: {words}" for group, words in sorted(failed.items()))
        raise CollectionError(f"{len(failed)} of {len(outcome)} consumer groups could not be seeded; see {log}:\n{lines}")


def _wait_until_settled(admin: KafkaAdminClient, expected: Mapping[str, str]) -> None:
    """Wait until all these groups were in their states in four reads in a row: a late rebalance would change what the audit finds."""
    deadline, seen = time.monotonic() + _WORKLOAD_TIMEOUT_S, 0
    while seen < 4:
        states = {group["group_id"]: group["group_state"] for group in admin.list_groups()}
        moving = {group: states.get(group) for group, state in expected.items() if states.get(group) != state}
        seen = 0 if moving else seen + 1
        if time.monotonic() > deadline:
            raise CollectionError(f"These groups did not settle: {moving}")
        time.sleep(0.25)


def alter_configs(admin: KafkaAdminClient, kind: ConfigResourceType, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Set the dynamic configuration of topics or brokers, also keys that brokers list only where they are set."""
    resources = [ConfigResource(kind, name, configs=dict(values)) for name, values in changes.items()]
    answers = admin.alter_configs(resources, raise_on_unknown=False) if resources else {}
    refused = {name: words for named in answers.values() for name, words in named.items() if words != "OK"}
    if refused:
        raise CollectionError(f"The brokers refused settings of a {kind.name.lower()}: {refused}")


@contextmanager
def refusals(step: str) -> Iterator[None]:
    """Turn any error of a Kafka client into a CollectionError that names the step."""
    try:
        yield
    except (KafkaError, KafkaException) as error:
        raise CollectionError(f"Seeding failed while {step}: {type(error).__name__}: {error}") from error


def _write(producer: Producer, partitions: Mapping[str, int], bootstrap: str) -> None:
    """Write the producer's records to every partition of its topics (topic -> partition count).

    Raises CollectionError, KafkaError or KafkaException if a record is not acknowledged.
    """
    timestamp_ms = int((time.time() - producer.age_hours * 3600) * 1000)
    records = list(_records(producer, partitions))
    if producer.ends == "unknown":
        write_unknown_transaction(producer.client_id, records, timestamp_ms, bootstrap)
    elif producer.mode == "idempotent":
        _write_idempotent(producer, records, timestamp_ms, bootstrap)
    else:
        _write_librdkafka(producer, records, timestamp_ms, bootstrap)


def _records(producer: Producer, partitions: Mapping[str, int]) -> Iterator[tuple[str, int, bytes, bytes]]:
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
        client.flush(timeout=_WRITE_TIMEOUT_S)
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
        client.init_transactions(_WRITE_TIMEOUT_S)
        client.begin_transaction()
    for topic, partition, key, value in records:
        client.produce(topic, value=value, key=key, partition=partition, timestamp=timestamp_ms, on_delivery=delivered)
    if transactional and producer.ends == "committed":
        client.commit_transaction(_WRITE_TIMEOUT_S)
    left = client.flush(_WRITE_TIMEOUT_S)
    if left or refused:
        raise CollectionError(
            f"producer {producer.client_id}: {left} records not acknowledged in {_WRITE_TIMEOUT_S} s, refused: {refused[:3]}"
        )
