"""Each request reaches the broker that can answer it, and one bad item does not affect the others."""

import struct
from datetime import datetime, timezone
from typing import Any

import pytest
from fake_answers import described, fetched, listed
from fake_brokers import FakeCluster
from kafka.protocol.admin.groups import DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer.group import OffsetFetchResponse

from kafka_audit.cluster import routing
from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.channel import Reply
from kafka_audit.cluster.commits import fetch_commits
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.consumer_protocol import MalformedAssignmentError, decode_assignment
from kafka_audit.cluster.failures import Failure, error_name
from kafka_audit.cluster.groups import DescribedGroup, StreamsGroupDescribeResponse, describe_groups, list_groups
from kafka_audit.cluster.offsets import LATEST, Offset, list_offsets
from kafka_audit.cluster.routing import GROUP, Coordinators, Leaders, Places
from kafka_audit.cluster.topics import Partition, list_topics
from kafka_audit.collect.groups import read_groups
from kafka_audit.collect.part import WHOLE
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog

NOT_LEADER, COORDINATOR_LOADING, NOT_COORDINATOR = 6, 14, 16
NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)
GROUP_DENIED, TOPIC_DENIED, GROUP_GONE = 30, 29, 69


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(routing, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(routing, "_LONGEST_PAUSE_SECONDS", 0.02)
    with FakeCluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(fake):
    with Cluster(ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap})) as connected:
        yield connected


def offsets_of(cluster, keys):
    return list_offsets(cluster, Leaders(cluster, list_topics(cluster).partitions), dict.fromkeys(keys, LATEST))


def coordinators(cluster, groups):
    return Coordinators(cluster, GROUP, {group.group_id: group.coordinator_id for group in groups})


def assignment(*topics):
    body = struct.pack(">hi", 1, len(topics))
    for name, indexes in topics:
        body += struct.pack(">h", len(name)) + name.encode() + struct.pack(f">i{len(indexes)}i", len(indexes), *indexes)
    return body + struct.pack(">i", -1)


def test_partitions_are_asked_in_one_request_per_leader(fake, cluster):
    fake.add_topic("t", [1, 2, 3] * 10)

    found = offsets_of(cluster, [("t", index) for index in range(30)])

    assert all(offset == Offset(offset=100, timestamp_ms=None) for offset in found.values())
    assert fake.asked("ListOffsets") == {1: 1, 2: 1, 3: 1}


def test_a_leaderless_partition_fails_alone_and_costs_no_request(fake, cluster):
    fake.add_topic("t", [1, -1])

    found = offsets_of(cluster, [("t", 0), ("t", 1)])

    assert found["t", 0] == Offset(offset=100, timestamp_ms=None)
    assert (found["t", 1].error, found["t", 1].topic, found["t", 1].partition) == ("LEADER_NOT_AVAILABLE", "t", 1)
    assert fake.asked("ListOffsets") == {1: 1}


def test_a_partition_whose_leader_moved_is_looked_up_and_asked_again(fake, cluster):
    fake.add_topic("t", [1])

    def moved(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        if broker_id == 1:
            fake.topics[0].partitions[0].leader_id = 2
            response.topics[0].partitions[0].error_code = NOT_LEADER
        return response

    fake.answers["ListOffsets"] = moved

    assert offsets_of(cluster, [("t", 0)])["t", 0].offset == 100
    assert fake.asked("ListOffsets") == {1: 1, 2: 1}


def test_a_refused_partition_does_not_spoil_its_neighbour_and_is_not_asked_again(fake, cluster):
    fake.add_topic("t", [1, 1])

    def refuse(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        response.topics[0].partitions[1].error_code = TOPIC_DENIED
        return response

    fake.answers["ListOffsets"] = refuse
    found = offsets_of(cluster, [("t", 0), ("t", 1)])

    assert isinstance(found["t", 0], Offset)
    assert found["t", 1].error == "TOPIC_AUTHORIZATION_FAILED"
    assert fake.asked("ListOffsets") == {1: 1}


def test_an_item_that_the_answer_leaves_out_is_a_failure(fake, cluster):
    fake.add_topic("t", [1, 1])

    def forget(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        del response.topics[0].partitions[1]
        return response

    fake.answers["ListOffsets"] = forget

    assert offsets_of(cluster, [("t", 0), ("t", 1)])["t", 1].error == "INVALID_RESPONSE"


def test_a_group_whose_coordinator_moved_is_found_again(fake, cluster):
    fake.answers["ListGroups"] = lambda broker_id, _: listed(("g", "classic", "Empty")) if broker_id == 1 else listed()
    fake.answers["OffsetFetch"] = lambda broker_id, request: _fetch(broker_id, request, NOT_COORDINATOR)
    groups, _ = list_groups(cluster)

    found = fetch_commits(cluster, coordinators(cluster, groups), {"g": None})

    assert found["g"][0].committed == 7
    assert fake.asked("FindCoordinator").total() == 1
    assert fake.asked("OffsetFetch") == {1: 1, 3: 1}


def _fetch(broker_id, request, code):
    from kafka.protocol.consumer.group import OffsetFetchResponse

    groups = [fetched(g.group_id, {("t", 0): 7}, code=0 if broker_id == 3 else code) for g in request.groups]
    return OffsetFetchResponse(throttle_time_ms=0, groups=groups)


def test_a_loading_coordinator_is_waited_for(fake, cluster):
    fake.answers["ListGroups"] = lambda broker_id, _: listed(("g", "classic", "Empty")) if broker_id == 3 else listed()
    codes = iter([COORDINATOR_LOADING, COORDINATOR_LOADING, 0])

    def loading(broker_id, request):
        from kafka.protocol.admin.groups import DescribeGroupsResponse

        code = next(codes)
        return DescribeGroupsResponse(throttle_time_ms=0, groups=[described(g, code=code) for g in request.groups])

    fake.answers["DescribeGroups"] = loading
    groups, _ = list_groups(cluster)

    assert isinstance(describe_groups(cluster, coordinators(cluster, groups), groups)["g"], DescribedGroup)


def test_listing_groups_waits_for_a_broker_that_loads(fake, cluster, monkeypatch):
    monkeypatch.setattr("kafka_audit.cluster.groups._LISTING_PAUSES", (0.01, 0.01))
    codes = iter([COORDINATOR_LOADING, 0])

    def listing(broker_id, _):
        if broker_id == 2 and (code := next(codes)):
            return ListGroupsResponse(throttle_time_ms=0, error_code=code, groups=[])
        return listed((f"g{broker_id}", "classic", "Stable"))

    fake.answers["ListGroups"] = listing
    groups, failures = list_groups(cluster)

    assert [group.group_id for group in groups] == ["g1", "g2", "g3"]
    assert failures == ()


def test_groups_of_each_protocol_are_described_by_their_own_api_and_never_called_dead(fake, cluster):
    kinds = (
        ("a", "Classic", "Stable"),
        ("b", "Consumer", "Stable"),
        ("c", "Share", "Stable"),
        ("d", "Streams", "Stable"),
        ("e", "New", "Stable"),
    )
    fake.answers["ListGroups"] = lambda broker_id, _: listed(*kinds) if broker_id == 1 else listed()
    groups, _ = list_groups(cluster)
    found = describe_groups(cluster, coordinators(cluster, groups), groups)

    assert [(g.group_id, g.group_type, g.state) for g in groups] == [(i, kind.lower(), state) for i, kind, state in kinds]
    assert [request.groups for request in fake.requests("DescribeGroups")] == [["a"]]
    assert [request.group_ids for request in fake.requests("ConsumerGroupDescribe")] == [["b"]]
    assert [request.group_ids for request in fake.requests("ShareGroupDescribe")] == [["c"]]
    assert [request.group_ids for request in fake.requests("StreamsGroupDescribe")] == [["d"]]
    assert found["e"].error == "UNSUPPORTED_VERSION"


def streams_group(topology: bool) -> Any:
    """One subtopology that reads orders and what it repartitions, with tasks 0 and 4 assigned to its only member."""
    group = StreamsGroupDescribeResponse.DescribedGroup
    topic = group.Topology.Subtopology.TopicInfo(name="app-sums-repartition", partitions=5, replication_factor=0, topic_configs=[])
    reads = {"source_topics": ["orders"], "repartition_source_topics": [topic]}
    part = group.Topology.Subtopology(subtopology_id="1", repartition_sink_topics=[], state_changelog_topics=[], **reads)
    tasks = [group.Member.Assignment.TaskIds(subtopology_id="1", partitions=[0, 4])]
    assignment = group.Member.Assignment(active_tasks=tasks, standby_tasks=[], warmup_tasks=[])
    member = group.Member(
        **{"member_id": "m", "member_epoch": 1, "client_id": "c", "client_host": "/10.0.0.1", "topology_epoch": 0, "process_id": "p"},
        **{"client_tags": [], "task_offsets": [], "task_end_offsets": [], "assignment": assignment, "target_assignment": assignment},
        is_classic=False,
    )
    return group(
        **{"error_code": 0, "group_id": "d", "group_state": "Stable", "group_epoch": 1, "assignment_epoch": 1, "members": [member]},
        topology=group.Topology(epoch=0, subtopologies=[part]) if topology else None,
    )


@pytest.mark.parametrize(
    ("topology", "assignment", "topics"),
    [
        (True, (("orders", 0), ("app-sums-repartition", 0), ("app-sums-repartition", 4)), ("app-sums-repartition", "orders")),
        (False, None, None),
    ],
)
def test_tasks_of_a_streams_group_are_partitions_of_the_topics_that_a_subtopology_reads(fake, cluster, topology, assignment, topics):
    fake.answers["ListGroups"] = lambda broker_id, _: listed(("d", "Streams", "Stable")) if broker_id == 1 else listed()
    answer = StreamsGroupDescribeResponse(throttle_time_ms=0, groups=[streams_group(topology)])
    fake.answers["StreamsGroupDescribe"] = lambda *_: answer
    known = [
        Partition(topic="orders", partition=index, leader=1, leader_epoch=0, replicas=(1,), isr=(1,), offline_replicas=())
        for index in range(3)
    ]
    read = read_groups(cluster, Scope.from_text(), WHOLE, partitions=known, now=lambda: NOW, errors=ErrorLog())
    (member,) = read.described["d"].members
    assert member.assignment == assignment
    assert member.subscribed_topics == topics


def test_a_group_answered_as_dead_is_gone_and_not_a_group_without_members(fake, cluster):
    from kafka.protocol.admin.groups import DescribeGroupsResponse

    fake.answers["ListGroups"] = lambda broker_id, _: listed(("g", "classic", "Stable")) if broker_id == 1 else listed()
    fake.answers["DescribeGroups"] = lambda _, request: DescribeGroupsResponse(throttle_time_ms=0, groups=[described("g", state="Dead")])
    groups, _ = list_groups(cluster)

    assert describe_groups(cluster, coordinators(cluster, groups), groups)["g"].error == error_name(GROUP_GONE)


def test_a_member_whose_assignment_is_garbage_has_none_and_says_why(fake, cluster):
    from kafka.protocol.admin.groups import DescribeGroupsResponse

    datas = (assignment(("t", (0, 2)), ("u", (1,))), b"\x00\x01\x7f\xff\xff\xff", b"")
    fake.answers["ListGroups"] = lambda broker_id, _: listed(("g", "classic", "Stable")) if broker_id == 1 else listed()
    fake.answers["DescribeGroups"] = lambda _, request: DescribeGroupsResponse(
        throttle_time_ms=0, groups=[described("g", assignments=datas)]
    )
    groups, _ = list_groups(cluster)
    members = describe_groups(cluster, coordinators(cluster, groups), groups)["g"].members

    assert [member.assignment for member in members] == [(("t", 0), ("t", 2), ("u", 1)), None, ()]
    assert members[1].failure.error == "INVALID_RESPONSE"


@pytest.mark.parametrize(
    "data", [b"", b"\x00", assignment(("t", (1,)))[:-9], struct.pack(">hih", 1, 1, -5), struct.pack(">hihsi", 0, 1, 1, b"t", 9)]
)
def test_bytes_that_are_no_assignment_are_refused(data):
    with pytest.raises(MalformedAssignmentError):
        decode_assignment(data)


def test_brokers_before_3_0_are_asked_for_one_group_at_a_time():
    from kafka.protocol.consumer.group import OffsetFetchResponse

    with FakeCluster() as fake:
        fake.max_versions = {"OffsetFetch": 7}
        fake.answers["ListGroups"] = lambda b, _: listed(("a", "", "Empty"), ("b", "", "Empty")) if b == 1 else listed()
        fake.answers["OffsetFetch"] = lambda *_: OffsetFetchResponse(throttle_time_ms=0, topics=[], error_code=0)
        with Cluster(ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap})) as cluster:
            groups, _ = list_groups(cluster)
            found = fetch_commits(cluster, coordinators(cluster, groups), {"a": None, "b": None})

        assert found == {"a": (), "b": ()}
        assert sorted(request.group_id for request in fake.requests("OffsetFetch")) == ["a", "b"]
        assert {group.group_type for group in groups} == {"classic"}


def test_a_group_that_was_listed_as_empty_has_no_members_and_is_not_asked(fake, cluster):
    fake.answers["ListGroups"] = lambda broker_id, _: listed(("g", "classic", "Empty")) if broker_id == 1 else listed()
    groups, _ = list_groups(cluster)
    found = describe_groups(cluster, coordinators(cluster, groups), groups)

    assert found["g"].members == ()
    assert not any(api == "DescribeGroups" for api, _ in cluster.request_counts)


def test_answers_that_nobody_asked_for_are_left_out_and_two_answers_for_one_group_are_none(fake, cluster):
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "classic", "Stable"), ("h", "classic", "Stable")) if b == 1 else listed()
    fake.answers["DescribeGroups"] = lambda *_: DescribeGroupsResponse(
        throttle_time_ms=0, groups=[described("h"), described("other"), described("g"), described("g", state="Empty")]
    )
    twice, other = fetched("h", {("t", 0): 5, ("t", 1): 6}), fetched("other", {("t", 0): 5})
    twice.topics[1].partitions[0].partition_index = 0
    fake.answers["OffsetFetch"] = lambda *_: OffsetFetchResponse(throttle_time_ms=0, groups=[twice, other, fetched("g")])
    read = read_groups(cluster, Scope(), WHOLE, partitions=[], now=lambda: NOW, errors=(errors := ErrorLog()))
    assert set(read.described) == {"g", "h"}
    assert (read.described["g"].error, read.described["g"].message) == ("INVALID_RESPONSE", "the answer has this item twice")
    assert isinstance(read.described["h"], DescribedGroup)
    assert [(commit.committed, commit.failure.error) for commit in read.commits["h"]] == [(None, "INVALID_RESPONSE")]
    assert errors.counts() == {"committed_offsets": 1}


@pytest.mark.parametrize("states", [("Stable", "Empty", "Empty"), ("Empty", "Empty", "Stable")])
def test_a_group_that_two_brokers_list_differently_is_asked_for_its_members(states, fake, cluster):
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "classic", states[b - 1]))
    groups, _ = list_groups(cluster)
    assert [group.state for group in groups] == ["Stable"]


def test_denied_and_answered_items_are_counted_for_the_capability_matrix(fake, cluster):
    fake.answers["ListGroups"] = lambda b, _: listed(("a", "classic", "Stable"), ("b", "classic", "Stable")) if b == 1 else listed()
    fake.answers["DescribeGroups"] = lambda *_: DescribeGroupsResponse(
        throttle_time_ms=0, groups=[described("a"), described("b", code=GROUP_DENIED)]
    )
    groups, _ = list_groups(cluster)
    found = describe_groups(cluster, coordinators(cluster, groups), groups)

    assert isinstance(found["b"], Failure)
    assert cluster.outcomes.answered("DescribeGroups") == 1
    assert cluster.outcomes.denied("DescribeGroups") == {"GROUP_AUTHORIZATION_FAILED": 1}


class OneByOne:
    """A channel to one broker that answers every item with the error NOT_LEADER, and notes what is sent and slept."""

    brokers = (1,)
    unanswering = frozenset()

    def __init__(self):
        self.sent, self.slept, self.outcomes = [], [], self

    def note(self, *_):
        pass

    def ask_all(self, requests):
        self.sent.append([len(each) for each in requests.values()])
        return [Reply(broker_id=1, request=request, response=request) for each in requests.values() for request in each]

    def sleep(self, seconds):
        self.slept.append(seconds)

    def seconds_left(self):
        return 60.0


class OneLeader(Places):
    retry_seconds = 0.5

    def of(self, key):
        return 1

    def look_up(self, keys):
        pass

    def name(self, failure, key):
        return failure


def test_items_that_are_asked_one_request_at_a_time_share_one_series_of_pauses():
    channel = OneByOne()
    question = routing.Question(
        api="Fetch",
        chunk=10,
        build=list,
        parse=lambda request, _: [routing.Parsed(key, NOT_LEADER, None, None) for key in request],
        retriable=frozenset({NOT_LEADER}),
        one_by_one=True,
    )
    found = routing.ask_each(channel, question, range(95), OneLeader())

    assert {failure.error for failure in found.values()} == {"NOT_LEADER_OR_FOLLOWER"}
    assert channel.sent == [[1]] * 10 * (len(channel.slept) + 1)
    assert 0.5 <= sum(channel.slept) < 1
