"""Members of groups and the partitions assigned to them."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.groups import DescribedGroup
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import NAMES, PARTITION_LIST, table

NAME = "members"
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("member_id", pa.string()),
        ("client_id", pa.string()),
        ("instance_id", pa.string()),
        ("assignment", PARTITION_LIST),
        ("subscribed_topics", NAMES),
    ]
)


def collect(described: Mapping[str, DescribedGroup | Failure], scope: Scope, missing: Sequence[Failure], errors: ErrorLog) -> pa.Table:
    """One row per member; assignment and subscribed topics hold what is in scope, null = not known. No client hosts.

    A member that subscribes by a regular expression has null, because only the coordinator knows what that matches.
    """
    errors.add_all(NAME, missing)
    rows: list[tuple[object, ...]] = []
    for group_id in sorted(described):
        group = described[group_id]
        if isinstance(group, Failure):
            errors.add(NAME, group)
            continue
        for member in sorted(group.members, key=lambda one: one.member_id):
            if member.failure is not None:
                errors.add(NAME, member.failure)
            assignment = None
            if member.assignment is not None:
                assignment = [{"topic": t, "partition": p} for t, p in sorted(member.assignment) if scope.covers_topic(t)]
            subscribed = None
            if member.subscribed_topics is not None:
                subscribed = sorted(topic for topic in member.subscribed_topics if scope.covers_topic(topic))
            rows.append((group_id, member.member_id, member.client_id, member.instance_id, assignment, subscribed))
    return table(SCHEMA, rows)
