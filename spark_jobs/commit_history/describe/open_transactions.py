"""Which open transactions hold records of the offsets topic back, by the newest record of each in ``__transaction_state``."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_audit.store.commit_batches import has_deleted

OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States of a transaction that no marker has ended yet."""


def holding_back(spark: SparkSession, history: Path, topic: str, partitions: Collection[int]) -> list[dict[str, Any]] | None:
    """Transactions that were open at their newest record in ``history`` and write to ``partitions`` of ``topic``, by transactional id.

    Each has transactional_id, state, since (start, ISO 8601, or None) and the ``partitions`` in question. None where none is found and
    batches were deleted, which may have held its record.
    """
    tables = [str(found.parent / "transactions.parquet") for found in history.glob("decoded/[!.]*/manifest.json")]
    if not tables or not partitions:
        return []
    records = spark.read.parquet(*tables)
    newest = F.max_by(F.struct("append_time", "state", "start", "partitions"), "log_offset")  # the broker's clock may go back
    of_partition = records.groupBy("transactional_id", "log_partition").agg(newest.alias("newest"))
    # An id has records in two partitions only if the topic got more of them meanwhile.
    states = of_partition.groupBy("transactional_id").agg(F.max_by("newest", "newest.append_time").alias("newest"))
    states = states.select("transactional_id", "newest.*")
    written = (
        states.where(F.col("state").isin(*OPEN_STATES)).select("*", F.explode("partitions").alias("of")).where(F.col("of.topic") == topic)
    )
    held = F.array_sort(F.array_intersect("of.partitions", F.array(*map(F.lit, partitions))))
    rows = written.select("transactional_id", "state", F.date_format("start", _ISO).alias("since"), held.alias("partitions"))
    found = [row.asDict() for row in rows.where(F.size("partitions") > 0).orderBy("transactional_id").collect()]
    return None if not found and has_deleted(history) else found


_ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"
