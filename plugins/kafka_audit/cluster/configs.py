"""Reads effective configuration of topics, brokers and groups, with its source and synonyms, and never drops an error per resource."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka.protocol.admin.configs import DescribeConfigsRequest

from kafka_audit.cluster.channel import Channel, Message, Reply
from kafka_audit.cluster.failures import INVALID_RESPONSE, Failure, refused

_API = "DescribeConfigs"
_TOPIC, _BROKER, _GROUP = 2, 4, 32
_RESOURCES_PER_REQUEST = 250

# org.apache.kafka.clients.admin.ConfigEntry.ConfigSource, by its number on the wire
SOURCES: Mapping[int, str] = {
    0: "UNKNOWN",
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """One effective configuration value; a sensitive one has no value here, whatever the broker sent.

    ``synonyms``: name, value and source of each place where the value could come from, in the order in which Kafka looks.
    """

    name: str
    value: str | None
    source: str
    is_sensitive: bool
    synonyms: tuple[Mapping[str, str | None], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """The configuration of one topic, broker or group, or why it is not known."""

    resource: str
    configs: tuple[Config, ...] = ()
    failure: Failure | None = None

    def named(self, **resource: str | int) -> "Described":
        """With the name of the resource in its failure."""
        return self if self.failure is None else replace(self, failure=replace(self.failure, **resource))  # type: ignore[arg-type]


def describe_topic_configs(channel: Channel, topics: Sequence[str], keys: Collection[str]) -> Iterator[Described]:
    """Effective values of ``keys`` on each topic; any broker can answer, so the topics are spread over all."""
    for described in _describe_anywhere(channel, _TOPIC, topics, keys):
        yield described.named(topic=described.resource)


def describe_group_configs(channel: Channel, group_ids: Sequence[str], keys: Collection[str]) -> Iterator[Described]:
    """Effective values of ``keys`` on each group (KIP-848), spread over all brokers; needs DescribeConfigs on the group."""
    for described in _describe_anywhere(channel, _GROUP, group_ids, keys):
        yield described.named(group_id=described.resource)


def describe_broker_configs(channel: Channel, keys: Collection[str]) -> Iterator[Described]:
    """Effective values of ``keys`` on each broker."""
    return describe_node_configs(channel, channel.brokers, keys)


def describe_node_configs(channel: Channel, nodes: Iterable[int], keys: Collection[str]) -> Iterator[Described]:
    """Effective values of ``keys`` on each node that ``channel`` knows the address of: a broker, or a controller (KIP-919).

    Only the node itself knows its static values.
    """
    for reply in channel.ask_all({node: [_request(_BROKER, [str(node)], keys)] for node in nodes}):
        for described in _read(channel, reply, keys):
            yield described.named(broker_id=int(described.resource))


def _describe_anywhere(channel: Channel, kind: int, names: Sequence[str], keys: Collection[str]) -> Iterator[Described]:
    starts = range(0, len(names), _RESOURCES_PER_REQUEST)
    for reply in channel.ask_any_each([_request(kind, names[start : start + _RESOURCES_PER_REQUEST], keys) for start in starts]):
        yield from _read(channel, reply, keys)


def _request(kind: int, names: Sequence[str], keys: Collection[str]) -> Message:
    request = DescribeConfigsRequest
    wanted = sorted(keys)
    return request(
        resources=[request.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=wanted) for name in names],
        include_synonyms=True,
        include_documentation=False,
    )


def _read(channel: Channel, reply: Reply, keys: Collection[str]) -> Iterator[Described]:
    asked = {resource.resource_name for resource in reply.request.resources}
    if reply.failure is not None:
        yield from (Described(resource=name, failure=reply.failure) for name in sorted(asked))
        return
    for result in reply.response.results:
        asked.discard(result.resource_name)
        channel.outcomes.note(_API, result.error_code)
        if result.error_code:
            yield Described(resource=result.resource_name, failure=refused(_API, result.error_code, result.error_message))
            continue
        configs = tuple(_config(raw) for raw in result.configs if raw.name in keys)
        if configs:
            yield Described(resource=result.resource_name, configs=configs)
        else:
            # A resource always has values for these keys: nothing at all is a gap, never "all defaults".
            empty = Failure(api=_API, error=INVALID_RESPONSE, message="the broker returned no configuration")
            yield Described(resource=result.resource_name, failure=empty)
    for name in sorted(asked):
        yield Described(resource=name, failure=Failure(api=_API, error=INVALID_RESPONSE, message="the answer leaves this resource out"))


def _config(raw: Message) -> Config:
    hidden = bool(raw.is_sensitive)
    return Config(
        name=raw.name,
        value=None if hidden else raw.value,
        source=SOURCES.get(raw.config_source, "UNKNOWN"),
        is_sensitive=hidden,
        synonyms=tuple(
            {"name": s.name, "value": None if hidden else s.value, "source": SOURCES.get(s.source, "UNKNOWN")} for s in raw.synonyms or ()
        ),
    )
