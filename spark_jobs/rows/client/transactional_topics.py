"""Which topics have transactional writers, by every sign that a snapshot holds of them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.client.client_declarations import has, user_topics

_UNCLEAN = "unclean.leader.election.enable"


def topic_signs(evidence: Evidence, declared: DataFrame) -> DataFrame:
    """topic, ``transactional`` and ``unclean`` boolean for every topic that is not internal; ``declared``: topics by declaration.

    A sign is a transactional or control batch at the end of a partition, an open transaction, or a transaction that a coordinator
    remembers. Without one the topic is taken for plain, NULL when it or the end of a partition could not be read. ``unclean`` is its
    effective unclean.leader.election.enable.
    """
    topics = user_topics(evidence).select("topic")
    signs = declared.select("topic").union(evidence.table("producers").where(F.col("current_txn_start_offset") >= 0).select("topic"))
    signs = signs.union(evidence.table("transactions").select(F.explode("partitions.topic").alias("topic")))
    unread = evidence.table("offsets").where(F.col("error").isNotNull()).select("topic")
    unread = unread.union(user_topics(evidence).where(F.col("error").isNotNull()).select("topic"))
    known = has(evidence, ["last_batches"]) and not any(missing.failed(evidence, name) for name in ("last_batches", "offsets"))
    if has(evidence, ["last_batches"]):
        batches = evidence.table("last_batches")
        signs = signs.union(batches.where("is_transactional or is_control").select("topic"))
        unread = unread.union(batches.where(F.col("error").isNotNull()).select("topic"))
    refused = missing.of_topics(evidence)[0]
    if refused is not None:
        unread = unread.union(refused.where(F.map_contains_key("item_errors", F.lit("last_batches"))).select("topic"))
    partitions = missing.of_partitions(evidence)[0]
    if partitions is not None:
        unread = unread.union(partitions.where(F.map_contains_key("item_errors", F.lit("last_batches"))).select("topic"))
    unclean = evidence.table("topic_configs").where(F.col("name") == _UNCLEAN)
    unclean = unclean.select("topic", (F.col("value") == "true").alias("unclean"))
    rows = topics.join(signs.distinct().withColumn("sign", F.lit(True)), on="topic", how="left")
    rows = rows.join(unread.distinct().withColumn("unread", F.lit(True)), on="topic", how="left")
    transactional = F.coalesce("sign", F.when(F.lit(known) & F.col("unread").isNull(), F.lit(False)))
    return rows.join(unclean, on="topic", how="left").select("topic", transactional.alias("transactional"), "unclean")
