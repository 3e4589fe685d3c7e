"""The rows of each dataset if brokers answer, refuse, give wrong answers or do not answer."""

from fake_answers import described, fetched, listed
from fake_brokers import SILENCE
from kafka.protocol.admin.cluster import DescribeClusterResponse, DescribeLogDirsResponse
from kafka.protocol.admin.groups import DescribeGroupsResponse
from kafka.protocol.consumer.group import OffsetFetchResponse
from snapshot_taking import commits, failed, fake_cluster, offsets_snapshot_taker, rows, snapshot_taker  # noqa: F401  (fixtures)

from kafka_audit.collect import config_keys


def test_commits_are_read_before_ends(fake, take):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 5})
    take()

    order = [type(request).__name__ for _, request in fake.received]
    assert order.index("OffsetFetchRequest") < order.index("ListOffsetsRequest")


def test_where_a_commit_lies_beyond_the_end_the_end_is_read_once_more(fake, take):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 105})
    ends = iter([100, 100, 107])

    def grow(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        if request.topics[0].partitions[0].timestamp == -1:
            response.topics[0].partitions[0].offset = next(ends)
        return response

    fake.answers["ListOffsets"] = grow

    assert rows(take(), "offsets")[0]["log_end"] == 107


def test_a_commit_beyond_an_end_that_stays_is_kept_as_it_is(fake, take):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 500})
    result = take()

    assert rows(result, "committed_offsets")[0]["committed"] == 500
    assert rows(result, "offsets")[0]["log_end"] == 100


def test_offsets_of_a_deleted_topic_stay_in_the_snapshot(fake, take):
    commits(fake, g={("gone", 0): 5})

    assert [(row["topic"], row["committed"]) for row in rows(take(), "committed_offsets")] == [("gone", 5)]


def test_an_assigned_partition_without_commit_is_asked_by_name_and_stored_as_null(fake, take):
    fake.add_topic("t", [1])
    data = b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x00"
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "classic", "Stable")) if b == 1 else listed()
    fake.answers["DescribeGroups"] = lambda *_: DescribeGroupsResponse(throttle_time_ms=0, groups=[described("g", assignments=(data,))])
    fake.answers["OffsetFetch"] = lambda _, request: OffsetFetchResponse(
        throttle_time_ms=0, groups=[fetched("g", {("t", 0): -1} if request.groups[0].topics else {})]
    )
    result = take()

    assert [(row["topic"], row["committed"], row["error"]) for row in rows(result, "committed_offsets")] == [("t", None, None)]
    assert rows(result, "members")[0]["assignment"] == [{"topic": "t", "partition": 0}]


def test_an_assigned_partition_that_may_not_be_seen_is_an_error_and_not_a_missing_commit(fake, take):
    data = b"\x00\x01\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01\x00\x00\x00\x00"
    fake.answers["ListGroups"] = lambda b, _: listed(("g", "classic", "Stable")) if b == 1 else listed()
    fake.answers["DescribeGroups"] = lambda *_: DescribeGroupsResponse(throttle_time_ms=0, groups=[described("g", assignments=(data,))])
    fake.answers["OffsetFetch"] = lambda _, request: OffsetFetchResponse(
        throttle_time_ms=0, groups=[fetched("g", {("t", 0): -1} if request.groups[0].topics else {}, partition_code=29)]
    )
    result = take()

    assert rows(result, "committed_offsets")[0]["error"] == "TOPIC_AUTHORIZATION_FAILED"
    assert failed(result, "committed_offsets") == [(None, "t", 0, "g", "TOPIC_AUTHORIZATION_FAILED")]


def test_headroom_is_read_only_where_a_group_commits_and_time_limits_retention(fake, take):
    fake.add_topic("t", [1, 2])
    commits(fake, g={("t", 0): 5})

    def configs(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            result.configs[0].name, result.configs[0].value = "retention.ms", "400000"
        return response

    fake.answers["DescribeConfigs"] = configs
    first, second = rows(take(), "offsets")

    assert first["headroom_timestamp_ms"] == int(first["read_at"].timestamp() * 1000) - 100_000
    assert first["headroom_offset"] == 100
    assert second["headroom_timestamp_ms"] is second["headroom_offset"] is None


def test_a_cluster_that_cannot_be_described_is_an_error_in_both_kinds_of_snapshot(fake, take, take_offsets):
    fake.add_topic("t", [1])

    def refuse(_, request):
        return DescribeClusterResponse(
            error_code=31, error_message=None, cluster_id="", controller_id=-1, brokers=[], authorized_operations=set()
        )

    fake.answers["DescribeCluster"] = refuse
    wanted = [(None, None, None, None, "CLUSTER_AUTHORIZATION_FAILED")]
    whole = take()

    assert failed(whole, "cluster.authorized_operations") == wanted == failed(take_offsets(), "cluster.authorized_operations")
    assert failed(whole, "cluster") == []
    assert [row["authorized_operations"] for row in rows(whole, "cluster")] == [None]


def test_a_refused_topic_has_no_configuration_at_all_and_an_error(fake, take):
    fake.add_topic("open", [1])
    fake.add_topic("closed", [1])

    def refuse(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            if result.resource_name == "closed":
                result.error_code, result.configs = 29, []
        return response

    fake.answers["DescribeConfigs"] = refuse
    result = take()

    assert {row["topic"] for row in rows(result, "topic_configs")} == {"open"}
    assert failed(result, "topic_configs") == [(None, "closed", None, None, "TOPIC_AUTHORIZATION_FAILED")]


def test_an_empty_configuration_is_a_gap_and_never_all_defaults(fake, take):
    fake.add_topic("t", [1])

    def nothing(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            result.configs = []
        return response

    fake.answers["DescribeConfigs"] = nothing
    result = take()

    assert rows(result, "topic_configs") == []
    assert failed(result, "topic_configs") == [(None, "t", None, None, "INVALID_RESPONSE")]


def test_only_durability_keys_are_kept_and_sensitive_values_never(fake, take):
    def leak(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            config = result.configs[0]
            config.value, config.is_sensitive = "geheim", True
            other = type(config)(**{**config.to_dict(json=False), "name": "sasl.jaas.config", "value": "geheim", "synonyms": []})
            result.configs.append(other)
        return response

    fake.answers["DescribeConfigs"] = leak
    result = take()

    assert {(row["name"], row["value"], row["is_sensitive"]) for row in rows(result, "broker_configs")} == {
        ("min.insync.replicas", None, True)
    }
    assert not any(b"geheim" in path.read_bytes() for path in result.path.iterdir())
    secrets = ("password", "secret", "jaas", "keystore", "truststore", "credential", "token")
    assert not [key for key in config_keys.TOPIC_KEYS | config_keys.BROKER_KEYS if any(word in key for word in secrets)]


def test_refused_log_directories_are_an_error_and_not_a_broker_without_disks(fake, take):
    fake.answers["DescribeLogDirs"] = lambda *_: DescribeLogDirsResponse(throttle_time_ms=0, error_code=31, results=[])
    result = take()

    assert [(row["path"], row["error"]) for row in rows(result, "log_dirs")] == [(None, "CLUSTER_AUTHORIZATION_FAILED")] * 3
    assert [entry[0] for entry in failed(result, "log_dirs")] == [1, 2, 3]
    assert result.manifest["capabilities"]["DescribeLogDirs"] == "denied"


def test_an_under_replicated_partition_is_confirmed_by_a_second_look(fake, take):
    fake.add_topic("bad", [1], isr=[1])
    fake.add_topic("good", [1])
    result = take()

    assert {row["topic"]: row["confirmed"] for row in rows(result, "partitions")} == {"bad": True, "good": False}


def test_a_partition_that_recovers_between_the_looks_is_stored_as_recovered(fake, take):
    fake.add_topic("t", [1], isr=[1])
    looks = iter([[1], [1, 2, 3]])

    def heal(broker_id, request):
        response = fake._DescribeTopicPartitions(broker_id, request)
        response.topics[0].partitions[0].isr_nodes = next(looks)
        return response

    fake.answers["DescribeTopicPartitions"] = heal
    partition = rows(take(), "partitions")[0]

    assert (partition["isr"], partition["confirmed"]) == ([1, 2, 3], False)


def test_a_broker_that_came_back_between_the_looks_is_alive_and_was_not_asked(fake, take):
    fake.add_topic("t", [3], isr=[3])
    looks = iter([-1, 3])
    back = []

    def describe(broker_id, request):
        response = fake._DescribeTopicPartitions(broker_id, request)
        response.topics[0].partitions[0].leader_id = next(looks)
        back.extend([3] * (response.topics[0].partitions[0].leader_id == 3))
        return response

    def metadata(broker_id, request):
        response = fake._Metadata(broker_id, request)
        response.brokers = [one for one in response.brokers if one.node_id != 3 or back]
        return response

    fake.answers |= {"DescribeTopicPartitions": describe, "Metadata": metadata}
    result = take()

    assert rows(result, "partitions")[0]["leader"] == 3
    assert {row["broker_id"]: (row["alive"], row["answered"]) for row in rows(result, "brokers")} == {
        1: (True, True),
        2: (True, True),
        3: (True, False),
    }


def test_a_leader_that_is_in_no_list_of_brokers_is_looked_at_twice_and_stays_dead(fake, take):
    fake.add_topic("t", [3])

    def metadata(broker_id, request):
        response = fake._Metadata(broker_id, request)
        response.brokers = [one for one in response.brokers if one.node_id != 3]
        return response

    fake.answers["Metadata"] = metadata
    result = take()

    assert [(row["leader"], row["confirmed"]) for row in rows(result, "partitions")] == [(3, True)]
    assert {row["broker_id"]: row["alive"] for row in rows(result, "brokers")} == {1: True, 2: True, 3: False}


def test_brokers_tell_by_an_api_version_whether_they_are_of_release_3_7_or_later(fake, take):
    fake.max_versions["DescribeCluster"] = 0

    assert {row["broker_id"]: row["describe_cluster_version"] for row in rows(take(), "brokers")} == {1: 0, 2: 0, 3: 0}


def test_a_healthy_cluster_is_looked_at_only_once(fake, take):
    fake.add_topic("t", [1, 2])
    take()

    assert fake.asked("DescribeTopicPartitions").total() == 1


def test_a_broker_that_does_not_answer_is_marked_and_everything_else_is_whole(fake, take):
    fake.add_topic("t", [1, 2, 3])
    for api in ("DescribeConfigs", "DescribeLogDirs", "ListGroups", "ListOffsets", "DescribeProducers", "ListTransactions"):
        real = fake.answers[api]
        fake.answers[api] = lambda b, request, real=real: SILENCE if b == 2 else real(b, request)
    result = take(request_timeout_ms=1000)

    assert {row["broker_id"]: row["answered"] for row in rows(result, "brokers")} == {1: True, 2: False, 3: True}
    assert {row["partition"]: row["log_end"] for row in rows(result, "offsets")} == {0: 100, 1: None, 2: 100}
    assert {row["topic"] for row in rows(result, "topic_configs")} == {"t"}
    assert failed(result, "groups") == [(2, None, None, None, "REQUEST_TIMED_OUT")]
    assert failed(result, "offsets") == [(2, "t", 1, None, "REQUEST_TIMED_OUT")]


def test_a_topic_on_disk_that_metadata_hides_is_reported_as_hidden(fake, take):
    def dirs(broker_id, request):
        response = fake._DescribeLogDirs(broker_id, request)
        topic = DescribeLogDirsResponse.DescribeLogDirsResult.DescribeLogDirsTopic
        size = topic.DescribeLogDirsPartition(partition_index=0, partition_size=9, offset_lag=0, is_future_key=False)
        response.results[0].topics = [topic(name="secret", partitions=[size])]
        return response

    fake.answers["DescribeLogDirs"] = dirs
    result = take()

    assert failed(result, "topics") == [(None, "secret", None, None, "TOPIC_HIDDEN")]
    assert "Describe" in rows(result, "errors")[0]["message"]
