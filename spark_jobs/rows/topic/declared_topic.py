"""Wide rows of the topics that the policy declares: are they there?"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.tiers import tier_of
from spark_jobs.rows.topic.topic_listing import exists, unlisted_reason, with_listing


def named_rows(evidence: Evidence, column: str, names: list[str]) -> DataFrame:
    """One row for each name, in a column of that name. The names become literals, so no text in them is read as SQL."""
    listed = F.array(*[F.lit(name) for name in names]).cast("array<string>")
    return evidence.spark.range(1).select(F.explode(listed).alias(column))


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each declared topic."""
    rows = named_rows(evidence, "topic", policy.declared_topics)
    rows = missing.with_item_errors(with_listing(rows, evidence), missing.of_topics(evidence))
    reason = unlisted_reason(evidence)
    errors = missing.joined(F.col("item_errors"), missing.extra(topics=reason), missing.whole_datasets(evidence))
    return rows.withColumns(
        {"resource": F.col("topic"), "present": exists(reason), "tier": tier_of(policy, F.col("topic")), "errors": errors}
    )
