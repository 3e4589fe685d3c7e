"""Offset commits as the brokers write them, decoded by position: the hot path, compiled by Spark into one Java loop.

Layouts: OffsetCommitKey v0 and OffsetCommitValue v0-v4 of Kafka 4.3. A commit of another shape (a long metadata text, a tagged
field of a later release, damage) is not regular: :mod:`spark_jobs.offsets_topic.records` takes it apart field by field.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.offsets_topic.integers import number

COLUMNS = (
    *("log_partition", "log_offset", "append_time", "group_id", "topic", "partition", "tombstone", "version"),
    *("committed", "leader_epoch", "metadata", "commit_time", "expire_time", "topic_id"),
)
"""log_partition int, log_offset bigint, append_time timestamp (the record's place in the offsets topic); group_id string, topic string,
partition int; tombstone boolean; version smallint of the value; committed bigint; leader_epoch int (NULL before v3, -1 where the client
gave none); metadata string; commit_time timestamp; expire_time timestamp (v1 only); topic_id string as Kafka prints it (v4 only)."""

_TEXTS = {
    "group_id": "cast(substring(key, 5, _group) as string)",
    "topic": "cast(substring(key, 7 + _group, _topic) as string)",
    "metadata": "cast(substring(value, _text, _metadata) as string)",
}
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999, what every reader of Parquet can show


def time_of(milliseconds: str) -> str:
    """SQL for a timestamp of epoch milliseconds; NULL outside the years 1 to 9999, where ``timestamp_millis`` could raise."""
    return f"if({milliseconds} between {_FIRST_MS}L and {_LAST_MS}L, timestamp_millis({milliseconds}), null)"


def uuid_text(sixteen_bytes: str) -> str:
    """SQL for a Kafka Uuid as Kafka prints it: URL-safe base64 without padding."""
    return f"replace(replace(substring(base64({sixteen_bytes}), 1, 22), '+', '-'), '/', '_')"


def with_shape(raw: DataFrame) -> DataFrame:
    """Raw rows with the positions that a regular commit's fields have, and ``regular`` (never NULL)."""
    key = raw.withColumn("_group", number("key", 3, 2).cast("int"))
    key = key.withColumn("_topic", number("key", "5 + _group", 2).cast("int"))
    value = key.withColumn("version", number("value", 1, 2).cast("smallint"))
    four, three = number("value", 15, 1) - 1, number("value", 15, 2)
    length = F.when(F.col("version") == 4, four).when(F.col("version") == 3, three).otherwise(number("value", 11, 2))
    value = value.withColumn("_metadata", length.cast("int"))
    value = value.withColumn("_text", F.expr("case version when 4 then 16 when 3 then 17 else 13 end"))
    return value.withColumn("regular", F.coalesce(_regular(), F.lit(False)))


def _regular() -> Column:
    key = "key between X'0000' and X'0001FFFF' and _group >= 0 and _topic >= 0 and length(key) = _group + _topic + 10"
    # What follows the metadata: the commit's time, v1's expiry, and v4's tagged fields, none or the topic id.
    # 126 bytes of metadata are the most whose length is one byte of a varint; a first bit that is set makes the number negative here.
    rest = "(length(value) + 1 - _text - _metadata)"
    value = f"""_metadata >= 0 and case version
        when 4 then ({rest} = 9 and endswith(value, X'00'))
            or ({rest} = 27 and substring(value, _text + _metadata + 8, 3) = X'010010')
        when 1 then {rest} = 16 when 0 then {rest} = 8 when 2 then {rest} = 8 when 3 then {rest} = 8 end"""
    texts = " and ".join(f"is_valid_utf8({text})" for text in _TEXTS.values())
    return F.expr(f"{key} and (value is null or ({value})) and coalesce({texts}, value is null)")


def regular_commits(raw: DataFrame) -> DataFrame:
    """The raw rows that are regular offset commits or their tombstones -> COLUMNS."""
    shaped = raw.transform(with_shape).where("regular").withColumn("_time", F.expr("_text + _metadata"))
    fields = shaped.select(
        *[F.col(old).alias(new) for old, new in (("partition", "log_partition"), ("offset", "log_offset"), ("timestamp", "append_time"))],
        *[F.expr(text).alias(name) for name, text in _TEXTS.items()],
        number("key", "7 + _group + _topic", 4).cast("int").alias("partition"),
        F.col("value").isNull().alias("tombstone"),
        "version",
        number("value", 3, 8).alias("committed"),
        F.when(F.col("version") >= 3, number("value", 11, 4)).cast("int").alias("leader_epoch"),
        number("value", "_time", 8).alias("_committed_ms"),
        F.when(F.col("version") == 1, number("value", "_time + 8", 8)).alias("_expires_ms"),
        F.when(F.expr("version = 4 and length(value) > _time + 8"), F.expr(uuid_text("substring(value, _time + 11, 16)"))).alias(
            "topic_id"
        ),
    )
    times = {"commit_time": time_of("_committed_ms"), "expire_time": time_of("_expires_ms")}
    return fields.withColumns({name: F.expr(sql) for name, sql in times.items()}).select(*COLUMNS)
