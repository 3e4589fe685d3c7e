"""Reads the access control lists that the authorizer of the cluster keeps, in the words of kafka-acls.sh."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from kafka.protocol.admin.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ACLResourceType, DescribeAclsRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import Failure

UNKNOWN = "Unknown"


def _words(numbered: Iterable[IntEnum], newer: Mapping[int, str]) -> Mapping[int, str]:
    """The words of kafka-acls.sh by their numbers on the wire; ``newer`` are those that kafka-python 3.0.12 does not have."""
    named = {one.value: one.name.title().replace("_", "") for one in numbered if one.name not in {"UNKNOWN", "ANY", "MATCH"}}
    return {**named, **newer}


OPERATIONS = _words(ACLOperation, {15: "TwoPhaseCommit"})
PERMISSION_TYPES = _words(ACLPermissionType, {})
RESOURCE_TYPES = _words(ACLResourceType, {7: "User"})
PATTERN_TYPES = _words(ACLResourcePatternType, {})


def operation_names(codes: Iterable[int] | None) -> tuple[str, ...] | None:
    """The names of what the asking principal may do (KIP-430), sorted; None where the broker did not tell."""
    return None if codes is None else tuple(sorted({OPERATIONS.get(int(code), UNKNOWN) for code in codes}))


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Acl:
    """One rule; a word newer than this tool is ``Unknown``."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission_type: str


def describe_acls(channel: Channel) -> tuple[tuple[Acl, ...], Failure | None]:
    """Every rule, in one request; needs Describe on the cluster. SECURITY_DISABLED says that the cluster has no authorizer."""
    request = DescribeAclsRequest(
        resource_type_filter=ACLResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=ACLResourcePatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
    )
    response, failure = channel.response_of(channel.ask_any(request))
    if failure is not None:
        return (), failure
    found = {
        Acl(
            resource_type=RESOURCE_TYPES.get(resource.resource_type, UNKNOWN),
            resource_name=resource.resource_name,
            pattern_type=PATTERN_TYPES.get(resource.pattern_type, UNKNOWN),
            principal=acl.principal,
            host=acl.host,
            operation=OPERATIONS.get(acl.operation, UNKNOWN),
            permission_type=PERMISSION_TYPES.get(acl.permission_type, UNKNOWN),
        )
        for resource in response.resources
        for acl in resource.acls
    }
    return tuple(sorted(found)), None
