"""Fixtures and readers for tests that take whole snapshots of fake brokers."""

from datetime import datetime, timedelta, timezone

import pyarrow.parquet as pq
import pytest
from fake_answers import fetched, listed
from fake_brokers import FakeCluster
from kafka.protocol.admin.cluster import DescribeQuorumResponse
from kafka.protocol.consumer.group import OffsetFetchResponse

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.policy.slas import LagSla
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import OFFSETS

START = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)
SNAPSHOT = new_id(START, "test")


@pytest.fixture(name="fake")
def fake_cluster():
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture(name="take")
def snapshot_taker(fake, tmp_path):
    ticks = iter(range(10_000))

    def run(*, request_timeout_ms=10_000, **arguments):
        settings = ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap, "request.timeout.ms": str(request_timeout_ms)})
        return take_snapshot(
            settings=settings,
            root=EvidenceRoot(path=tmp_path),
            cluster="fake",
            snapshot_id=SNAPSHOT,
            now=lambda: START + timedelta(milliseconds=next(ticks)),
            second_look_seconds=0.01,
            **arguments,
        )

    return run


@pytest.fixture(name="take_offsets")
def offsets_snapshot_taker(fake, tmp_path):
    ticks = iter(range(10_000))

    def run(**arguments):
        return take_snapshot(
            kind=OFFSETS,
            settings=ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap, "request.timeout.ms": "10000"}),
            root=EvidenceRoot(path=tmp_path),
            cluster="fake",
            snapshot_id=SNAPSHOT,
            now=lambda: START + timedelta(milliseconds=next(ticks)),
            **arguments,
        )

    return run


class Slas:
    """A policy of which only the limits in seconds matter, by (group, topic)."""

    def __init__(self, seconds):
        self.seconds = seconds

    def lag_sla(self, group_id, topic):
        if (group_id, topic) not in self.seconds:
            return None
        return LagSla(pattern="*", name="x", max_lag_seconds=self.seconds[group_id, topic], max_lag_records=0)


def rows(result, dataset):
    return pq.read_table(result.path / f"{dataset}.parquet").to_pylist()


def failed(result, dataset):
    keys = ("broker_id", "topic", "partition", "group_id", "error")
    return [tuple(row[key] for key in keys) for row in rows(result, "errors") if row["dataset"] == dataset]


def commits(fake, **by_group):
    fake.answers["ListGroups"] = lambda b, _: listed(*((g, "classic", "Empty") for g in by_group)) if b == 1 else listed()
    fake.answers["OffsetFetch"] = lambda _, request: OffsetFetchResponse(
        throttle_time_ms=0, groups=[fetched(g.group_id, by_group[g.group_id]) for g in request.groups]
    )


def voters(fake, *ids, listeners=None, caught_up_ms=1):
    """Let the quorum have these voters, the first of which leads, and tell the listeners of some."""
    topic, node = DescribeQuorumResponse.TopicData, DescribeQuorumResponse.Node
    states = [
        topic.PartitionData.ReplicaState(
            replica_id=number, replica_directory_id=None, log_end_offset=5, last_fetch_timestamp=1, last_caught_up_timestamp=caught_up_ms
        )
        for number in ids
    ]
    partition = topic.PartitionData(
        partition_index=0,
        error_code=0,
        error_message=None,
        leader_id=ids[0],
        leader_epoch=1,
        high_watermark=5,
        current_voters=states,
        observers=[],
    )
    nodes = [
        node(node_id=number, listeners=[node.Listener(name=name, host=host, port=port) for name, host, port in told])
        for number, told in (listeners or {}).items()
    ]
    topics = [topic(topic_name="__cluster_metadata", partitions=[partition])]
    fake.answers["DescribeQuorum"] = lambda *_: DescribeQuorumResponse(error_code=0, error_message=None, topics=topics, nodes=nodes)
