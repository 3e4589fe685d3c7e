"""Wide rows of consumers: those that clients.yaml declares, and groups that the cluster lists and nobody declared."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.clients.defaults import DEFAULT_OF
from kafka_audit.input_files.glob import covers
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import selected
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.broker.configs import numbers_of_all_brokers
from spark_jobs.rows.broker.controllers import controllers
from spark_jobs.rows.client.client_declarations import (
    clients_of,
    declared_rows,
    first_names,
    matched_topics,
    user_topics,
    with_absence,
)
from spark_jobs.rows.group.commit_behaviour import with_group_behaviour
from spark_jobs.rows.group.membership import groups_with_members, that_consume, topics_of_groups
from spark_jobs.rows.tiers import tier_of, tier_of_group, tier_of_rank, tier_rank
from spark_jobs.rows.topic.topic_listing import hidden_topics, perhaps_hidden

_NAMES = "array<string>"
_UNCLEAN = "unclean.leader.election.enable"
_STREAMS_DEFAULTS = {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
"""StreamsConfig.CONSUMER_DEFAULT_OVERRIDES. Its isolation.level hangs on processing.guarantee, which is no setting of a consumer."""
_ISOLATION = "isolation.level"


def consumer_groups(evidence: Evidence) -> DataFrame:
    """The groups that consume, without share groups."""
    return that_consume(evidence.table("groups")).where(F.coalesce(F.col("group_type") != "share", F.lit(True)))


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each declared consumer, and one for each consumer group that no declared consumer names."""
    declared = declared_rows(evidence, policy, "consumer")
    groups = _groups(evidence)
    judged = consumer_groups(evidence).select("group_id")
    others = groups.join(judged, on="group_id", how="left_semi").join(declared.select("group_id"), on="group_id", how="left_anti")
    others = others.withColumns({"resource": F.concat(F.lit("group "), F.col("group_id")), "declared": F.lit(False)})
    rows = declared.join(groups, on="group_id", how="left").unionByName(others, allowMissingColumns=True)
    rows = rows.withColumn("settings", _settings_of_streams())
    figures = _figures(evidence, policy, rows)
    unread = missing.extra(broker_configs=broker_facts(evidence).unread_of_any("broker_configs"))
    errors = missing.joined(unread, F.col("group_errors"), missing.whole_datasets(evidence))
    # A declared consumer is judged by its declaration where its group was not listed.
    of_declared = F.map_filter(errors, lambda dataset, _: dataset != "groups")
    absent = F.col("group_type").isNull() & F.lit(not missing.failed(evidence, "groups"))
    rank = F.least(tier_rank(policy, tier_of_group(policy, F.col("group_id"))), F.col("topic_rank"))
    rows = rows.join(figures, on="resource", how="left").withColumns(
        {
            "session_min_ms": F.lit(max(numbers_of_all_brokers(evidence, "group.min.session.timeout.ms"), default=None)),
            "session_max_ms": F.lit(min(numbers_of_all_brokers(evidence, "group.max.session.timeout.ms"), default=None)),
            "declaration": with_absence(absent, "the snapshot lists no such group"),
            "errors": F.when(F.col("declared"), of_declared).otherwise(errors),
            "tier": tier_of_rank(policy, rank),
            **_topic_columns(evidence, policy),
        }
    )
    return selected(with_group_behaviour(rows, evidence), SUBJECTS["consumer"].ddl)


def _settings_of_streams() -> Column:
    """The column settings; of a group of Kafka Streams, the defaults are those that Streams gives its consumers."""
    streams = F.coalesce((F.col("group_type") == "streams") | (F.col("assignor") == "stream"), F.lit(False))
    values = F.create_map(*[F.lit(part) for pair in _STREAMS_DEFAULTS.items() for part in pair])

    def default(name: Column, one: Column) -> Column:
        by_default = streams & F.startswith(one["source"], F.lit(DEFAULT_OF)) & name.isin(*_STREAMS_DEFAULTS, _ISOLATION)
        given = F.struct(values[name].alias("value"), F.lit(f"{DEFAULT_OF}Kafka Streams").alias("source"))
        return F.when(by_default, given).otherwise(one)

    return F.transform_values("settings", default)


def _groups(evidence: Evidence) -> DataFrame:
    """group_id, group_type, state, assignor, member_count, static_members, group_config and group_errors of every listed group."""
    static = evidence.table("members").groupBy("group_id").agg(F.count_if(F.nullif("instance_id", F.lit("")).isNotNull()).alias("static"))
    rows = groups_with_members(evidence).join(static, on="group_id", how="left")
    entry = F.struct("name", F.struct("value", "source").alias("setting"))
    configs = evidence.table("group_configs").groupBy("group_id").agg(F.map_from_entries(F.collect_list(entry)).alias("group_config"))
    return rows.join(configs, on="group_id", how="left").select(
        "group_id",
        "group_type",
        "state",
        F.nullif("assignor", F.lit("")).alias("assignor"),
        "member_count",
        F.when(F.col("member_count").isNotNull(), F.coalesce("static", F.lit(0))).alias("static_members"),
        "group_config",
        F.col("errors").alias("group_errors"),
    )


def _figures(evidence: Evidence, policy: Policy, rows: DataFrame) -> DataFrame:
    """Per resource: topic names and counts, the strictest rank of their tiers, and what is known of their transactions."""
    by_pattern = rows.where(F.size("patterns") > 0)
    of_groups = topics_of_groups(evidence)
    by_group = rows.where(F.coalesce(F.size("patterns"), F.lit(0)) <= 0).select("resource", "group_id")
    read = by_group.join(of_groups, on="group_id", how="inner").select("resource", "topic")
    pairs = matched_topics(by_pattern, user_topics(evidence)).union(read)
    writers = declared_rows(evidence, policy, "producer").where(F.col("settings")["transactional.id"]["value"] != "")
    found = pairs.join(_topic_signs(evidence, matched_topics(writers, user_topics(evidence))), on="topic", how="inner")
    transactional = F.col("transactional")
    figures = found.groupBy("resource").agg(
        first_names(F.col("topic")).alias("topic_names"),
        F.count("*").cast("int").alias("topics_found"),
        F.min(tier_rank(policy, tier_of(policy, F.col("topic")))).alias("topic_rank"),
        first_names(F.when(transactional, F.col("topic"))).alias("transactional_names"),
        F.count_if(transactional.isNull()).alias("undecided"),
        first_names(F.when(transactional & F.col("unclean"), F.col("topic"))).alias("unclean_names"),
        F.count_if(transactional & F.col("unclean").isNull()).alias("unread_configs"),
    )
    hidden = read.join(perhaps_hidden(evidence, of_groups.select("topic").distinct()), on="topic", how="left_semi")
    hidden = hidden.union(matched_topics(by_pattern, hidden_topics(evidence)).select("topic", "resource"))
    return figures.join(hidden.groupBy("resource").agg(F.count("*").alias("hidden")), on="resource", how="full")


def _topic_signs(evidence: Evidence, declared: DataFrame) -> DataFrame:
    """topic, ``transactional`` and ``unclean`` boolean for every topic that is not internal; ``declared``: topics by declaration.

    A sign is a transactional or control batch at the end of a partition, an open transaction, or a transaction that a coordinator
    remembers. Without one the topic is taken for plain, NULL when it or the end of a partition could not be read. ``unclean`` is its
    effective unclean.leader.election.enable, as the nodes apply it that elect leaders.
    """
    topics = user_topics(evidence).select("topic")
    signs = declared.select("topic").union(evidence.table("producers").where(F.col("current_txn_start_offset") >= 0).select("topic"))
    signs = signs.union(evidence.table("transactions").select(F.explode("partitions.topic").alias("topic")))
    unread = evidence.table("offsets").where(F.col("error").isNotNull()).select("topic")
    unread = unread.union(user_topics(evidence).where(F.col("error").isNotNull()).select("topic"))
    batches = evidence.table("last_batches")
    signs = signs.union(batches.where("is_transactional or is_control").select("topic"))
    unread = unread.union(batches.where(F.col("error").isNotNull()).select("topic"))
    for level in (missing.TOPICS, missing.PARTITIONS):
        refused = missing.item_errors(evidence, level)
        if refused is not None:
            unread = unread.union(refused.where(F.map_contains_key("item_errors", F.lit("last_batches"))).select("topic"))
    unclean = evidence.table("topic_configs").where(F.col("name") == _UNCLEAN)
    allowed, own = F.col("value") == "true", F.col("source") == "DYNAMIC_TOPIC_CONFIG"
    unclean = unclean.select("topic", F.when(own, allowed).otherwise(controllers(evidence).elect_unclean()).alias("unclean"))
    rows = topics.join(signs.distinct().withColumn("sign", F.lit(True)), on="topic", how="left")
    rows = rows.join(unread.distinct().withColumn("unread", F.lit(True)), on="topic", how="left")
    known = not any(missing.failed(evidence, name) for name in ("last_batches", "offsets"))
    transactional = F.coalesce("sign", F.when(F.lit(known) & F.col("unread").isNull(), F.lit(False)))
    return rows.join(unclean, on="topic", how="left").select("topic", transactional.alias("transactional"), "unclean")


def _in_scope(evidence: Evidence, policy: Policy) -> list[str]:
    """The declared consumers all of whose topic patterns lie within the scope of the snapshot."""
    scope = evidence.topic_scope or ["*"]
    declared = [client for client in clients_of(policy, "consumer") if client.topics]
    return [f"consumer {one.name}" for one in declared if all(any(covers(glob, pattern) for glob in scope) for pattern in one.topics)]


def _topic_columns(evidence: Evidence, policy: Policy) -> dict[str, Column]:
    """Lists of topics; one that is empty only because something was not read is NULL."""
    none = F.array().cast(_NAMES)
    by_pattern = F.col("resource").isin(_in_scope(evidence, policy)) & F.lit(not missing.failed(evidence, "topics"))
    group_read = F.col("group_errors").isNotNull() & ~F.map_contains_key("group_errors", F.lit("committed_offsets"))
    by_group = F.coalesce(group_read & F.col("member_count").isNotNull(), F.lit(False))
    listed = F.when(F.size("patterns") > 0, by_pattern).otherwise(by_group)
    some = F.size("transactional_names") > 0
    whole = listed & F.col("hidden").isNull()
    decided = whole & (F.coalesce("undecided", F.lit(0)) == 0)
    unclean_known = (F.size("unclean_names") > 0) | (F.col("unread_configs") == 0)
    return {
        "topics": F.coalesce("topic_names", F.when(whole, none)),
        "topic_count": F.coalesce("topics_found", F.when(whole, F.lit(0))),
        "transactional_topics": F.when(some, F.col("transactional_names")).when(decided, none),
        "unclean_topics": F.when(some & unclean_known, F.col("unclean_names")).when(~F.coalesce(some, F.lit(False)) & decided, none),
    }
