"""How many resources each subject has: counted in the evidence and not in the wide rows, so that a wrong join shows."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.positions import KEYS
from spark_jobs.rows.client.client_declarations import clients_of, written_by_clients
from spark_jobs.rows.client.consumer import consumer_groups
from spark_jobs.rows.group.group_sla import covered, unlisted
from spark_jobs.rows.group.membership import assignments, that_consume
from spark_jobs.rows.group.unlisted_groups import has_unlisted, unlisted_groups, unlisted_places
from spark_jobs.rows.tiers import matches_any
from spark_jobs.rows.topic.topic_listing import hidden_internal_topics

_Counted = tuple[int, tuple[DataFrame, ...]]
"""What is known without a query, and tables whose rows are to be counted."""


def populations(subjects: Iterable[str], evidence: Evidence, policy: Policy) -> dict[str, int]:
    """Subject -> the number of its resources. One query counts all tables."""
    found = {subject: _COUNTED[subject](evidence, policy) for subject in subjects}
    tables = [rows.select(F.lit(subject).alias("subject")) for subject, (_, tables) in found.items() for rows in tables]
    counted = reduce(DataFrame.union, tables).groupBy("subject").agg(F.count("*").alias("rows")).collect() if tables else []
    rows = {row["subject"]: row["rows"] for row in counted}  # a table without rows has no row here
    return {subject: known + rows.get(subject, 0) for subject, (known, _) in found.items()}


def _topics(evidence: Evidence, _: Policy) -> _Counted:
    return evidence.rows("topics"), (hidden_internal_topics(evidence),)


def _groups(evidence: Evidence, _: Policy) -> _Counted:
    return evidence.rows("groups"), (unlisted_groups(evidence),) if has_unlisted(evidence) else ()


def _group_partitions(evidence: Evidence, _: Policy) -> _Counted:
    listed = evidence.table("committed_offsets").select(*KEYS).union(assignments(evidence).select(*KEYS)).distinct()
    return 0, (listed, unlisted_places(evidence)) if has_unlisted(evidence) else (listed,)


def _group_slas(evidence: Evidence, policy: Policy) -> _Counted:
    """Each SLA that covers a topic of a group that consumes, and the groups that none covers."""
    listed = that_consume(evidence.table("groups")).select("group_id").join(covered(evidence, policy), on="group_id", how="left")
    return 0, (listed, unlisted(evidence, policy)) if has_unlisted(evidence) else (listed,)


def _consumers(evidence: Evidence, policy: Policy) -> _Counted:
    """The declared consumers, and the groups that none of them names."""
    groups = [client.group for client in clients_of(policy, "consumer")]
    return len(groups), (consumer_groups(evidence).where(~F.col("group_id").isin(groups)),)


def _producers(evidence: Evidence, policy: Policy) -> _Counted:
    """The declared producers, and the topics that none of their patterns matches and that no framework keeps for itself."""
    declared = clients_of(policy, "producer")
    patterns = [pattern for client in declared for pattern in client.topics]
    written = matches_any(F.col("topic"), patterns) if patterns else F.lit(False)
    return len(declared), (written_by_clients(evidence).where(~written),)


_COUNTED: Mapping[str, Callable[[Evidence, Policy], _Counted]] = {
    "broker": lambda evidence, _: (evidence.rows("brokers"), ()),
    "cluster": lambda *_: (1, ()),
    "consumer": _consumers,
    "declared_group": lambda _, policy: (len(policy.declared_groups), ()),
    "declared_topic": lambda _, policy: (len(policy.declared_topics), ()),
    "group": _groups,
    "group_partition": _group_partitions,
    "group_sla": _group_slas,
    "partition": lambda evidence, _: (evidence.rows("partitions"), ()),
    "producer": _producers,
    "topic": _topics,
}
