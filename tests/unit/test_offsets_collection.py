"""An offsets snapshot reads what lag needs with few requests per broker, and records which SLA offsets it asked for."""

import pytest
from fake_answers import fetched, listed
from kafka.protocol.consumer.group import OffsetFetchResponse
from snapshot_taking import SNAPSHOT, START, Slas, commits, failed, fake_cluster, offsets_snapshot_taker, rows, snapshot_taker  # noqa: F401

from kafka_audit.collect import datasets
from kafka_audit.collect.scope import Scope
from kafka_audit.store.sealed import Sealed

DATASETS = {
    *("topics", "topic_configs", "groups", "members", "committed_offsets", "offsets", "sla_offsets", "first_unread", "errors"),
}
TOPIC_DENIED = 29
LATEST, EARLIEST = -1, -2


def answer_offsets(fake, young):
    """Log starts 0 and ends 100; for a timestamp what ``young`` gives of (topic, timestamp), or error code TOPIC_DENIED."""

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for topic, asked in zip(response.topics, request.topics, strict=True):
            for partition, wanted in zip(topic.partitions, asked.partitions, strict=True):
                if wanted.timestamp >= 0:
                    found = young(topic.name, wanted.timestamp)
                    partition.error_code, partition.offset = (TOPIC_DENIED, -1) if found == "denied" else (0, found)
        return response

    fake.answers["ListOffsets"] = offsets


def sla_rows(result):
    return [tuple(row[key] for key in ("topic", "max_lag_seconds", "offset", "error")) for row in rows(result, "sla_offsets")]


def test_it_has_its_own_folder_kind_and_datasets_and_verifies(fake, take_offsets, tmp_path):
    fake.add_topic("t", [1])
    result = take_offsets()

    assert result.path == tmp_path / "offsets" / "fake" / SNAPSHOT
    assert (
        {path.stem for path in result.path.glob("*.parquet")} == DATASETS == {one.name for one in datasets.DATASETS.values() if one.light}
    )
    manifest = Sealed.verified(result.path).manifest
    assert (manifest["kind"], manifest["cluster_id"], manifest["errors"]) == ("offsets", "fake-cluster", {})
    assert manifest["capabilities"]["ListOffsets"] == "allowed"
    assert manifest["started_at"] < manifest["finished_at"]


def test_the_same_id_gives_the_same_snapshot_and_a_whole_one_of_that_id_is_another(fake, take, take_offsets):
    whole, first = take(), take_offsets()
    asked = len(fake.received)
    second = take_offsets()

    assert (whole.reused, first.reused, second.reused) == (False, False, True)
    assert second.path == first.path != whole.path
    assert len(fake.received) == asked


def test_no_broker_is_asked_twice_for_what_one_request_can_hold(fake, take_offsets):
    for topic in ("a", "b"):
        fake.add_topic(topic, [1, 2, 3] * 10)
    groups = [f"g{n}" for n in range(50)]
    fake.answers["ListGroups"] = lambda b, _: listed(*((g, "classic", "Stable") for g in groups[b::3]))
    places = {(topic, index): 50 for topic in ("a", "b") for index in range(30)}
    fake.answers["OffsetFetch"] = lambda _, request: OffsetFetchResponse(
        throttle_time_ms=0, groups=[fetched(g.group_id, places) for g in request.groups]
    )
    result = take_offsets(policy=Slas({(group, topic): 60 for group in groups for topic in ("a", "b")}))
    per_broker = {(api, broker): count for (api, broker), count in result.requests.items() if isinstance(broker, int)}
    once = {api: {count for (name, _), count in per_broker.items() if name == api} for api, _ in per_broker}

    assert len(rows(result, "first_unread")) == len(rows(result, "sla_offsets")) == 60
    assert once.pop("ListOffsets") == {4}  # log starts, last stable offsets, log ends, the offset of the one SLA: a batch each
    del once["ApiVersions"]  # two: kafka-python's for the connection, and the one that tells the versions
    assert all(counts == {1} for counts in once.values()), once
    assert set(once) == {
        *("Metadata", "ListGroups", "DescribeGroups", "OffsetFetch", "DescribeConfigs", "Fetch", "DescribeCluster"),
    }


def test_commits_are_read_before_the_ends_of_logs(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 50})
    take_offsets()
    order = [type(request).__name__ for _, request in fake.received]

    assert order.index("OffsetFetchRequest") < order.index("ListOffsetsRequest")


def test_start_stable_and_end_are_read_and_nothing_that_lag_does_not_need(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 50})
    row = rows(take_offsets(), "offsets")[0]

    assert (row["log_start"], row["last_stable"], row["log_end"], row["error"]) == (0, 100, 100, None)
    assert {row[name] for name in row if name.startswith(("max_", "headroom_"))} == {None}
    assert {p.timestamp for r in fake.requests("ListOffsets") for t in r.topics for p in t.partitions} == {EARLIEST, LATEST}


def test_three_settings_are_read_of_topics_that_groups_read(fake, take_offsets):
    fake.add_topic("read", [1])
    fake.add_topic("unread", [1])
    commits(fake, g={("read", 0): 50})
    take_offsets()
    asked = [resource for request in fake.requests("DescribeConfigs") for resource in request.resources]

    assert [one.resource_name for one in asked] == ["read"]
    assert asked[0].configuration_keys == ["cleanup.policy", "retention.bytes", "retention.ms"]


def test_internal_topics_are_in_scope_as_in_the_whole_snapshot(fake, take, take_offsets):
    for name in ("orders", "payments", "__consumer_offsets"):
        fake.add_topic(name, [1])
    scope = Scope.from_text(topics="ord*")

    assert rows(take_offsets(scope=scope), "topics") == rows(take(scope=scope), "topics")


def test_an_sla_offset_is_asked_for_groups_that_have_one_and_are_behind(fake, take_offsets):
    for name in ("behind", "level", "without"):
        fake.add_topic(name, [1])
    commits(fake, g={("behind", 0): 50}, h={("level", 0): 100}, i={("without", 0): 50})
    answer_offsets(fake, lambda topic, timestamp: 70)
    result = take_offsets(policy=Slas({("g", "behind"): 30, ("h", "level"): 30}))
    row = rows(result, "sla_offsets")[0]

    assert sla_rows(result) == [("behind", 30, 70, None)]
    assert row["timestamp_ms"] == int(row["read_at"].timestamp() * 1000) - 30_000
    assert row["read_at"] > START


def test_each_limit_of_a_partition_is_asked_for_once(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, a={("t", 0): 50}, b={("t", 0): 60}, c={("t", 0): 50})
    answer_offsets(fake, lambda topic, timestamp: timestamp % 1000)
    result = take_offsets(policy=Slas({("a", "t"): 10, ("b", "t"): 60, ("c", "t"): 10}))

    assert [row[:2] for row in sla_rows(result)] == [("t", 10), ("t", 60)]


def test_where_every_record_is_older_the_offset_is_the_log_end(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 50})
    answer_offsets(fake, lambda topic, timestamp: -1)

    assert sla_rows(take_offsets(policy=Slas({("g", "t"): 30}))) == [("t", 30, 100, None)]


def test_a_limit_of_more_seconds_than_have_passed_since_1970_is_not_taken_for_a_special_timestamp(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 50})
    answer_offsets(fake, lambda topic, timestamp: 7)

    assert sla_rows(take_offsets(policy=Slas({("g", "t"): 2_000_000_000}))) == [("t", 2_000_000_000, 7, None)]


def test_a_refused_sla_offset_is_an_error_and_no_offset(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 50})
    answer_offsets(fake, lambda topic, timestamp: "denied")
    result = take_offsets(policy=Slas({("g", "t"): 30}))

    assert sla_rows(result) == [("t", 30, None, "TOPIC_AUTHORIZATION_FAILED")]
    assert failed(result, "sla_offsets") == [(1, "t", 0, None, "TOPIC_AUTHORIZATION_FAILED")]


def test_the_whole_snapshot_asks_for_sla_offsets_too(fake, take):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 50})
    answer_offsets(fake, lambda topic, timestamp: 70)

    assert sla_rows(take(policy=Slas({("g", "t"): 30}))) == [("t", 30, 70, None)]


@pytest.mark.parametrize("last", ["first_unread", "topics"])
def test_an_interrupted_pass_leaves_no_folder(fake, take_offsets, tmp_path, last):
    def interrupt(message):
        if message.startswith(last):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take_offsets(progress=interrupt)

    assert not list((tmp_path / "offsets" / "fake").iterdir())
