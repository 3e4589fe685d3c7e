"""The requests this product may send: an allow-list, checked for every request that leaves the process."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafka.protocol.api_key import ApiKey

if TYPE_CHECKING:
    from kafka_audit.cluster.channel import Message

# Read-only by their definition in Kafka's protocol, plus the three that set up a connection.
READ_APIS: frozenset[ApiKey] = frozenset(
    {
        ApiKey.ApiVersions,
        ApiKey.SaslHandshake,
        ApiKey.SaslAuthenticate,
        ApiKey.Metadata,
        ApiKey.DescribeCluster,
        ApiKey.DescribeQuorum,
        ApiKey.DescribeConfigs,
        ApiKey.DescribeLogDirs,
        ApiKey.DescribeTopicPartitions,
        ApiKey.ListPartitionReassignments,
        ApiKey.ListOffsets,
        ApiKey.DescribeProducers,
        ApiKey.ListTransactions,
        ApiKey.DescribeTransactions,
        ApiKey.ListGroups,
        ApiKey.DescribeGroups,
        ApiKey.ConsumerGroupDescribe,
        ApiKey.ShareGroupDescribe,
        ApiKey.DescribeShareGroupOffsets,
        ApiKey.StreamsGroupDescribe,
        ApiKey.FindCoordinator,
        ApiKey.OffsetFetch,
        ApiKey.DescribeAcls,
        ApiKey.DescribeClientQuotas,
        ApiKey.Fetch,
    }
)
ASKED_APIS: Mapping[str, int] = {key.name: int(key) for key in READ_APIS - {ApiKey.SaslHandshake, ApiKey.SaslAuthenticate}}
"""Name and number of those that an audit asks something with."""


class MutationRefusedError(RuntimeError):
    """Something tried to send a request that is not on the allow-list: a defect of this program, never a fault of the cluster."""


def check_read_only(request: "Message") -> str:
    """Return the API's name if ``request`` cannot change anything on a cluster; else raise MutationRefusedError.

    Metadata is a read only while it may not create the topics it names (``auto.create.topics.enable``), and Fetch while it does
    not come from a replica: a leader moves its high watermark by what its followers fetch.
    """
    key = getattr(request, "API_KEY", None)
    if key is None:
        # kafka-python's raw SASL exchange (SaslHandshake v0) has no API key; it carries authentication bytes only.
        if type(request).__name__ == "SaslBytesRequest":
            return "SaslAuthenticate"
        raise MutationRefusedError(f"refused to send {type(request).__name__}: it has no API key")
    if key not in READ_APIS:
        raise MutationRefusedError(f"refused to send {type(request).__name__} (API {key}): it is not on the list of read-only requests")
    if key == ApiKey.Metadata and request.topics and request.allow_auto_topic_creation is not False:
        raise MutationRefusedError("refused to send Metadata that may create the topics it names")
    if key == ApiKey.Fetch and any(replica != -1 for replica in _fetching_replicas(request)):
        raise MutationRefusedError("refused to send Fetch in the name of a replica")
    return str(ApiKey(key).name)


def _fetching_replicas(request: "Message") -> tuple[int, ...]:
    """Who fetches, in the field of versions up to 14 and in that of later ones; -1 is a consumer."""
    later = request.replica_state
    return request.replica_id, -1 if later is None else later.replica_id
