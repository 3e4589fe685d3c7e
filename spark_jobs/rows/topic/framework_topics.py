"""Topics that Kafka Connect, MirrorMaker 2 and Kafka Streams make for themselves, known by their names, their cleanup policy and groups."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened

_CONNECT = r"(?i)(^|[._-])connect[._-]?([^ ]*[._-])?(offsets?|status(es)?|configs?)$"
"""offset.storage.topic, status.storage.topic and config.storage.topic are free names; these are the usual ones."""
_MIRROR_MAKER = r"^(mm2-(offsets|status|configs|offset-syncs)\..+\.internal|.+\.checkpoints\.internal|heartbeats|.+\.heartbeats)$"
_STREAMS = r"-(changelog|repartition)$"


@shortened
def framework_topics(evidence: Evidence) -> DataFrame:
    """topic, framework string: ``Kafka Connect``, ``MirrorMaker 2`` or ``Kafka Streams``; other topics have no row.

    - Kafka Connect: a compacted topic with one of the usual names, on a cluster that lists a group of Connect's workers
    - MirrorMaker 2: a compacted topic with a name of its DefaultReplicationPolicy (KIP-382)
    - Kafka Streams: a name that begins with the id of a listed group and ends in ``-changelog``, of a topic that is compacted (whether by
      age too or not), or in ``-repartition``, of one whose retention.ms is -1, as Streams makes them (WindowedChangelogTopicConfig,
      RepartitionTopicConfig)
    """
    topics = evidence.table("topics").where(~F.coalesce("is_internal", F.lit(False))).select("topic")
    compacted = evidence.table("topic_configs").where("name = 'cleanup.policy' and value = 'compact'").select("topic")
    named = topics.where(_is(_CONNECT) | _is(_MIRROR_MAKER)).join(compacted, on="topic", how="left_semi")
    workers = evidence.table("groups").where("protocol_type = 'connect'").select(F.lit(True).alias("works")).limit(1)
    named = named.join(F.broadcast(workers), how="left").select(
        "topic",
        F.when(_is(_MIRROR_MAKER), F.lit("MirrorMaker 2")).when(F.col("works"), F.lit("Kafka Connect")).alias("framework"),
    )
    ends = F.split("topic", "-")
    prefixes = F.transform(F.sequence(F.lit(1), F.size(ends) - 1), lambda length: F.array_join(F.slice(ends, 1, length), "-"))
    of_streams = topics.where(_is(_STREAMS)).select("topic", F.explode(prefixes).alias("group_id"))
    groups = evidence.table("groups").select("group_id")
    of_streams = of_streams.join(groups, on="group_id", how="left_semi").select("topic").distinct()
    of_streams = of_streams.join(_shaped_by_streams(evidence), on="topic", how="left_semi")
    return named.where("framework is not null").unionByName(of_streams.withColumn("framework", F.lit("Kafka Streams")))


def _shaped_by_streams(evidence: Evidence) -> DataFrame:
    """Topics with the settings that Streams gives them by their names: column topic. Anybody may call a topic of events a changelog."""
    compacted = _is("-changelog$") & (F.col("name") == "cleanup.policy") & F.contains("value", F.lit("compact"))
    kept = _is("-repartition$") & (F.col("name") == "retention.ms") & (F.col("value") == "-1")
    return evidence.table("topic_configs").where(compacted | kept).select("topic")


def _is(pattern: str) -> Column:
    return F.col("topic").rlike(pattern)
