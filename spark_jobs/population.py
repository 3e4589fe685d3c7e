"""How many resources each subject has by the snapshot's own counts: what the number of findings is held against."""

from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence
from spark_jobs.subjects.membership import assignments

_ROWS_OF = {"topic": "topics", "partition": "partitions", "broker": "brokers", "group": "groups"}


def population(subject: str, evidence: Evidence, policy: Policy) -> int:
    """The number of resources of a subject, counted in the evidence and not in the wide rows, so that a wrong join shows."""
    if subject in _ROWS_OF:
        return evidence.rows(_ROWS_OF[subject])
    if subject == "declared_topic":
        return len(policy.declared_topics)
    if subject == "declared_group":
        return len(policy.declared_groups)
    if subject == "group_partition":
        keys = ("group_id", "topic", "partition")
        return evidence.table("committed_offsets").select(*keys).union(assignments(evidence).select(*keys)).distinct().count()
    return 1  # the cluster
