"""Settings that a topic inherits: every leader applies its own, and DescribeConfigs answers those of the broker that was asked.

ConfigHelper answers with the configuration of its own broker. Seen on Kafka 4.3.1: with log.retention.ms=3600000 on one of three brokers,
some answers told 3600000 as the topic's retention.ms, by that broker's value, and others 604800000.
"""

import re
from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.broker.configs import config_by, whole_number

MIN_INSYNC = "min.insync.replicas"
_OWN = "DYNAMIC_TOPIC_CONFIG"
_DIFFER = "brokers differ"
_NUMBER = re.compile(r"-?[0-9]{1,19}")
_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_LOWEST_IS_WORST = (MIN_INSYNC, "retention.ms", "retention.bytes")
_BROKER_KEYS = {
    MIN_INSYNC: "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "flush.messages": "log.flush.interval.messages",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "segment.bytes": "log.segment.bytes",
}
_RETENTION_MS = (("log.retention.ms", 1), ("log.retention.minutes", _MINUTE_MS), ("log.retention.hours", _HOUR_MS))
"""The first one that is set counts (AbstractKafkaConfig.logRetentionTimeMillis)."""


@shortened
def topic_config(evidence: Evidence) -> DataFrame:
    """``topic`` and ``config`` of topic_configs; of inherited settings on which brokers differ, the value that protects records least.

    That is the lowest min.insync.replicas and the shortest retention. Of other settings the value is NULL then: which one holds depends on
    the leader. The source is ``brokers differ``.
    """
    ranked = {key: _ranked(values) if key in _LOWEST_IS_WORST else [] for key, values in _differing(evidence).items()}
    changed = {key: next(iter(values), None) for key, values in ranked.items()}
    if not changed:
        return config_by("topic", evidence.table("topic_configs"))
    replaced = F.create_map(*[part for key, value in changed.items() for part in (F.lit(key), F.lit(value).cast("string"))])
    differs = (F.col("source") != _OWN) & F.col("name").isin(*changed)
    told = {"value": replaced[F.col("name")], "source": F.lit(_DIFFER)}
    settings = evidence.table("topic_configs").withColumns(
        {name: F.when(differs, value).otherwise(F.col(name)) for name, value in told.items()}
    )
    return config_by("topic", settings)


def min_insync_of(evidence: Evidence, leader: Column) -> Column:
    """min.insync.replicas, as bigint, that a leader applies, by the column ``config``; NULL where brokers differ and it is not told."""
    values = _differing(evidence).get(MIN_INSYNC)
    if values is None:
        return whole_number(MIN_INSYNC)
    of_brokers = F.create_map(*[F.lit(part) for pair in values.items() for part in pair])
    return _own_or(of_brokers[leader].try_cast("bigint"), MIN_INSYNC)


def highest(evidence: Evidence, key: str) -> Column:
    """The highest value, as bigint, that a broker may apply to the topic, by the column ``config``: of retention -1, which is no limit."""
    values = _differing(evidence).get(key)
    if values is None:
        return whole_number(key)
    ranked = _ranked(values)
    return _own_or(F.lit(ranked[-1] if ranked else None).cast("bigint"), key)


def _own_or(inherited: Column, key: str) -> Column:
    """NULL where the topic's configuration was not read: it may have a value of its own."""
    source = F.col("config")[key]["source"]
    return F.when(source == _OWN, whole_number(key)).when(source.isNotNull(), inherited)


def _differing(evidence: Evidence) -> dict[str, dict[int, str]]:
    """Topic setting -> broker -> its value, of the settings on which alive brokers differ. Grows with the brokers only."""

    def read() -> dict[str, dict[int, str]]:
        alive = set(broker_facts(evidence).alive or ())
        told: dict[int, dict[str, str]] = {}
        for row in evidence.small("broker_configs", "broker_id", "name", "value"):
            if row["broker_id"] in alive and row["value"] is not None:
                told.setdefault(row["broker_id"], {})[row["name"]] = row["value"]
        readers = {key: _value_of(broker_key) for key, broker_key in _BROKER_KEYS.items()} | {"retention.ms": _retention_ms}
        values = {key: {broker: reader(settings) for broker, settings in told.items()} for key, reader in readers.items()}
        known = {key: {broker: value for broker, value in found.items() if value is not None} for key, found in values.items()}
        return {key: found for key, found in known.items() if len(set(found.values())) > 1}

    return evidence.memo("inherited settings that differ", read)


def _value_of(broker_key: str) -> Callable[[Mapping[str, str]], str | None]:
    def read(settings: Mapping[str, str]) -> str | None:
        value = settings.get(broker_key)
        # cleanup.policy is a set: compact,delete is delete,compact.
        return None if value is None else ",".join(sorted(one.strip() for one in value.split(",")))

    return read


def _retention_ms(settings: Mapping[str, str]) -> str | None:
    for key, ms in _RETENTION_MS:
        if key in settings:
            told = settings[key]
            return str(max(int(told) * ms, -1)) if _NUMBER.fullmatch(told) else told
    return None


def _ranked(values: Mapping[int, str]) -> list[str]:
    """The brokers' values, lowest first and -1, which is no limit, last; empty where one is no number."""
    if not all(map(_NUMBER.fullmatch, values.values())):
        return []
    return sorted(values.values(), key=lambda value: int(value) if int(value) >= 0 else 2**64)
