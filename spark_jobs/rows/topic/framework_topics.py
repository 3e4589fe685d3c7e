"""Topics that Kafka Connect, MirrorMaker 2 and Kafka Streams make for themselves, known by their names, their cleanup policy and groups."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened

_CONNECT = r"(?i)(^|[._-])connect[._-]?([^ ]*[._-])?(offsets?|status(es)?|configs?)$"
"""offset.storage.topic, status.storage.topic and config.storage.topic are free names; these are the usual ones."""
_MIRROR_MAKER = r"^(mm2-(offsets|status|configs|offset-syncs)\..+\.internal|.+\.checkpoints\.internal)$"
_HEARTBEATS = r"^(heartbeats|.+\.heartbeats)$"
"""A usual word: such a topic is MirrorMaker's only beside another one of its topics, or beside Connect's workers, which may run it."""
_CHANGELOG, _REPARTITION = "-changelog$", "-repartition$"
_STREAMS_ASSIGNOR = "stream"


@shortened
def framework_topics(evidence: Evidence) -> DataFrame:
    """topic, framework string: ``Kafka Connect``, ``MirrorMaker 2`` or ``Kafka Streams``; other topics have no row.

    - Kafka Connect: a compacted topic with one of the usual names, on a cluster that lists a group of Connect's workers
    - MirrorMaker 2: a compacted topic with a name of its DefaultReplicationPolicy (KIP-382)
    - Kafka Streams: a compacted topic (with delete, too, where it has windows) that ends in ``-changelog``, or one with delete alone that
      ends in ``-repartition``; its name begins with the id of a group of Streams, or of a group without members, which may be one
    """
    topics = evidence.table("topics").where(~F.coalesce("is_internal", F.lit(False))).select("topic")
    policies = evidence.table("topic_configs").where("name = 'cleanup.policy'").select("topic", F.col("value").alias("cleanup_policy"))
    topics = topics.join(policies, on="topic")
    named = topics.where((_is(_CONNECT) | _is(_MIRROR_MAKER) | _is(_HEARTBEATS)) & (F.col("cleanup_policy") == "compact"))
    workers = evidence.table("groups").where("protocol_type = 'connect'").select(F.lit(True).alias("works")).limit(1)
    mirrors = named.where(_is(_MIRROR_MAKER)).select(F.lit(True).alias("mirrors")).limit(1)
    named = named.join(F.broadcast(workers), how="left").join(F.broadcast(mirrors), how="left")
    mirrored = _is(_MIRROR_MAKER) | (_is(_HEARTBEATS) & F.coalesce("mirrors", "works"))
    of_connect = _is(_CONNECT) & F.col("works")
    named = named.select("topic", F.when(mirrored, "MirrorMaker 2").when(of_connect, "Kafka Connect").alias("framework"))
    return named.where("framework is not null").unionByName(_of_streams(topics, evidence.table("groups")))


def _of_streams(topics: DataFrame, groups: DataFrame) -> DataFrame:
    """topic, framework of the topics that Kafka Streams keeps for itself."""
    ends = F.split("topic", "-")
    prefixes = F.transform(F.sequence(F.lit(1), F.size(ends) - 1), lambda length: F.array_join(F.slice(ends, 1, length), "-"))
    compacted, deleted = (F.contains("cleanup_policy", F.lit(one)) for one in ("compact", "delete"))
    shaped = topics.where((_is(_CHANGELOG) & compacted) | (_is(_REPARTITION) & deleted & ~compacted))
    assignor = F.coalesce("assignor", F.lit(_STREAMS_ASSIGNOR))
    of_consumers = F.coalesce("protocol_type", F.lit("consumer")) == "consumer"
    classic = (F.col("group_type") == "classic") & of_consumers & (assignor == _STREAMS_ASSIGNOR)
    ids = groups.where(classic | (F.col("group_type") == "streams")).select("group_id")
    found = (
        shaped.select("topic", F.explode(prefixes).alias("group_id")).join(ids, on="group_id", how="left_semi").select("topic").distinct()
    )
    return found.withColumn("framework", F.lit("Kafka Streams"))


def _is(pattern: str) -> Column:
    return F.col("topic").rlike(pattern)
