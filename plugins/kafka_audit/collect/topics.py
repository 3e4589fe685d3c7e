"""Topics, and the discovery of topics that are hidden from the audit."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.topics import Topic, TopicListing
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import NAMES, table
from kafka_audit.errors import CollectionError

NAME = "topics"
TOPIC_HIDDEN = "TOPIC_HIDDEN"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("topic_id", pa.string()),
        ("is_internal", pa.bool_()),
        ("partition_count", pa.int32()),
        ("error", pa.string()),
        ("authorized_operations", NAMES),
    ]
)


def listing(cluster: Cluster) -> TopicListing:
    """All topics with their partitions; CollectionError when they cannot be listed, because then there is nothing to collect from."""
    found = cluster.list_topics()
    if found.cluster_id is None:
        reason = "; ".join(failure.message for failure in found.failures) or "the answer has no cluster id"
        raise CollectionError(f"the topics of the cluster could not be listed ({reason}). Nothing was stored; run again when it is back")
    return found


def collect(topics: Sequence[Topic], errors: ErrorLog) -> pa.Table:
    """One row per topic in scope; ``authorized_operations`` are those of the audit's principal (KIP-430), null = not told."""
    errors.add_all(NAME, (topic.failure for topic in topics if topic.failure is not None))
    rows = [
        (t.name, t.topic_id, t.is_internal, t.partition_count, t.failure.error if t.failure else None, t.authorized_operations)
        for t in topics
    ]
    return table(SCHEMA, sorted(rows, key=lambda row: str(row[0])))


def note_hidden(stored: Iterable[str], visible: Iterable[str], scope: Scope, errors: ErrorLog) -> tuple[str, ...]:
    """Record every topic that brokers store and Metadata does not show.

    Metadata leaves out, without any error, topics that the principal may not describe; DescribeLogDirs needs Describe on the
    cluster only and shows them all. Returns the hidden names, sorted.
    """
    hidden = tuple(sorted(name for name in set(stored) - set(visible) if scope.covers_topic(name)))
    text = (
        "a broker stores this topic and Metadata does not show it: the audit's principal lacks Describe on it "
        "(or it was being created or deleted at this moment)"
    )
    for name in hidden:
        errors.add(NAME, Failure(api="Metadata", error=TOPIC_HIDDEN, message=text, topic=name))
    return hidden
