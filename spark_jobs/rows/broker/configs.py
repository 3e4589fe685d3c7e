"""Effective configuration of topics and brokers as maps that rules look keys up in, and the cluster's feature levels (KIP-584)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import constant
from spark_jobs.rows.broker.broker_facts import broker_facts

_FEATURES = "map<string,struct<finalized:int,supported:int>>"
_NO_BOUND = 2**63 - 1
_JUDGED = ("metadata.version", "transaction.version", "group.version")


def config_by(key: str, settings: DataFrame) -> DataFrame:
    """``key`` and ``config`` map<name, struct<value, source, synonyms>> from rows of topic_configs or broker_configs. No rows: not read.

    Of topics take inherited.topic_config.
    """
    entry = F.struct("name", F.struct("value", "source", "synonyms").alias("setting"))
    return settings.groupBy(key).agg(F.map_from_entries(F.collect_list(entry)).alias("config"))


def values_of_all_brokers(evidence: Evidence) -> dict[str, list[str]]:
    """Key -> the distinct values of the alive brokers, sorted; only keys that every one of them answered. Grows with the brokers only."""

    def read() -> dict[str, list[str]]:
        alive = set(broker_facts(evidence).alive or ())
        answers: dict[str, dict[int, str]] = {}
        for row in evidence.small("broker_configs", "broker_id", "name", "value"):
            if row["broker_id"] in alive and row["value"] is not None:
                answers.setdefault(row["name"], {})[row["broker_id"]] = row["value"]
        return {name: sorted(set(found.values())) for name, found in sorted(answers.items()) if set(found) == alive}

    return evidence.memo("values_of_all_brokers", read)


def numbers_of_all_brokers(evidence: Evidence, key: str) -> list[int]:
    """The brokers' values of a key as numbers; none when one broker did not tell."""
    return [int(value) for value in values_of_all_brokers(evidence).get(key, []) if value.isdecimal()]


def value_of(key: str) -> Column:
    """The value of a key in the column ``config``; NULL when the key was not read."""
    return F.col("config")[key]["value"]


def whole_number(key: str) -> Column:
    """The value of a key in the column ``config`` as bigint; NULL when it was not read or is no number."""
    return value_of(key).try_cast("bigint")


def effective_min_insync(configured: Column, replicas: Column, bounded: Column | None = None) -> Column:
    """min(configured min.insync.replicas, number of replicas) as int, as brokers apply it; NULL when either is not known.

    ``replicas`` are all that are assigned, those that a reassignment is adding too (Partition.effectiveMinIsr), whatever
    the level of eligible.leader.replicas.version is (KAFKA-21110, KAFKA-21377).
    ``bounded``: whether the leader applies the bound, which came with KAFKA-15583 (3.7): else it applies what is configured, and where
    that is not known, neither is the value if the bound decides it. None: the bound always holds.
    """
    applies = F.lit(True) if bounded is None else bounded
    # least() would skip a NULL and so invent the missing one of the two.
    bound = F.when(configured > replicas, F.when(applies, replicas).when(~applies, configured))
    return F.when(configured <= replicas, configured).otherwise(bound).cast("int")


def timestamp_bound(side: str) -> Column:
    """message.timestamp.before.max.ms or .after.max.ms as brokers apply it.

    From 3.6 to 3.9 a bound that is not set, the largest number, leaves it to message.timestamp.difference.max.ms (LogConfig, KIP-937).
    """
    bound, older = whole_number(f"message.timestamp.{side}.max.ms"), whole_number("message.timestamp.difference.max.ms")
    return F.when(bound == _NO_BOUND, F.coalesce(older, bound)).otherwise(bound)


def feature_levels(evidence: Evidence) -> Column:
    """The column ``features``; NULL when the brokers told no finalized level at all.

    Brokers leave level 0 out of what they answer as finalized, and a feature that they do not know out of all. So once one finalized
    level was told, as metadata.version always is with KRaft, a feature without one stands at 0.
    """
    rows = evidence.small("cluster", "features")
    told = {one["name"]: one for one in (rows[0]["features"] or [] if rows else [])}
    if all(one["finalized_max"] is None for one in told.values()):
        return F.lit(None).cast(_FEATURES)
    none = {"finalized_max": None, "supported_max": None}
    found = {name: told.get(name, none) for name in sorted({*told, *_JUDGED})}
    levels = {name: {"finalized": one["finalized_max"] or 0, "supported": one["supported_max"] or 0} for name, one in found.items()}
    return constant(levels, _FEATURES)
