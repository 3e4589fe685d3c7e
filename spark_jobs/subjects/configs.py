"""Effective configuration of topics and brokers as maps that rules look keys up in."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence


def config_by(evidence: Evidence, dataset: str, key: str) -> DataFrame:
    """``key`` and ``config`` map<name, struct<value, source, synonyms>> from topic_configs or broker_configs. No rows: not read."""
    entry = F.struct("name", F.struct("value", "source", "synonyms").alias("setting"))
    return evidence.table(dataset).groupBy(key).agg(F.map_from_entries(F.collect_list(entry)).alias("config"))


def broker_values(evidence: Evidence) -> DataFrame:
    """One row: ``broker_values`` map<name, array<value>>, the distinct values of each key that every alive broker answered, sorted."""
    alive = evidence.table("brokers").where("alive").select("broker_id")
    answered = (
        evidence.table("broker_configs")
        .where(F.col("value").isNotNull())
        .join(F.broadcast(alive), on="broker_id", how="left_semi")
        .groupBy("name")
        .agg(F.array_sort(F.collect_set("value")).alias("values"), F.count_distinct("broker_id").alias("brokers"))
    )
    every = alive.agg(F.count("*").alias("brokers"))
    complete = answered.join(F.broadcast(every), on="brokers", how="inner")
    entries = F.array_sort(F.collect_list(F.struct("name", "values")))
    return complete.agg(F.map_from_entries(entries).alias("broker_values"))


def value_of(key: str) -> Column:
    """The value of a key in the column ``config``; NULL when the key was not read."""
    return F.col("config")[key]["value"]


def whole_number(key: str) -> Column:
    """The value of a key in the column ``config`` as bigint; NULL when it was not read or is no number."""
    return value_of(key).try_cast("bigint")


def effective_min_insync(replication_factor: Column) -> Column:
    """min(configured min.insync.replicas, replication factor) as int, as brokers apply it; NULL when either is not known."""
    configured = whole_number("min.insync.replicas")
    # least() would skip a NULL and so invent the missing one of the two.
    return F.when(configured <= replication_factor, configured).when(configured > replication_factor, replication_factor).cast("int")
