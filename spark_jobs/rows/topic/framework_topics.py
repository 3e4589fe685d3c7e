"""Topics that Kafka Connect, MirrorMaker 2 and Kafka Streams make for themselves, known by their names, their cleanup policy and groups."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts

_OF_WORKERS = r"(?i)^(.+?[._-]?)(offset|status|config)(s|es)?$"
"""offset.storage.topic, status.storage.topic and config.storage.topic: free names, which begin alike and end so by convention."""
_SAYS_CONNECT = r"(^|[._-])connect([._-]|$)"
_MAY_BE_WORKERS = r"(?i)(^|[._-])connect[._-]?([^ ]*[._-])?(offset|status|config)(s|es)?$"
PERHAPS = "perhaps Kafka Connect"
_MIRROR_MAKER = r"^(mm2-(offsets|status|configs|offset-syncs)\..+\.internal|.+\.checkpoints\.internal)$"
_HEARTBEATS = r"^(.+\.)?heartbeats$"
_CHANGELOG, _REPARTITION = "-changelog$", "-repartition$"
_STREAMS_ASSIGNOR = "stream"


@shortened
def framework_topics(evidence: Evidence) -> DataFrame:
    """topic, framework string: ``Kafka Connect``, ``MirrorMaker 2``, ``Kafka Streams`` or :data:`PERHAPS`; other topics have no row.

    - Kafka Connect: three compacted topics whose names begin alike and end in offsets, status and configs, the last with one partition, as
      workers demand. What they begin with is the id of a listed group of workers; or it has the word connect, and there are no more such
      threes than groups of workers. Where not all topics and groups were read, a compacted topic of such a name is perhaps Connect's
    - MirrorMaker 2: a compacted topic with a name of its DefaultReplicationPolicy (KIP-382); a topic of heartbeats only beside another one
    - Kafka Streams: a compacted topic (with delete, too, where it has windows) that ends in ``-changelog``, or one that ends in
      ``-repartition`` whose retention.ms is -1, as Streams makes them (WindowedChangelogTopicConfig, RepartitionTopicConfig);
      its name begins with the id of a group of Streams, or of a group without members, which may be one
    """
    topics = evidence.table("topics").where(~F.coalesce("is_internal", F.lit(False))).select("topic", "partition_count")
    policies = evidence.table("topic_configs").where("name = 'cleanup.policy' and value = 'compact'").select("topic")
    compacted = topics.join(policies, on="topic", how="left_semi")
    certain = compacted.where(_is(_MIRROR_MAKER)).select("topic")
    beside = F.broadcast(certain.limit(1).select(F.lit(True).alias("mirrors")))
    heartbeats = compacted.where(_is(_HEARTBEATS)).join(beside, how="cross").select("topic")
    found = {
        "Kafka Connect": _of_workers(evidence, compacted),
        "MirrorMaker 2": certain.unionByName(heartbeats),
        "Kafka Streams": _of_streams(evidence, topics),
    }
    known = reduce(DataFrame.unionByName, [rows.withColumn("framework", F.lit(framework)) for framework, rows in found.items()])
    if not _in_part(evidence):
        return known
    perhaps = compacted.where(_is(_MAY_BE_WORKERS)).select("topic").join(known, on="topic", how="left_anti")
    return known.unionByName(perhaps.withColumn("framework", F.lit(PERHAPS)))


def _in_part(evidence: Evidence) -> bool:
    """Whether topics or groups are in the cluster that the snapshot does not have."""
    scoped = any(scope and "*" not in scope for scope in (evidence.topic_scope, evidence.group_scope))
    unread = missing.failed(evidence, "topics") or missing.failed(evidence, "groups") or broker_facts(evidence).unread_of_any("groups")
    return scoped or bool(unread)


def _of_workers(evidence: Evidence, compacted: DataFrame) -> DataFrame:
    """The topics that Connect's workers keep their offsets, states and configurations in: column topic."""
    begin, kind = (F.lower(F.regexp_extract("topic", _OF_WORKERS, group)) for group in (1, 2))
    named = compacted.where(_is(_OF_WORKERS)).select("topic", begin.alias("begin"), kind.alias("kind"), "partition_count")
    threes = (
        named.groupBy("begin")
        .agg(
            F.count_distinct("kind").alias("kinds"),
            F.max(F.when(F.col("kind") == "config", F.col("partition_count"))).alias("config_partitions"),
        )
        .where("kinds = 3 and config_partitions = 1")
        .select("begin", F.regexp_replace("begin", r"[._-]$", "").alias("name"))
    )
    says_connect = F.col("name").rlike(_SAYS_CONNECT)
    workers = evidence.table("groups").where("protocol_type = 'connect'")
    ids = workers.agg(F.collect_set(F.lower("group_id")).alias("ids"))
    number = threes.agg(F.count_if(says_connect).alias("threes"))
    known = F.array_contains("ids", F.col("name")) | (says_connect & (F.col("threes") <= F.size("ids")))
    rows = threes.join(F.broadcast(ids), how="cross").join(F.broadcast(number), how="cross").where(known)
    return named.join(rows.select("begin"), on="begin", how="left_semi").select("topic")


def _of_streams(evidence: Evidence, topics: DataFrame) -> DataFrame:
    """The changelogs and repartition topics of applications of Kafka Streams: column topic."""
    compacted = _is(_CHANGELOG) & (F.col("name") == "cleanup.policy") & F.contains("value", F.lit("compact"))
    kept = _is(_REPARTITION) & (F.col("name") == "retention.ms") & (F.col("value") == "-1")
    settings = evidence.table("topic_configs").where(compacted | kept).select("topic")
    shaped = topics.join(settings, on="topic", how="left_semi")
    ends = F.split("topic", "-")
    prefixes = F.transform(F.sequence(F.lit(1), F.size(ends) - 1), lambda length: F.array_join(F.slice(ends, 1, length), "-"))
    of_consumers = F.coalesce("protocol_type", F.lit("consumer")) == "consumer"
    assignor = F.coalesce("assignor", F.lit(_STREAMS_ASSIGNOR))
    classic = (F.col("group_type") == "classic") & of_consumers & (assignor == _STREAMS_ASSIGNOR)
    ids = evidence.table("groups").where(classic | (F.col("group_type") == "streams")).select("group_id")
    named = shaped.select("topic", F.explode(prefixes).alias("group_id"))
    return named.join(ids, on="group_id", how="left_semi").select("topic").distinct()


def _is(pattern: str) -> Column:
    return F.col("topic").rlike(pattern)
