"""The clients of clients.yaml as rows, and the topics their patterns match. They grow with the policy only, so they become constants."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.clients.declared import Client, declared_row
from kafka_audit.policy import Policy, glob_to_regex
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import rows_of
from spark_jobs.rows.topic.framework_topics import PERHAPS, framework_topics

_DECLARED = (
    *("declared", "client", "implementation", "declaration", "owner", "declared_on", "source", "settings", "unknown_settings"),
    "start_problems",
)
_OF_ROW = {
    "producer": (*_DECLARED, "attested_error_handling"),
    "consumer": (*_DECLARED, "attested_processing", "group_id"),
}


def clients_of(policy: Policy, kind: str) -> list[Client]:
    """The declared clients of a kind."""
    return [client for client in policy.clients if client.kind == kind]


def declared_rows(evidence: Evidence, policy: Policy, kind: str) -> DataFrame:
    """One row for each declared client of the kind: ``resource``, what is declared, ``patterns`` array<string>; of a consumer group_id."""
    kinds = {name: SUBJECTS[kind].columns[name].type for name in ("resource", *_OF_ROW[kind])}
    fields = ",".join(f"{name}:{each}" for name, each in {**kinds, "patterns": "array<string>"}.items())
    return rows_of(evidence.spark, [_values(client) for client in clients_of(policy, kind)], fields)


def _values(client: Client) -> dict[str, object]:
    own = {"resource": f"{client.kind} {client.name}", "patterns": [glob_to_regex(pattern) for pattern in client.topics]}
    return {**own, **declared_row(client), "group_id": client.group}


def matched_topics(rows: DataFrame, topics: DataFrame) -> DataFrame:
    """resource, topic of the topics that any of a row's ``patterns`` matches."""
    patterns = F.broadcast(rows.select("resource", F.explode("patterns").alias("pattern")))
    matches = topics.select("topic").join(patterns, on=F.expr("topic rlike pattern"), how="inner")
    return matches.select("resource", "topic").distinct()


def user_topics(evidence: Evidence) -> DataFrame:
    """The topics dataset without internal topics: those that clients of their own accord write and read."""
    return evidence.table("topics").where(~F.coalesce("is_internal", F.lit(False)))


def written_by_clients(evidence: Evidence) -> DataFrame:
    """The topics dataset without internal topics and without those that frameworks keep for themselves: those with writers to declare."""
    theirs = framework_topics(evidence).where(F.col("framework") != PERHAPS)
    return user_topics(evidence).join(theirs, on="topic", how="left_anti")


def first_names(names: Column, listed: int = 20) -> Column:
    """An aggregate: the sorted names, at most so many."""
    return F.slice(F.array_sort(F.collect_set(names)), 1, listed)


def with_absence(absent: Column, words: str) -> Column:
    """The column ``declaration``, which says so where what is declared is not in the cluster."""
    return F.concat("declaration", F.when(absent, F.lit(f"; {words}")).otherwise(F.lit("")))
