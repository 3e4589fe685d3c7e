"""Reads the access control lists that the authorizer of the cluster keeps."""

from dataclasses import dataclass

from kafka.protocol.admin.acl import DescribeAclsRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import Failure, refused
from kafka_audit.cluster.operations import ANY, OPERATIONS, PATTERN_TYPES, PERMISSION_TYPES, RESOURCE_TYPES, UNKNOWN

_API = "DescribeAcls"


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Acl:
    """One rule in the words of kafka-acls.sh; a word newer than this tool is ``Unknown``."""

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
    reply = channel.ask_any(request)
    if reply.failure is not None:
        return (), reply.failure
    response = reply.response
    channel.outcomes.note(_API, response.error_code)
    if response.error_code:
        return (), refused(_API, response.error_code, response.error_message)
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
