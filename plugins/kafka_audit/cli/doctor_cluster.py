"""The checks of ``kafka-audit doctor`` that ask the cluster: does it answer, and may this principal read what an audit reads?"""

from collections.abc import Callable, Iterator

from kafka_audit.cli.doctor_installation import MISSING, NOT_KNOWN, OK, Check
from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.brokers import describe_cluster
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.topics import list_topics
from kafka_audit.errors import AuditError, ConfigurationError

DEADLINE_SECONDS = 60.0
_ON_CLUSTER = ("Describe", "DescribeConfigs")
_ON_TOPICS = ("Describe", "DescribeConfigs", "Read")


def cluster(settings: Callable[[], ConnectionSettings]) -> Iterator[Check]:
    """Whether it answers, then the rights on the cluster and on topics; only the first line where it does not answer. Sends only reads."""
    try:
        found = settings()
        with Cluster(found, deadline_seconds=DEADLINE_SECONDS) as connected:
            checks = [
                Check("cluster", OK, f"{len(connected.brokers)} brokers answer to {found.identity}"),
                _cluster_rights(connected),
                _topic_rights(connected),
            ]
    except ConfigurationError as problem:
        checks = [Check("cluster", MISSING, "the connection cannot be used", str(problem))]
    except AuditError as problem:
        checks = [Check("cluster", MISSING, "it does not answer", str(problem))]
    yield from checks


def _cluster_rights(connected: Cluster) -> Check:
    _, operations, failure = describe_cluster(connected)
    if operations is None:
        return Check("rights: cluster", NOT_KNOWN, failure.message if failure else "the broker did not tell them")
    lacking = [one for one in _ON_CLUSTER if one not in operations]
    if lacking:
        fix = f"Grant {' and '.join(lacking)} on the cluster; without them much is not assessed"
        return Check("rights: cluster", MISSING, f"without {', '.join(lacking)}", fix)
    return Check("rights: cluster", OK, ", ".join(_ON_CLUSTER))


def _topic_rights(connected: Cluster) -> Check:
    listing = list_topics(connected)
    told = [one for one in listing.topics if one.authorized_operations is not None]
    if not told:
        reason = listing.failures[0].message if listing.failures else "the cluster has no topics, or shows this principal none"
        return Check("rights: topics", NOT_KNOWN, reason)
    short = {one.name: [right for right in _ON_TOPICS if right not in (one.authorized_operations or ())] for one in told}
    short = {name: rights for name, rights in short.items() if rights}
    if short:
        name, rights = next(iter(short.items()))
        fix = f"Grant {', '.join(_ON_TOPICS)} on all topics, and Describe and DescribeConfigs on all groups"
        return Check("rights: topics", MISSING, f"{len(short)} of {len(told)} topics lack some, such as {name}: {', '.join(rights)}", fix)
    return Check("rights: topics", OK, f"{', '.join(_ON_TOPICS)} on all {len(told)} topics that are shown")
