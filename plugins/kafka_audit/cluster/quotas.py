"""Reads the quotas that limit clients (KIP-546); needs DescribeConfigs on the cluster."""

from dataclasses import dataclass

from kafka.protocol.admin.client_quotas import DescribeClientQuotasRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import Failure


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """One limit of one entity: ``entity`` lists type (user, client-id, ip) and name, which is None for the default of that type."""

    entity: tuple[tuple[str, str | None], ...]
    key: str
    value: float


def describe_client_quotas(channel: Channel) -> tuple[tuple[Quota, ...], Failure | None]:
    """Every quota, in one request that any broker answers."""
    request = DescribeClientQuotasRequest(components=[], strict=False)
    response, failure = channel.response_of(channel.ask_any(request))
    if failure is not None:
        return (), failure
    return tuple(
        Quota(entity=tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)), key=value.key, value=value.value)
        for entry in response.entries or ()
        for value in entry.values
    ), None
