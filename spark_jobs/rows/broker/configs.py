"""Effective configuration of topics and brokers as maps that rules look keys up in."""

import json

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened


@shortened
def config_by(evidence: Evidence, dataset: str, key: str) -> DataFrame:
    """``key`` and ``config`` map<name, struct<value, source, synonyms>> from topic_configs or broker_configs. No rows: not read."""
    entry = F.struct("name", F.struct("value", "source", "synonyms").alias("setting"))
    return evidence.table(dataset).groupBy(key).agg(F.map_from_entries(F.collect_list(entry)).alias("config"))


def values_of_all_brokers(evidence: Evidence) -> dict[str, list[str]]:
    """Key -> the distinct values of the alive brokers, sorted; only keys that every one of them answered. Grows with the brokers only."""
    alive = {row["broker_id"] for row in evidence.small("brokers", "broker_id", "alive") if row["alive"]}
    answers: dict[str, dict[int, str]] = {}
    for row in evidence.small("broker_configs", "broker_id", "name", "value"):
        if row["broker_id"] in alive and row["value"] is not None:
            answers.setdefault(row["name"], {})[row["broker_id"]] = row["value"]
    return {name: sorted(set(found.values())) for name, found in sorted(answers.items()) if set(found) == alive}


def broker_values(evidence: Evidence) -> Column:
    """The same as a constant map<string,array<string>>."""
    return F.from_json(F.lit(json.dumps(values_of_all_brokers(evidence))), "map<string,array<string>>")


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
