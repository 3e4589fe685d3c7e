"""Whether a topic exists: metadata silently leaves out topics the auditor may not describe; log dirs tell those from absent ones."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.collect.scope import INTERNAL_TOPICS
from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.tiers import matches_any

_ABSENT = "UNKNOWN_TOPIC_OR_PARTITION"
_HIDDEN = "it is on a broker's disk, but metadata does not show it: the auditor lacks Describe on this topic"
_NO_TOPIC = "__cluster_metadata"  # the metadata log lies in a log dir and is no topic


@shortened
def hidden_topics(evidence: Evidence) -> DataFrame:
    """The topics in scope that are on a disk and not in metadata: column topic."""
    on_disk = evidence.table("replica_sizes").select("topic").distinct()
    in_scope = matches_any(F.col("topic"), evidence.topic_scope) & (F.col("topic") != _NO_TOPIC)
    return on_disk.where(in_scope).join(evidence.table("topics").select("topic"), on="topic", how="left_anti")


def hidden_internal_topics(evidence: Evidence) -> DataFrame:
    """Those of Kafka's own topics that are hidden from the auditor: topic, is_internal (true) and error, why nothing is known of them."""
    hidden = hidden_topics(evidence).where(F.col("topic").isin(*INTERNAL_TOPICS))
    return hidden.select("topic", F.lit(True).alias("is_internal"), F.lit(_HIDDEN).alias("error"))


def disks_unread(evidence: Evidence) -> str | None:
    """Why some replicas on disk are not known; None when every alive broker told."""
    facts = broker_facts(evidence)
    whole = [evidence.whole_dataset_errors.get(name) for name in ("replica_sizes", "log_dirs")]
    return next((reason for reason in (*whole, facts.unread_of_any("replica_sizes"), facts.unread_of_any("log_dirs")) if reason), None)


def no_authorizer(evidence: Evidence) -> bool:
    """Whether the cluster says that it has no authorizer: then nothing is hidden from anybody."""
    return evidence.whole_dataset_errors.get("acls", "").startswith(missing.NO_AUTHORIZER)


def with_listing(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``listed`` boolean (metadata has the topic, true or NULL), ``listing_error`` string and ``on_disk`` boolean (true or NULL)."""
    topics = evidence.table("topics").select("topic", F.col("error").isNull().alias("listed"), F.col("error").alias("listing_error"))
    hidden = hidden_topics(evidence).withColumn("on_disk", F.lit(True))
    return rows.join(topics, on="topic", how="left").join(F.broadcast(hidden), on="topic", how="left")


def unlisted_reason(evidence: Evidence) -> Column:
    """Why it is not known whether a topic exists that metadata does not show; NULL when it is known.

    Needs the columns topic, item_errors and those of :func:`with_listing`.
    """
    refused = F.when(F.col("listing_error") != _ABSENT, F.col("listing_error"))
    disks = disks_unread(evidence)
    unread = f"metadata does not show it, and whether a missing Describe permission hides it is not known: {disks}" if disks else None
    return (
        F.when(F.col("listed"), F.lit(None).cast("string"))
        .when(F.lit(missing.failed(evidence, "topics")), F.lit(evidence.whole_dataset_errors.get("topics")).cast("string"))
        .when(~matches_any(F.col("topic"), evidence.topic_scope), F.lit("it is outside the scope of this snapshot"))
        .when(F.col("item_errors")["topics"].isNotNull(), F.col("item_errors")["topics"])
        .when(refused.isNotNull(), refused)
        .when(F.col("on_disk"), F.lit(_HIDDEN))
        .when(F.col("listing_error").isNull(), F.lit(unread).cast("string"))
    )


def exists(reason: Column) -> Column:
    """Whether the topic exists: NULL when there is a reason not to know it."""
    return F.when(reason.isNull(), F.coalesce(F.col("listed"), F.lit(False)))


def perhaps_hidden(evidence: Evidence, topics: DataFrame) -> DataFrame:
    """Those of the topics of which it is not known whether they exist: column topic."""
    rows = missing.with_item_errors(topics.transform(with_listing, evidence), evidence, missing.TOPICS)
    return rows.where(exists(unlisted_reason(evidence)).isNull()).select("topic")
