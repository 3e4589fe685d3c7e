"""How many resources each subject has by the snapshot's own counts: what the number of findings is compared with."""

from collections.abc import Callable

from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.client.client_declarations import clients_of, user_topics
from spark_jobs.rows.client.consumer import consumer_groups
from spark_jobs.rows.group.group_sla import covered
from spark_jobs.rows.group.membership import assignments
from spark_jobs.rows.tiers import matches_any

_ROWS_OF = {"topic": "topics", "partition": "partitions", "broker": "brokers", "group": "groups"}


def population(subject: str, evidence: Evidence, policy: Policy) -> int:
    """The number of resources of a subject, counted in the evidence and not in the wide rows, so that a wrong join shows."""
    if subject in _ROWS_OF:
        return evidence.rows(_ROWS_OF[subject])
    counted: dict[str, Callable[[], int]] = {
        "declared_topic": lambda: len(policy.declared_topics),
        "declared_group": lambda: len(policy.declared_groups),
        "group_partition": lambda: _group_partitions(evidence),
        "group_sla": lambda: _group_slas(evidence, policy),
        "producer": lambda: _producers(evidence, policy),
        "consumer": lambda: _consumers(evidence, policy),
        "cluster": lambda: 1,
    }
    return counted[subject]()


def _group_partitions(evidence: Evidence) -> int:
    keys = ("group_id", "topic", "partition")
    return evidence.table("committed_offsets").select(*keys).union(assignments(evidence).select(*keys)).distinct().count()


def _group_slas(evidence: Evidence, policy: Policy) -> int:
    """Each SLA that covers a topic of a group, and the groups that none covers."""
    return evidence.table("groups").select("group_id").join(covered(evidence, policy), on="group_id", how="left").count()


def _consumers(evidence: Evidence, policy: Policy) -> int:
    """The declared consumers, and the groups that none of them names."""
    groups = [client.group for client in clients_of(policy, "consumer")]
    return len(groups) + consumer_groups(evidence).where(~F.col("group_id").isin(groups)).count()


def _producers(evidence: Evidence, policy: Policy) -> int:
    """The declared producers, and the topics that none of their patterns matches."""
    declared = clients_of(policy, "producer")
    patterns = [pattern for client in declared for pattern in client.topics]
    written = matches_any(F.col("topic"), patterns) if patterns else F.lit(False)
    return len(declared) + user_topics(evidence).where(~written).count()
