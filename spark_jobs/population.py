"""How many resources each subject has by the snapshot's own counts: what the number of findings is held against."""

from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence
from spark_jobs.subjects.client_declarations import clients_of, user_topics
from spark_jobs.subjects.consumer import consumer_groups
from spark_jobs.subjects.membership import assignments
from spark_jobs.subjects.tiers import matches_any

_ROWS_OF = {"topic": "topics", "partition": "partitions", "broker": "brokers", "group": "groups"}


def population(subject: str, evidence: Evidence, policy: Policy) -> int:
    """The number of resources of a subject, counted in the evidence and not in the wide rows, so that a wrong join shows."""
    if subject in _ROWS_OF:
        return evidence.rows(_ROWS_OF[subject])
    declared = {"declared_topic": policy.declared_topics, "declared_group": policy.declared_groups}
    if subject in declared:
        return len(declared[subject])
    if subject == "group_partition":
        keys = ("group_id", "topic", "partition")
        return evidence.table("committed_offsets").select(*keys).union(assignments(evidence).select(*keys)).distinct().count()
    if subject == "producer":
        return _producers(evidence, policy)
    if subject == "consumer":
        groups = [client.group for client in clients_of(policy, "consumer")]
        return len(groups) + consumer_groups(evidence).where(~F.col("group_id").isin(groups)).count()
    return 1  # the cluster


def _producers(evidence: Evidence, policy: Policy) -> int:
    """The declared producers, and the topics that none of their patterns matches."""
    declared = clients_of(policy, "producer")
    patterns = [pattern for client in declared for pattern in client.topics]
    covered = matches_any(F.col("topic"), patterns) if patterns else F.lit(False)
    return len(declared) + user_topics(evidence).where(~covered).count()
