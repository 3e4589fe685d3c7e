"""Reads the access control lists that the authorizer of the cluster keeps, in the words of kafka-acls.sh."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka.protocol.admin.acl import DescribeAclsRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import Failure

# The words by their numbers on the wire.
UNKNOWN = "Unknown"
ANY = 1
DESCRIBE = 8

# org.apache.kafka.common.acl.AclOperation
OPERATIONS: Mapping[int, str] = {
    2: "All",
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    DESCRIBE: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
    12: "IdempotentWrite",
    13: "CreateTokens",
    14: "DescribeTokens",
    15: "TwoPhaseCommit",
}
# org.apache.kafka.common.acl.AclPermissionType
PERMISSION_TYPES: Mapping[int, str] = {2: "Deny", 3: "Allow"}
# org.apache.kafka.common.resource.ResourceType and PatternType
RESOURCE_TYPES: Mapping[int, str] = {2: "Topic", 3: "Group", 4: "Cluster", 5: "TransactionalId", 6: "DelegationToken", 7: "User"}
PATTERN_TYPES: Mapping[int, str] = {3: "Literal", 4: "Prefixed"}


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
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
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
