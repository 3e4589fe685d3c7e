"""Reads offsets of an internal topic, and asks for its first and last offsets.

Partitions are assigned and not subscribed to: no group is joined, and nothing is written to the cluster.
"""

import json
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it ships no types
from pyspark.sql import DataFrame, SparkSession

from kafka_audit.errors import CollectionError, ConfigurationError, NothingToReadError
from kafka_audit.submit import SECRET_SETTINGS, is_local

TOPIC = "__consumer_offsets"

SPARK_CONF = {
    # Spark's newer way to find offsets leaves internal topics out: 0 rows and no error.
    "spark.sql.streaming.kafka.useDeprecatedOffsetFetching": "true",
    # All but Kafka: its older source makes an object of every row, and of that a row again.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
}

_CLIENT = {
    # A transactional commit counts once it is committed; what an open transaction holds back is read by a later run.
    "isolation.level": "read_committed",
    "allow.auto.create.topics": "false",
}
_FETCH = {"fetch.max.wait.ms": "10", "max.poll.records": "5000"}  # the default wait is a half second for each partition
_ENCRYPTED = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Offsets of the topic's partitions at one instant, and which topic of which cluster it is."""

    cluster_id: str
    topic_id: str
    log_start: Mapping[int, int]
    last_stable: Mapping[int, int]
    log_end: Mapping[int, int]
    retention_ms: int | None = None
    """offsets.retention.minutes of one broker, in milliseconds; None where the configuration may not be read."""


def bounds(spark: SparkSession, client: Mapping[str, str], topic: str) -> Bounds:
    """Ask the brokers; NothingToReadError if the topic does not exist, CollectionError if it may not be read or cannot be reached."""
    jvm: Any = spark._jvm
    try:
        with closing(jvm.org.apache.kafka.clients.admin.Admin.create(dict(client))) as admin:
            cluster_id = str(admin.describeCluster().clusterId().get())
            asked = jvm.org.apache.kafka.clients.admin.DescribeTopicsOptions().includeAuthorizedOperations(True)
            about = admin.describeTopics(jvm.java.util.List.of(topic), asked).allTopicNames().get()[topic]
            retention_ms = _retention_ms(jvm, admin)
        # In this order: records that are appended between the two calls do not count as held back.
        _, end = _offsets(jvm, client, topic, "read_uncommitted")
        start, stable = _offsets(jvm, client, topic, "read_committed")
    except Py4JJavaError as problem:
        raise _explained(problem, topic) from None
    may = about.authorizedOperations()
    if may is not None and not may.contains(jvm.org.apache.kafka.common.acl.AclOperation.READ):
        raise CollectionError(_forbidden(topic, "no Read"))
    return Bounds(
        cluster_id=cluster_id,
        topic_id=str(about.topicId().toString()),
        log_start=start,
        last_stable=stable,
        log_end=end,
        retention_ms=retention_ms,
    )


def records(spark: SparkSession, client: Mapping[str, str], topic: str, start: Mapping[int, int], end: Mapping[int, int]) -> DataFrame:
    """Raw rows (partition int, offset bigint, timestamp, key binary, value binary) of each partition from ``start`` to before ``end``."""
    for name, value in SPARK_CONF.items():
        spark.conf.set(name, value)
    options = {f"kafka.{name}": value for name, value in {**client, **_CLIENT, **_FETCH}.items()}
    return (
        spark.read.format("kafka")
        .options(**options)
        .option("assign", json.dumps({topic: sorted(start)}))
        .option("startingOffsets", _offsets_json(topic, start))
        .option("endingOffsets", _offsets_json(topic, end))
        .option("failOnDataLoss", "false")  # what is gone is counted (raw_writer.coverage), and the rest is read
        .load()
        .select("partition", "offset", "timestamp", "key", "value")
    )


def _offsets_json(topic: str, offsets: Mapping[int, int]) -> str:
    return json.dumps({topic: {str(partition): offset for partition, offset in sorted(offsets.items())}})


def _offsets(jvm: Any, client: Mapping[str, str], topic: str, level: str) -> tuple[dict[int, int], dict[int, int]]:  # noqa: ANN401  (py4j)
    """Log start and, by isolation level, last stable or log end offset of each partition."""
    bytes_ = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
    config = {**client, **_CLIENT, "isolation.level": level, "key.deserializer": bytes_, "value.deserializer": bytes_}
    with closing(jvm.org.apache.kafka.clients.consumer.KafkaConsumer(config)) as consumer:
        found = [jvm.org.apache.kafka.common.TopicPartition(topic, each.partition()) for each in consumer.partitionsFor(topic)]
        starts, ends = consumer.beginningOffsets(found), consumer.endOffsets(found)
        return {each.partition(): int(starts[each]) for each in found}, {each.partition(): int(ends[each]) for each in found}


def _retention_ms(jvm: Any, admin: Any) -> int | None:  # noqa: ANN401  (py4j)
    """offsets.retention.minutes in milliseconds, which tells expired offsets from deleted ones; None where it may not be read."""
    config = jvm.org.apache.kafka.common.config
    try:
        node = admin.describeCluster().controller().get()
        broker = config.ConfigResource(getattr(config, "ConfigResource$Type").BROKER, node.idString())
        found = admin.describeConfigs(jvm.java.util.List.of(broker)).all().get()[broker].get("offsets.retention.minutes")
    except Py4JJavaError:
        return None
    return int(found.value()) * 60_000 if found is not None else None


def _forbidden(topic: str, said: str) -> str:
    return f"{topic} may not be read: grant Read and Describe on it to the audit's account, or do without its history ({said})"


def _explained(problem: Py4JJavaError, topic: str) -> CollectionError:
    cause = problem.java_exception
    while cause.getCause() is not None:
        cause = cause.getCause()
    said = str(cause.toString())
    if "TopicAuthorization" in said:
        return CollectionError(_forbidden(topic, said))
    if "UnknownTopicOrPartition" in said:
        return NothingToReadError(f"there is no {topic} yet: the brokers create it at its first use ({said})")
    return CollectionError(f"{topic} cannot be read: {said[:500]}")


def check_transport(conf: Mapping[str, str], client: Mapping[str, str]) -> None:
    """ConfigurationError when ``client`` holds credentials and Spark would send them in clear, or to executors that nobody authenticated.

    ``conf`` is the configuration of the running application: what spark-submit, its files and the cluster's defaults came to.
    """
    secrets = sorted(name for name in client if re.search(SECRET_SETTINGS, name))
    master = conf.get("spark.master", "")
    if not secrets or is_local(master):
        return
    missing = [] if _is_true(conf, "spark.authenticate") else ["spark.authenticate=true"]
    if not any(_is_true(conf, name) for name in _ENCRYPTED):
        missing.append(" or ".join(f"{name}=true" for name in _ENCRYPTED))
    if missing:
        raise ConfigurationError(
            f"the connection's {', '.join(secrets)} would travel to the executors of {master} unprotected: set {' and '.join(missing)} "
            "in spark-defaults.conf where the job is submitted and on the Spark cluster (Spark's documentation: Security), "
            "or use a local master"
        )


def _is_true(conf: Mapping[str, str], name: str) -> bool:
    return conf.get(name, "false").strip().lower() == "true"
