"""Access control lists of the cluster's authorizer."""

import pyarrow as pa

from kafka_audit.cluster.acls import DESCRIBE_ACLS
from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import unsupported
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import table

NAME = "acls"
SCHEMA = pa.schema(
    [
        ("principal", pa.string()),
        ("host", pa.string()),
        ("operation", pa.string()),
        ("permission_type", pa.string()),
        ("resource_type", pa.string()),
        ("resource_name", pa.string()),
        ("pattern_type", pa.string()),
    ]
)


def collect(cluster: Cluster, errors: ErrorLog) -> pa.Table:
    """One row per rule, in the words of kafka-acls.sh; the error SECURITY_DISABLED says that there is no authorizer, so no rule applies."""
    if not cluster.supports(DESCRIBE_ACLS):
        errors.add(NAME, unsupported("DescribeAcls", "0.11"))
        return table(SCHEMA, ())
    found, failure = cluster.describe_acls()
    if failure is not None:
        errors.add(NAME, failure)
    rows = [(a.principal, a.host, a.operation, a.permission_type, a.resource_type, a.resource_name, a.pattern_type) for a in found]
    return table(SCHEMA, rows)
