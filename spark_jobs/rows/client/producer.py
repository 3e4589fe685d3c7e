"""Wide rows of producers: those that clients.yaml declares, and topics that somebody may write to and nobody declared."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import selected
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.client.client_declarations import (
    declared_rows,
    first_names,
    matched_topics,
    user_topics,
    with_absence,
    written_by_clients,
)
from spark_jobs.rows.tiers import tier_of, tier_of_rank, tier_rank
from spark_jobs.rows.topic.partition import placed_partitions
from spark_jobs.rows.topic.writes import with_writes, write_figures

_FROM_PARTITIONS = ("offsets", "producers", "last_batches")


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each declared producer, and one for each topic of clients that no declared producer covers."""
    declared = declared_rows(evidence, policy, "producer")
    matched = matched_topics(declared, user_topics(evidence))
    topics = matched.groupBy("resource").agg(
        first_names(F.col("topic")).alias("topics"),
        F.count("*").cast("int").alias("found"),
        F.min(tier_rank(policy, tier_of(policy, F.col("topic")))).alias("rank"),
    )
    # What a cluster withholds does not touch what an owner declares: these rows lack nothing.
    listed = F.lit(not missing.failed(evidence, "topics"))
    rows = declared.join(topics, on="resource", how="left").withColumns(
        {
            "topics": F.coalesce("topics", F.array().cast("array<string>")),
            "topic_count": F.coalesce("found", F.when(listed, F.lit(0))),
            "declaration": with_absence(F.col("found").isNull() & listed, "none of its topics is in the snapshot"),
            "tier": tier_of_rank(policy, F.col("rank")),
            "errors": missing.none(),
        }
    )
    parts = (rows, _undeclared(evidence, policy, matched))
    return reduce(DataFrame.unionByName, [selected(part, SUBJECTS["producer"].ddl) for part in parts])


def _undeclared(evidence: Evidence, policy: Policy, matched: DataFrame) -> DataFrame:
    facts = broker_facts(evidence)
    topics = written_by_clients(evidence).join(matched.select("topic").distinct(), on="topic", how="left_anti")
    topics = missing.with_item_errors(topics.withColumnRenamed("error", "topics_error"), evidence, missing.TOPICS)
    partitions = placed_partitions(evidence, facts).transform(with_writes, evidence)
    lacking = {name: missing.of_its_partitions(F.col("errors")[name], F.col("partition")) for name in _FROM_PARTITIONS}
    figures = partitions.groupBy("topic").agg(*write_figures(), missing.joined(missing.extra(**lacking)).alias("lacking"))
    rows = topics.select("topic", "topics_error", "item_errors").join(figures, on="topic", how="left")
    of_row = missing.extra(topics=F.col("topics_error"))
    return rows.withColumns(
        {
            "resource": F.concat(F.lit("topic "), F.col("topic")),
            "declared": F.lit(False),
            "idempotent_write_partitions": F.col("identified_write_partitions"),
            "plain_write_partitions": F.col("unidentified_write_partitions"),
            "tier": tier_of(policy, F.col("topic")),
            "errors": missing.joined(of_row, F.col("lacking"), F.col("item_errors"), missing.whole_datasets(evidence)),
        }
    )
