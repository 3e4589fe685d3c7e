"""Where brokers' settings differ from each other, and where topics are set weaker than their brokers."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence

_OF_ONE_BROKER = (
    r"^(broker\.(id|rack)|node\.id|process\.roles|log\.dirs?|metadata\.log\.dir|.*listeners?(\..*)?|listener\..*|controller\..*|ssl\..*)$"
)
_DRIFTS, _OVERRIDES = 50, 20
_TOPIC_OVERRIDE = "DYNAMIC_TOPIC_CONFIG"
_MIN_ISR, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def drifting_keys(evidence: Evidence) -> DataFrame:
    """One row: drifting_keys array<string>, like ``key: 2 (broker 1), 1 (broker 2, 3)``; NULL when no broker's configuration was read."""
    alive = evidence.table("brokers").where("alive").select("broker_id")
    settings = (
        evidence.table("broker_configs")
        .where(~F.col("is_sensitive") & ~F.col("name").rlike(_OF_ONE_BROKER))
        .join(F.broadcast(alive), on="broker_id", how="left_semi")
        .withColumn("value", F.coalesce("value", F.lit("not set")))
    )
    brokers = F.array_join(F.array_sort(F.collect_set("broker_id")).cast("array<string>"), ", ")
    by_value = settings.groupBy("name", "value").agg(F.concat(F.col("value"), F.lit(" (broker "), brokers, F.lit(")")).alias("text"))
    by_key = by_value.groupBy("name").agg(
        F.count("*").alias("values"),
        F.concat(F.col("name"), F.lit(": "), F.array_join(F.array_sort(F.collect_list("text")), ", ")).alias("text"),
    )
    drifts = F.slice(F.array_sort(F.collect_list(F.when(F.col("values") > 1, F.col("text")))), 1, _DRIFTS)
    return by_key.agg(F.when(F.count("*") > 0, drifts).alias("drifting_keys"))


def weaker_overrides(evidence: Evidence) -> DataFrame:
    """One row: weaker_override_count bigint and weaker_overrides array<string>, over min.insync.replicas and unclean election.

    Both are NULL when there is no weaker override among what was read, but not every topic's configuration or not every overridden
    key's value on the brokers could be read.
    """
    overrides = evidence.table("topic_configs").where(F.col("name").isin(_MIN_ISR, _UNCLEAN) & (F.col("source") == _TOPIC_OVERRIDE))
    compared = (
        overrides.join(F.broadcast(_brokers_values(evidence)), on="name", how="left")
        .withColumn("brokers_value", F.coalesce(F.col("brokers_value"), _inherited()))
        .withColumn("weaker", _weaker())
    )
    text = F.concat("topic", F.lit(": "), "name", F.lit("="), "value", F.lit(" (brokers: "), "brokers_value", F.lit(")"))
    found = compared.agg(
        F.count_if("weaker").alias("count"),
        F.count_if(F.col("weaker").isNull()).alias("undecided"),
        F.slice(F.array_sort(F.collect_list(F.when(F.col("weaker"), text))), 1, _OVERRIDES).alias("texts"),
    )
    unread = evidence.table("topics").join(evidence.table("topic_configs").select("topic"), on="topic", how="left_anti")
    found = found.crossJoin(F.broadcast(unread.agg(F.count("*").alias("unread_topics"))))
    known = (F.col("count") > 0) | ((F.col("undecided") == 0) & (F.col("unread_topics") == 0))
    return found.select(
        F.when(known, F.col("count")).alias("weaker_override_count"), F.when(known, F.col("texts")).alias("weaker_overrides")
    )


def _brokers_values(evidence: Evidence) -> DataFrame:
    """name, brokers_value string: the safest value any broker has, because a topic without the override gets it from some leader."""
    safest = F.when(F.col("name") == _MIN_ISR, F.max(F.col("value").try_cast("int")).cast("string")).otherwise(F.min("value"))
    rows = evidence.table("broker_configs").where(F.col("name").isin(_MIN_ISR, _UNCLEAN) & F.col("value").isNotNull())
    return rows.groupBy("name").agg(safest.alias("brokers_value"))


def _inherited() -> Column:
    """What the topic would have without its override, by its synonyms: with ELR brokers have no min.insync.replicas (KIP-966)."""
    return F.get(F.filter("synonyms", lambda synonym: synonym["source"] != _TOPIC_OVERRIDE), F.lit(0))["value"]


def _weaker() -> Column:
    lower = F.col("value").try_cast("int") < F.col("brokers_value").try_cast("int")
    allowed = F.when(F.col("brokers_value").isNotNull(), (F.col("value") == "true") & (F.col("brokers_value") == "false"))
    return F.when(F.col("name") == _MIN_ISR, lower).otherwise(allowed)
