"""The words of Kafka's access control by their numbers on the wire, written as kafka-acls.sh takes them."""

from collections.abc import Iterable, Mapping

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
