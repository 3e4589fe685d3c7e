"""Offsets snapshots and `kafka-audit lag` on real brokers, compared with Kafka's own tool and with records whose times are known."""

import json
import subprocess
import sys
import time
from contextlib import closing
from datetime import datetime, timezone

import pyarrow.parquet as pq
import pytest
from kafka import KafkaAdminClient, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, NoError
from kafka_tools import KafkaTools
from lag_clients import wait_for, write

from kafka_audit.cli.lag import take_reading
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.lag.lag_table import Sort, as_text
from kafka_audit.lag.rows import lag_rows
from kafka_audit.policy import load_policy
from kafka_audit.policy.slas import LagSla
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import OFFSETS, Sealed

pytestmark = pytest.mark.kafka

AWKWARD = (
    "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)]))
    + "'\"`\\/<>&|;$(){}[]*?!#%^~=+-@,:. "
    + "\u00ad\u200b\u200d\u202e\u2028\u2066\ufeff\ufff9\U000e0041"
    + "\u0915\u0301\u0301\u0301\U0001f600\u4e00"
)
TRANSACTION = {"transactional.id": "offsets-snapshot"}


def now():
    return datetime.now(timezone.utc)


class Slas:
    """A limit of seconds for every group on every topic."""

    def __init__(self, seconds):
        self.sla = LagSla(pattern="*", name="x", max_lag_seconds=seconds)

    def lag_sla(self, group_id, topic):
        return self.sla


def snapshot(bootstrap, folder, **arguments):
    return take_snapshot(
        kind=OFFSETS,
        settings=ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap}),
        root=EvidenceRoot(path=folder),
        cluster="real",
        snapshot_id=new_id(now(), str(folder)),
        now=now,
        **arguments,
    )


def rows(result, dataset):
    return pq.read_table(result.path / f"{dataset}.parquet").to_pylist()


def reading_of(bootstrap, policy=None):
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap})
    return take_reading(settings, Scope(), policy or load_policy(None), now)


def dash(value):
    return "-" if value is None else str(value)


def kafkas_columns(row):
    """The columns of kafka-consumer-groups, as it prints them."""
    figures = (row.partition, row.committed, row.log_end, row.lag, row.member_id, row.host, row.client_id)
    return (row.group_id, row.topic, *map(dash, figures))


@pytest.fixture(scope="module")
def brokers(spare_cluster):
    return spare_cluster.bootstrap


@pytest.fixture(scope="module")
def admin(brokers):
    with closing(KafkaAdminClient(bootstrap_servers=brokers)) as client:
        yield client


@pytest.fixture
def topic(admin, request):
    """A new topic of one partition, named after the test. Nothing is ever too old for it: the tests write records of years ago."""
    name = request.node.name.translate(str.maketrans("[]", "--"))[:200]
    admin.create_topics([NewTopic(name, 1, 3, topic_configs={"retention.ms": "-1", **getattr(request, "param", {})})])
    return name


def commit(admin, group, topic, offset):
    def done():
        try:
            answer = admin.alter_group_offsets(group, {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)})
        except KafkaError as problem:
            assert problem.retriable, problem  # the coordinator of a new cluster is being made
            return False
        return all(error in {None, NoError} for error in answer.values())

    wait_for(f"{group!r} has committed", done)


def unread(bootstrap, folder, topic):
    keys = ("offset", "record_offset", "timestamp_ms", "timestamp_type", "error")
    return [tuple(row[key] for key in keys) for row in rows(snapshot(bootstrap, folder), "first_unread") if row["topic"] == topic]


def test_the_figures_are_those_of_kafkas_own_tool_row_by_row(faulty_cluster):
    printed = KafkaTools(faulty_cluster.bootstrap).run("kafka-consumer-groups --describe --all-groups --all-topics")
    lines = [line for line in printed.splitlines() if len(line.split()) >= 9 and line.split()[-9:][2].isdigit()]
    theirs = {(line[: line.rindex(f" {line.split()[-8]} ")].rstrip(), *line.split()[-8:]) for line in lines}
    ours = {kafkas_columns(row): row.state for row in lag_rows(reading_of(faulty_cluster.bootstrap), lambda *_: None)}
    # The tool prints a negative lag for a commit beyond the end; here that is a state.
    beyond = {(*row[:5], "-", *row[6:]) for row in theirs if row[5].startswith("-") and row[5] != "-"}

    assert {row for row in theirs if not row[5].startswith("-") or row[5] == "-"} | beyond == set(ours)
    assert {row for row, state in ours.items() if state == "BEYOND_END"} == beyond
    assert set(ours.values()) >= {"OK", "BEHIND", "LOST", "BEYOND_END", "NO_COMMIT"}


def test_the_offset_that_an_sla_demands_lies_between_records_of_known_times(brokers, admin, topic, tmp_path):
    began = int(time.time() * 1000)
    for age_s in (9000, 7000, 5000, 3000, 1000):
        write(brokers, {topic: 1}, began - age_s * 1000)
    commit(admin, "g", topic, 1)
    demanded = {}
    for limit in (10000, 6000, 10):
        result = snapshot(brokers, tmp_path / str(limit), policy=Slas(limit))
        (demanded[limit],) = [row for row in rows(result, "sla_offsets") if row["topic"] == topic]

    assert {limit: row["offset"] for limit, row in demanded.items()} == {10000: 0, 6000: 2, 10: 5}
    assert [row["timestamp_ms"] // 1000 for row in demanded.values()] == [int(r["read_at"].timestamp()) - s for s, r in demanded.items()]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_first_unread_record_is_found_in_batches_of_every_codec(brokers, admin, topic, tmp_path, codec):
    with closing(KafkaProducer(bootstrap_servers=brokers, linger_ms=200, compression_type=None if codec == "none" else codec)) as producer:
        for number in range(50):
            producer.send(topic, b"x" * 100, timestamp_ms=1_700_000_000_000 + number)
        producer.flush()
    commit(admin, "g", topic, 7)

    assert unread(brokers, tmp_path, topic) == [(7, 7, 1_700_000_000_007, "CreateTime", None)]


def test_the_first_unread_record_lies_behind_the_marker_of_a_transaction(brokers, admin, topic, tmp_path):
    write(brokers, {topic: 2}, 1_700_000_000_000, **TRANSACTION)
    commit(admin, "g", topic, 2)
    only_the_marker = unread(brokers, tmp_path / "marker", topic)
    write(brokers, {topic: 1}, 1_700_000_009_000)

    assert only_the_marker == [(2, None, None, None, None)]
    assert unread(brokers, tmp_path / "record", topic) == [(2, 3, 1_700_000_009_000, "CreateTime", None)]


@pytest.mark.parametrize("topic", [{"message.timestamp.type": "LogAppendTime"}], indirect=True, ids=["append"])
def test_the_brokers_own_timestamps_are_told_apart(brokers, admin, topic, tmp_path):
    began = int(time.time() * 1000)
    write(brokers, {topic: 2}, 1_700_000_000_000)
    commit(admin, "g", topic, 1)
    ((offset, record, timestamp, kind, error),) = unread(brokers, tmp_path, topic)

    assert (offset, record, kind, error) == (1, 1, "LogAppendTime", None)
    assert began <= timestamp <= int(time.time() * 1000)


def test_a_group_id_of_awkward_characters_is_kept_whole_and_printed_inert(brokers, admin, topic, tmp_path):
    write(brokers, {topic: 3}, 1_700_000_000_000)
    commit(admin, AWKWARD, topic, 1)
    result = snapshot(brokers, tmp_path)
    reading = reading_of(brokers)
    line = next(line for line in as_text(reading, None, lambda *_: None, Sort.GROUP).splitlines() if topic in line)

    assert Sealed.verified(result.path).manifest["kind"] == "offsets"
    assert [row["committed"] for row in rows(result, "committed_offsets") if row["group_id"] == AWKWARD] == [1]
    assert [(row.lag, row.state) for row in lag_rows(reading, lambda *_: None) if row.group_id == AWKWARD] == [(2, "BEHIND")]
    assert len(line.split()) == 14
    assert line.isprintable()


def test_the_command_prints_json_for_each_reading_and_ends_quietly_when_interrupted(brokers, admin, topic, tmp_path):
    write(brokers, {topic: 3}, 1_700_000_000_000)
    commit(admin, "watched", topic, 1)
    options = ["lag", "--bootstrap", brokers, "--groups", "watched", "--json", "--watch", "0.2"]
    with subprocess.Popen(
        [sys.executable, "-m", "kafka_audit.cli", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        lines = iter(process.stdout.readline, "")
        first, second = (json.loads(next(line for line in lines if line.strip())) for _ in range(2))
        process.terminate()
        _, said = process.communicate(timeout=600)

    assert (process.returncode, said, list(tmp_path.iterdir())) == (0, "", [])
    assert [(row["lag"], row["state"]) for row in first["rows"]] == [(2, "BEHIND")]
    assert [row["consumed_per_second"] for row in second["rows"]] == [0.0]
