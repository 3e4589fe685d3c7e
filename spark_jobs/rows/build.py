"""Builds the wide rows of a subject: one row for each of its resources, with the columns that kafka_audit.catalogue.rows lists."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.broker import broker
from spark_jobs.rows.client import consumer, producer
from spark_jobs.rows.cluster import cluster
from spark_jobs.rows.group import declared_group, group, group_partition, group_sla
from spark_jobs.rows.topic import declared_topic, partition, topic

_BUILDERS: Mapping[str, Callable[[Evidence, Policy], DataFrame]] = {
    "broker": broker.build,
    "cluster": cluster.build,
    "consumer": consumer.build,
    "declared_group": declared_group.build,
    "declared_topic": declared_topic.build,
    "group": group.build,
    "group_partition": group_partition.build,
    "group_sla": group_sla.build,
    "partition": partition.build,
    "producer": producer.build,
    "topic": topic.build,
}


def wide_rows(subject: str, evidence: Evidence, policy: Policy) -> DataFrame:
    """The wide rows of a subject, with exactly the columns of ``kafka_audit.catalogue.rows`` in their order."""
    return _BUILDERS[subject](evidence, policy).select(*SUBJECTS[subject].columns)
