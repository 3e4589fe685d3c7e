"""ConsumerGroupDescribe (KIP-848) and ShareGroupDescribe (KIP-932), which kafka-python 3.0.12 does not have."""

from kafka.protocol.api_message import ApiMessage

from kafka_audit.cluster import schemas

# Can go when kafka-python ships these messages; ``load_json`` is its own hook for definitions kept elsewhere.


class ConsumerGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Describe groups of the new consumer protocol."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Members of such groups with their current and target assignments."""


class ShareGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Describe share groups."""


class ShareGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Members of share groups with their assignments."""
