"""Reads groups of every type and their members with assignments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.api_message import ApiMessage

from kafka_audit.cluster import schemas
from kafka_audit.cluster.acls import operation_names
from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.consumer_protocol import MalformedAssignmentError, decode_assignment, decode_subscription
from kafka_audit.cluster.failures import COORDINATOR_MOVING, INVALID_RESPONSE, UNSUPPORTED_VERSION, Failure, refused
from kafka_audit.cluster.routing import Coordinators, Parsed, Question, ask_each

_GROUPS_PER_REQUEST = 500
_GROUP_ID_NOT_FOUND = 69
_LISTING_PAUSES = (0.2, 0.5, 1.0, 2.0, 4.0)
_EMPTY = "Empty"
_CONSUMER_PROTOCOL = "consumer"


# ConsumerGroupDescribe (KIP-848), ShareGroupDescribe (KIP-932) and StreamsGroupDescribe (KIP-1071) can go when kafka-python has them.
# ``load_json`` is its own hook for definitions kept elsewhere.
class ConsumerGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Describe groups of the new consumer protocol."""


class ConsumerGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Members of such groups with their current and target assignments."""


class ShareGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Describe share groups."""


class ShareGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Members of share groups with their assignments."""


class StreamsGroupDescribeRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Describe streams groups."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Topology of streams groups, and their members with the tasks assigned to them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """One group as its coordinator lists it; type and state come from ListGroups v5, which knows every type."""

    group_id: str
    group_type: str
    state: str
    protocol_type: str | None
    coordinator_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One member of a group; assignment and subscribed topics are None when they could not be told, which is not the same as empty."""

    member_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    assignment: tuple[tuple[str, int], ...] | None
    subscribed_topics: tuple[str, ...] | None
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DescribedGroup:
    """State and members of a group at the moment of description; the assignor is None where the group has none at that moment."""

    state: str
    members: tuple[Member, ...]
    assignor: str | None = None
    authorized_operations: tuple[str, ...] | None = None


_NOBODY = DescribedGroup(state=_EMPTY, members=())


def list_groups(channel: Channel) -> tuple[tuple[Group, ...], tuple[Failure, ...]]:
    """All groups of all brokers; each broker lists those it coordinates.

    A failure names a broker whose groups are missing. Without Describe on the cluster a broker leaves out, without any
    error, the groups that the principal may not describe.
    """
    found: dict[str, Group] = {}
    failures: dict[int, Failure] = {}
    brokers: Sequence[int] = channel.brokers
    for pause in (*_LISTING_PAUSES, None):
        again = []
        for reply in channel.ask_all({broker_id: [ListGroupsRequest()] for broker_id in brokers}):
            broker_id = int(reply.broker_id)
            if reply.failure is not None:
                failures[broker_id] = reply.failure
                continue
            code = reply.response.error_code
            channel.outcomes.note("ListGroups", code)
            if code:
                failures[broker_id] = replace(refused("ListGroups", code), broker_id=broker_id)
                if code in COORDINATOR_MOVING:
                    again.append(broker_id)
                continue
            failures.pop(broker_id, None)
            for raw in reply.response.groups:
                group = _group(raw, broker_id)
                # While its coordinator moves, a group may be listed by two brokers. One that is not Empty is asked for its members.
                if group.state != _EMPTY or found.get(group.group_id, group).state == _EMPTY:
                    found[group.group_id] = group
        if not again or pause is None or not channel.seconds_left():
            break
        channel.sleep(pause)
        brokers = again
    return tuple(found[group_id] for group_id in sorted(found)), tuple(failures.values())


def _group(raw: Message, broker_id: int) -> Group:
    return Group(
        group_id=raw.group_id,
        # Brokers before 3.8 (ListGroups below version 5) know only classic groups, or do not tell.
        group_type=(raw.group_type or "classic").lower(),
        state=raw.group_state or "",
        protocol_type=raw.protocol_type or None,
        coordinator_id=broker_id,
    )


def describe_groups(channel: Channel, coordinators: Coordinators, groups: Iterable[Group]) -> dict[str, DescribedGroup | Failure]:
    """Members of each group, asked with the API of its type (DescribeGroups would call groups of the new protocols Dead).

    A group that was listed as Empty is not asked: that state says that it has no members, and most groups of a large cluster are in it.
    """
    by_type: dict[str, list[str]] = {}
    results: dict[str, DescribedGroup | Failure] = {}
    for group in groups:
        if group.state == _EMPTY:
            results[group.group_id] = _NOBODY
        else:
            by_type.setdefault(group.group_type, []).append(group.group_id)
    for group_type, group_ids in sorted(by_type.items()):
        question = _QUESTIONS.get(group_type)
        if question is None:
            text = f"members of {group_type} groups are not described by this tool"
            for group_id in group_ids:
                results[group_id] = Failure(api="DescribeGroups", error=UNSUPPORTED_VERSION, message=text, group_id=group_id)
        else:
            described: dict[str, DescribedGroup | Failure] = ask_each(channel, question, group_ids, coordinators)
            results |= described
    return results


def _parse_classic(_: Message, response: Message) -> Iterator[Parsed[str, DescribedGroup]]:
    for raw in response.groups:
        code = raw.error_code
        if code == 0 and raw.group_state == "Dead":
            code = _GROUP_ID_NOT_FOUND  # before version 6 a group that is gone is answered as Dead, without an error
        members = tuple(_classic_member(raw, member) for member in raw.members)
        yield Parsed(raw.group_id, code, raw.error_message, _described(raw, members, raw.protocol_data))


def _described(raw: Message, members: tuple[Member, ...], assignor: str | None) -> DescribedGroup:
    operations = operation_names(raw.authorized_operations)
    return DescribedGroup(state=raw.group_state, members=members, assignor=assignor or None, authorized_operations=operations)


def _classic_member(group: Message, raw: Message) -> Member:
    assignment: tuple[tuple[str, int], ...] | None = None
    subscribed: tuple[str, ...] | None = None
    failure = None
    if group.protocol_type == _CONSUMER_PROTOCOL:
        stored = bytes(raw.member_assignment or b"")
        try:
            # In other states than Stable, empty values only mean that the rebalance is not over.
            assignment = decode_assignment(stored) if stored else () if group.group_state == "Stable" else None
            subscribed = decode_subscription(bytes(raw.member_metadata)) if raw.member_metadata else None
        except MalformedAssignmentError as problem:
            text = f"the {'assignment' if assignment is None else 'subscription'} of a member cannot be decoded: {problem}"
            failure = Failure(api="DescribeGroups", error=INVALID_RESPONSE, message=text, group_id=group.group_id)
    return Member(
        member_id=raw.member_id,
        client_id=raw.client_id,
        client_host=raw.client_host,
        instance_id=raw.group_instance_id,
        assignment=assignment,
        subscribed_topics=subscribed,
        failure=failure,
    )


def _parse_modern(_: Message, response: Message) -> Iterator[Parsed[str, DescribedGroup]]:
    for raw in response.groups:
        members = tuple(
            Member(
                member_id=member.member_id,
                client_id=member.client_id,
                client_host=member.client_host,
                instance_id=getattr(member, "instance_id", None),
                assignment=tuple((topic.topic_name, index) for topic in member.assignment.topic_partitions for index in topic.partitions),
                # The topics that a regular expression matches are known to the coordinator only.
                subscribed_topics=None if getattr(member, "subscribed_topic_regex", None) else tuple(member.subscribed_topic_names),
            )
            for member in raw.members
        )
        yield Parsed(raw.group_id, raw.error_code, raw.error_message, _described(raw, members, raw.assignor_name))


def _parse_streams(_: Message, response: Message) -> Iterator[Parsed[str, DescribedGroup]]:
    """A task is a partition number of a subtopology: of each topic that this subtopology reads, as far as the topic has so many."""
    for raw in response.groups:
        parts = raw.topology.subtopologies if raw.topology is not None else None
        read = {one.subtopology_id: _read_by(one) for one in parts or ()}
        topics = tuple(sorted({topic for names in read.values() for topic in names}))
        members = tuple(
            Member(
                member_id=member.member_id,
                client_id=member.client_id,
                client_host=member.client_host,
                instance_id=member.instance_id,
                assignment=None
                if parts is None
                else tuple(
                    (topic, index)
                    for task in member.assignment.active_tasks
                    for topic in read.get(task.subtopology_id, ())
                    for index in task.partitions
                ),
                subscribed_topics=None if parts is None else topics,
            )
            for member in raw.members
        )
        yield Parsed(raw.group_id, raw.error_code, raw.error_message, _described(raw, members, None))


def _read_by(subtopology: Message) -> tuple[str, ...]:
    return (*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics))


def _question(
    api: str, request: Message, ids: str, parse: Callable[[Message, Message], Iterator[Parsed[str, DescribedGroup]]]
) -> Question[str, DescribedGroup]:
    """How groups are asked for whose ids go into the field ``ids`` of that request."""

    def build(group_ids: Sequence[str]) -> Message:
        return request(**{ids: list(group_ids)}, include_authorized_operations=True)

    return Question(api=api, chunk=_GROUPS_PER_REQUEST, build=build, parse=parse, retriable=COORDINATOR_MOVING)


_QUESTIONS: Mapping[str, Question[str, DescribedGroup]] = {
    "classic": _question("DescribeGroups", DescribeGroupsRequest, "groups", _parse_classic),
    "consumer": _question("ConsumerGroupDescribe", ConsumerGroupDescribeRequest, "group_ids", _parse_modern),
    "share": _question("ShareGroupDescribe", ShareGroupDescribeRequest, "group_ids", _parse_modern),
    "streams": _question("StreamsGroupDescribe", StreamsGroupDescribeRequest, "group_ids", _parse_streams),
}
