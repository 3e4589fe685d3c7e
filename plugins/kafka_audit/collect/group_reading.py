"""Groups with their members and commits, in the order in which every snapshot reads them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.groups import DescribedGroup, Group
from kafka_audit.collect import committed_offsets
from kafka_audit.collect.committed_offsets import Committed
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.scope import Scope


@dataclass(frozen=True, kw_only=True)
class GroupReading:
    """Groups in scope as listed and described, their commits, and the brokers (``missing``) that could not list theirs."""

    listed: tuple[Group, ...]
    described: Mapping[str, DescribedGroup | Failure]
    missing: tuple[Failure, ...]
    committed: Committed


def read_groups(cluster: Cluster, scope: Scope, now: Callable[[], datetime], errors: ErrorLog) -> GroupReading:
    """List, describe, and fetch the commits. Ends are to be read later: the other order would show groups beyond the end."""
    found, missing = cluster.list_groups()
    listed = tuple(group for group in found if scope.covers_group(group.group_id))
    coordinators = cluster.coordinators(listed)
    described = cluster.describe_groups(coordinators, listed)
    committed = committed_offsets.read(cluster, coordinators, listed, described, scope=scope, now=now, errors=errors)
    return GroupReading(listed=listed, described=described, missing=missing, committed=committed)
