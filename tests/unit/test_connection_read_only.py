"""Only read requests leave the process, and the error for an unreachable cluster explains itself."""

import pytest
from fake_answers import request_classes
from fake_brokers import SILENCE, FakeCluster
from kafka.protocol.admin.topics import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.consumer.fetch import FetchRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.brokers import describe_log_dirs, describe_quorum
from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.groups import list_groups
from kafka_audit.cluster.read_apis import MutationRefusedError, check_read_only
from kafka_audit.errors import CollectionError


def settings(cluster, **keys):
    return ConnectionSettings.from_mapping({"bootstrap.servers": cluster.bootstrap, **{k.replace("_", "."): v for k, v in keys.items()}})


def test_exactly_the_reading_requests_of_the_protocol_may_be_sent():
    allowed = set()
    for cls in request_classes().values():
        try:
            allowed.add(check_read_only(cls()))
        except MutationRefusedError:
            continue

    assert allowed == {
        "ApiVersions",
        "ConsumerGroupDescribe",
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeShareGroupOffsets",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "Fetch",
        "FindCoordinator",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "SaslAuthenticate",
        "SaslHandshake",
        "ShareGroupDescribe",
        "StreamsGroupDescribe",
    }


def test_a_request_that_creates_topics_never_leaves_the_process():
    with FakeCluster() as cluster, Cluster(settings(cluster)) as connected:
        before = len(cluster.received)

        with pytest.raises(MutationRefusedError, match="CreateTopics"):
            connected.ask(1, CreateTopicsRequest(topics=[], timeout_ms=1))

        assert len(cluster.received) == before


def test_the_connection_itself_refuses_a_request_that_goes_around_the_channel():
    with FakeCluster() as cluster, Cluster(settings(cluster)) as connected:
        manager = connected.manager
        before = len(cluster.received)

        with pytest.raises(MutationRefusedError, match="DeleteTopics"):
            manager.run(lambda: manager.send(DeleteTopicsRequest(topics=[], timeout_ms=1), node_id=1))

        assert len(cluster.received) == before


def test_metadata_that_may_create_the_topics_it_names_is_refused():
    named = [MetadataRequest.MetadataRequestTopic(name="t")]

    with pytest.raises(MutationRefusedError, match="create"):
        check_read_only(MetadataRequest(topics=named, allow_auto_topic_creation=True))
    assert check_read_only(MetadataRequest(topics=named, allow_auto_topic_creation=False)) == "Metadata"


def test_fetching_in_the_name_of_a_replica_is_refused_because_it_moves_the_high_watermark():
    with pytest.raises(MutationRefusedError, match="replica"):
        check_read_only(FetchRequest(replica_id=2, topics=[]))
    with pytest.raises(MutationRefusedError, match="replica"):
        check_read_only(FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=2, replica_epoch=1), topics=[]))
    assert check_read_only(FetchRequest(replica_id=-1, topics=[])) == "Fetch"


def test_an_unreachable_bootstrap_server_is_named_with_what_to_check():
    with pytest.raises(CollectionError) as caught:
        Cluster(ConnectionSettings.from_mapping({"bootstrap.servers": "127.0.0.1:1"}))

    assert "127.0.0.1:1" in str(caught.value)
    assert "security.protocol" in str(caught.value)
    assert caught.value.exit_code == 1


def test_the_second_bootstrap_server_is_used_when_the_first_is_down():
    with FakeCluster() as cluster:
        servers = f"127.0.0.1:1,{cluster.bootstrap}"
        with Cluster(ConnectionSettings.from_mapping({"bootstrap.servers": servers})) as connected:
            assert [broker.broker_id for broker in connected.addresses] == [1, 2, 3]


def test_advertised_addresses_that_nobody_answers_are_named():
    with FakeCluster() as cluster:
        real = cluster.answers["Metadata"]

        def metadata(broker_id, request):
            response = real(broker_id, request)
            for broker in response.brokers:
                broker.port = 1
            return response

        cluster.answers["Metadata"] = metadata
        with pytest.raises(CollectionError, match=r"advertised\.listeners"):
            Cluster(settings(cluster))


def test_a_silent_broker_costs_one_time_limit_and_is_asked_nothing_more():
    with FakeCluster() as cluster:
        cluster.answers["ListGroups"] = lambda broker_id, request: SILENCE if broker_id == 2 else cluster._ListGroups(broker_id, request)
        with Cluster(settings(cluster, request_timeout_ms=1000)) as connected:
            _, failures = list_groups(connected)
            broken = [described.failure for described in describe_log_dirs(connected, connected.brokers) if described.failure]

            assert [(f.broker_id, f.error, f.api) for f in failures] == [(2, "REQUEST_TIMED_OUT", "ListGroups")]
            assert [(f.broker_id, f.error, f.api) for f in broken] == [(2, "REQUEST_TIMED_OUT", "DescribeLogDirs")]
            assert connected.unanswered == {2}
            assert 2 not in cluster.asked("DescribeLogDirs")


def test_a_question_for_any_broker_goes_to_the_next_when_one_is_silent():
    with FakeCluster() as cluster:
        cluster.answers["DescribeQuorum"] = lambda broker_id, request: SILENCE if broker_id == 1 else cluster._DescribeQuorum(1, request)
        with Cluster(settings(cluster, request_timeout_ms=1000)) as connected:
            assert describe_quorum(connected) == ((), ())


def test_after_the_deadline_nothing_is_sent_and_the_failure_says_so():
    with FakeCluster() as cluster:
        with Cluster(settings(cluster), deadline_seconds=30) as connected:
            connected._deadline = 0
            _, failures = list_groups(connected)

        assert {failure.error for failure in failures} == {"DEADLINE_EXCEEDED"}
        assert not cluster.asked("ListGroups")


def test_requests_are_counted_by_api_and_broker():
    with FakeCluster() as cluster, Cluster(settings(cluster)) as connected:
        list_groups(connected)

        assert {broker: connected.request_counts["ListGroups", broker] for broker in (1, 2, 3)} == {1: 1, 2: 1, 3: 1}


def test_kafka_pythons_log_stays_above_the_level_at_which_it_shows_credentials(monkeypatch):
    import logging

    logger = logging.getLogger("kafka")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    channel = Channel(ConnectionSettings.from_mapping({"bootstrap.servers": "127.0.0.1:1"}), deadline_seconds=1)
    channel.close()

    assert logger.level >= logging.WARNING
