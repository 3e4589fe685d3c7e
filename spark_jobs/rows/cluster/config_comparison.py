"""Where brokers' settings differ from each other, and where topics are set weaker than their brokers."""

import re

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.broker.configs import numbers_of_all_brokers, values_of_all_brokers

_OF_ONE_BROKER = re.compile(
    r"broker\.(id|rack)|node\.id|process\.roles|(cordoned\.)?log\.dirs?|metadata\.log\.dir|.*listeners?(\..*)?|listener\..*|controller\..*|ssl\..*"
    r"|(leader|follower)\.replication\.throttled\.rate"
)
_DRIFTS, _OVERRIDES = 50, 20
_TOPIC_OVERRIDE = "DYNAMIC_TOPIC_CONFIG"
_MIN_ISR, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def drifting_keys(evidence: Evidence) -> list[str] | None:
    """Keys whose value differs between alive brokers, like ``key: 1 (broker 2, 3), 2 (broker 1)``; None when none was read.

    Sorted, at most 50. Grows with the brokers only. A key that a broker does not know at all is no difference.
    """
    alive = broker_facts(evidence).alive or ()
    values: dict[str, dict[str, list[int]]] = {}
    for row in evidence.small("broker_configs", "broker_id", "name", "value", "is_sensitive"):
        if row["broker_id"] in alive and not row["is_sensitive"] and not _OF_ONE_BROKER.fullmatch(row["name"]):
            text = "not set" if row["value"] is None else row["value"]
            values.setdefault(row["name"], {}).setdefault(text, []).append(row["broker_id"])
    if not values:
        return None
    drifts = [f"{name}: {_who_has_what(found)}" for name, found in sorted(values.items()) if len(found) > 1]
    return drifts[:_DRIFTS]


def _who_has_what(values: dict[str, list[int]]) -> str:
    return ", ".join(f"{value} (broker {', '.join(map(str, sorted(brokers)))})" for value, brokers in sorted(values.items()))


def weaker_overrides(evidence: Evidence) -> DataFrame:
    """One row: weaker_override_count bigint and weaker_overrides array<string>, over min.insync.replicas and unclean election.

    Both are NULL when there is no weaker override among what was read, but not every topic's configuration or not every overridden
    key's value on the brokers could be read.
    """
    overrides = evidence.table("topic_configs").where(F.col("name").isin(_MIN_ISR, _UNCLEAN) & (F.col("source") == _TOPIC_OVERRIDE))
    compared = overrides.withColumn("brokers_value", F.coalesce(_brokers_value(evidence), _inherited())).withColumn("weaker", _weaker())
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


def _brokers_value(evidence: Evidence) -> Column:
    """The safest value that any broker has for the key in ``name``: a topic without the override gets it from some leader."""
    numbers = numbers_of_all_brokers(evidence, _MIN_ISR)
    min_isr, unclean = (str(max(numbers)) if numbers else None), min(values_of_all_brokers(evidence).get(_UNCLEAN, []), default=None)
    return F.when(F.col("name") == _MIN_ISR, F.lit(min_isr).cast("string")).otherwise(F.lit(unclean).cast("string"))


def _inherited() -> Column:
    """What the topic would have without its override, by its synonyms: with ELR brokers have no min.insync.replicas (KIP-966)."""
    return F.get(F.filter("synonyms", lambda synonym: synonym["source"] != _TOPIC_OVERRIDE), F.lit(0))["value"]


def _weaker() -> Column:
    lower = F.col("value").try_cast("int") < F.col("brokers_value").try_cast("int")
    allowed = F.when(F.col("brokers_value").isNotNull(), (F.col("value") == "true") & (F.col("brokers_value") == "false"))
    return F.when(F.col("name") == _MIN_ISR, lower).otherwise(allowed)
