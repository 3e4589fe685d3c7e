"""The default answers of a fake cluster, and functions that build other answers."""

from typing import Any

from fake_records import records, records_of
from kafka.protocol.admin.acl import DescribeAclsResponse
from kafka.protocol.admin.client_quotas import DescribeClientQuotasResponse
from kafka.protocol.admin.cluster import DescribeClusterResponse, DescribeLogDirsResponse, DescribeQuorumResponse
from kafka.protocol.admin.configs import DescribeConfigsResponse
from kafka.protocol.admin.groups import DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.admin.topics import DescribeTopicPartitionsResponse, ListPartitionReassignmentsResponse
from kafka.protocol.admin.transactions import DescribeProducersResponse, DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer.group import OffsetFetchResponse
from kafka.protocol.consumer.offsets import ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsResponse, FindCoordinatorResponse, MetadataResponse

from kafka_audit.cluster.commits import DescribeShareGroupOffsetsResponse
from kafka_audit.cluster.groups import ConsumerGroupDescribeResponse, ShareGroupDescribeResponse, StreamsGroupDescribeResponse
from kafka_audit.cluster.read_apis import READ_APIS

ABSENT = -1
"""Newest version of an API that a broker does not have."""


def request_classes() -> dict[int, Any]:
    found: dict[int, Any] = {}
    todo = list(ApiMessage.__subclasses__())
    while todo:
        cls = todo.pop()
        if cls.__name__.endswith("Request"):
            found[cls.API_KEY] = cls
        todo.extend(sub for sub in cls.__subclasses__() if "_v" not in sub.__name__)
    return found


class EmptyAnswers:
    """One method per API: a healthy cluster with the topics of ``topics``, no group and no transaction."""

    topics: list[Any]
    max_versions: dict[str, int]
    ports: dict[int, int]

    def _ApiVersions(self, _: int, request: Any) -> Any:
        keys = [
            ApiVersionsResponse.ApiVersion(
                api_key=int(key), min_version=0, max_version=self.max_versions.get(key.name, _MAX.get(int(key), 0))
            )
            for key in READ_APIS
            if self.max_versions.get(key.name) != ABSENT
        ]
        return ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0)

    def _Metadata(self, _: int, request: Any) -> Any:
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=b, host="127.0.0.1", port=port, rack=f"r{b}") for b, port in self.ports.items()
        ]
        wanted = None if request.topics is None else {topic.name for topic in request.topics}
        topics = [topic for topic in self.topics if wanted is None or topic.name in wanted]
        return MetadataResponse(
            throttle_time_ms=0, brokers=brokers, cluster_id="fake-cluster", controller_id=1, topics=topics, error_code=0
        )

    def _DescribeCluster(self, _: int, request: Any) -> Any:
        return DescribeClusterResponse(
            error_code=0, error_message=None, cluster_id="fake-cluster", controller_id=1, brokers=[], authorized_operations={8}
        )

    def _DescribeAcls(self, _: int, request: Any) -> Any:
        return DescribeAclsResponse(throttle_time_ms=0, error_code=0, error_message=None, resources=[])

    def _DescribeClientQuotas(self, _: int, request: Any) -> Any:
        return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=0, error_message=None, entries=[])

    def _DescribeQuorum(self, _: int, request: Any) -> Any:
        return DescribeQuorumResponse(error_code=0, error_message=None, topics=[], nodes=[])

    def _DescribeConfigs(self, _: int, request: Any) -> Any:
        result = DescribeConfigsResponse.DescribeConfigsResult
        config = result.DescribeConfigsResourceResult
        results = [
            result(
                error_code=0,
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=[
                    config(
                        name=name,
                        value="1",
                        read_only=False,
                        config_source=5,
                        is_sensitive=False,
                        synonyms=[],
                        config_type=1,
                        documentation=None,
                    )
                    for name in ("min.insync.replicas",)
                ],
            )
            for resource in request.resources
        ]
        return DescribeConfigsResponse(throttle_time_ms=0, results=results)

    def _DescribeLogDirs(self, _: int, request: Any) -> Any:
        result = DescribeLogDirsResponse.DescribeLogDirsResult
        directory = result(error_code=0, log_dir="/data", topics=[], total_bytes=10, usable_bytes=5, is_cordoned=False)
        return DescribeLogDirsResponse(throttle_time_ms=0, error_code=0, results=[directory])

    def _DescribeTopicPartitions(self, _: int, request: Any) -> Any:
        wanted = {topic.name for topic in request.topics}
        out = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
        topics = [
            out(
                error_code=0,
                name=topic.name,
                topic_id=None,
                is_internal=topic.is_internal,
                partitions=[
                    out.DescribeTopicPartitionsResponsePartition(
                        error_code=0,
                        partition_index=p.partition_index,
                        leader_id=p.leader_id,
                        leader_epoch=p.leader_epoch,
                        replica_nodes=p.replica_nodes,
                        isr_nodes=p.isr_nodes,
                        eligible_leader_replicas=[],
                        last_known_elr=[],
                        offline_replicas=[],
                    )
                    for p in topic.partitions
                ],
                topic_authorized_operations=0,
            )
            for topic in self.topics
            if topic.name in wanted
        ]
        return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=topics, next_cursor=None)

    def _ListPartitionReassignments(self, _: int, request: Any) -> Any:
        return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, topics=[])

    def _ListOffsets(self, _: int, request: Any) -> Any:
        topic = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = [
            topic(
                name=t.name,
                partitions=[
                    topic.ListOffsetsPartitionResponse(
                        partition_index=p.partition_index,
                        error_code=0,
                        timestamp=-1,
                        offset=0 if p.timestamp == -2 else 100,
                        leader_epoch=0,
                    )
                    for p in t.partitions
                ],
            )
            for t in request.topics
        ]
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)

    def _Fetch(self, _: int, request: Any) -> Any:
        return records_of(request, lambda topic, p: records([p.fetch_offset]))

    def _DescribeProducers(self, _: int, request: Any) -> Any:
        topic = DescribeProducersResponse.TopicResponse
        topics = [
            topic(
                name=t.name,
                partitions=[
                    topic.PartitionResponse(partition_index=i, error_code=0, error_message=None, active_producers=[])
                    for i in t.partition_indexes
                ],
            )
            for t in request.topics
        ]
        return DescribeProducersResponse(throttle_time_ms=0, topics=topics)

    def _ListTransactions(self, _: int, request: Any) -> Any:
        return ListTransactionsResponse(throttle_time_ms=0, error_code=0, unknown_state_filters=[], transaction_states=[])

    def _DescribeTransactions(self, _: int, request: Any) -> Any:
        return DescribeTransactionsResponse(throttle_time_ms=0, transaction_states=[])

    def _ListGroups(self, _: int, request: Any) -> Any:
        return ListGroupsResponse(throttle_time_ms=0, error_code=0, groups=[])

    def _DescribeGroups(self, _: int, request: Any) -> Any:
        return DescribeGroupsResponse(throttle_time_ms=0, groups=[described(group_id) for group_id in request.groups])

    def _ConsumerGroupDescribe(self, _: int, request: Any) -> Any:
        return ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=[])

    def _ShareGroupDescribe(self, _: int, request: Any) -> Any:
        return ShareGroupDescribeResponse(throttle_time_ms=0, groups=[])

    def _StreamsGroupDescribe(self, _: int, request: Any) -> Any:
        return StreamsGroupDescribeResponse(throttle_time_ms=0, groups=[])

    def _DescribeShareGroupOffsets(self, _: int, request: Any) -> Any:
        return DescribeShareGroupOffsetsResponse(throttle_time_ms=0, groups=[])

    def _FindCoordinator(self, _: int, request: Any) -> Any:
        entry = FindCoordinatorResponse.Coordinator
        found = [
            entry(key=key, node_id=3, host="127.0.0.1", port=self.ports[3], error_code=0, error_message=None)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(throttle_time_ms=0, coordinators=found)

    def _OffsetFetch(self, _: int, request: Any) -> Any:
        return OffsetFetchResponse(throttle_time_ms=0, groups=[fetched(group.group_id) for group in request.groups])


API_NAMES = tuple(name.removeprefix("_") for name in vars(EmptyAnswers) if name[0] == "_" and name[1:2].isupper())
_MAX = {key: cls.max_version for key, cls in request_classes().items()}


def listed(*groups: tuple[str, str, str]) -> Any:
    """A ListGroups answer of (group id, type, state)."""
    entry = ListGroupsResponse.ListedGroup
    made = [entry(group_id=g, protocol_type="consumer", group_state=state, group_type=kind) for g, kind, state in groups]
    return ListGroupsResponse(throttle_time_ms=0, error_code=0, groups=made)


def described(
    group_id: str, *, code: int = 0, state: str = "Stable", assignments: tuple[bytes, ...] = (), subscription: bytes = b"", **changes: Any
) -> Any:
    """One group of a DescribeGroups answer."""
    group = DescribeGroupsResponse.DescribedGroup
    members = [
        group.DescribedGroupMember(
            member_id=f"m{i}",
            group_instance_id=None,
            client_id="c",
            client_host="/10.0.0.1",
            member_metadata=subscription,
            member_assignment=data,
        )
        for i, data in enumerate(assignments)
    ]
    return group(
        error_code=code,
        error_message=None,
        group_id=group_id,
        group_state=state,
        protocol_type="consumer",
        protocol_data=changes.get("assignor", "range"),
        members=members,
        authorized_operations=changes.get("operations"),
    )


def fetched(group_id: str, offsets: dict[tuple[str, int], int] | None = None, *, code: int = 0, partition_code: int = 0) -> Any:
    """One group of an OffsetFetch answer."""
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    entry = group.OffsetFetchResponseTopics
    topics = [
        entry(
            name=topic,
            partitions=[
                entry.OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=offset, committed_leader_epoch=-1, metadata="", error_code=partition_code
                )
            ],
        )
        for (topic, index), offset in (offsets or {}).items()
    ]
    return group(group_id=group_id, topics=topics, error_code=code)
