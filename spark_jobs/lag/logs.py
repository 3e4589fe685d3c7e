"""How the logs of partitions have moved over the newest samples, by age: 0 is this snapshot, 1 the one before, and so on."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.in_steps import bound
from spark_jobs.lag.samples import by_age, in_sequence, newest, with_age

_LOG_START_MOVES = 2
"""Retention deletes whole segments, so the log start jumps: one jump tells nothing of how often it does."""


@shortened
def logs_by_age(evidence: Evidence) -> DataFrame:
    """topic, partition and ``logs``: array by age of is_own boolean, log_start, log_end, last_stable and read_ms (epoch milliseconds).

    is_own: a sample of its own, of the present topic id; where the topic had another id, the others are NULL. Also truncated,
    expired_per_s and expiry_measured, and recreated of the topic.
    """
    rows = with_age(evidence, "offsets", "topic", "partition", "log_start", "log_end", "last_stable", "read_at")
    read = {name: F.col(name) for name in ("log_start", "log_end", "last_stable")} | {"read_ms": F.unix_millis("read_at")}
    rows = rows.groupBy("topic", "partition").agg(*[by_age(evidence, value).alias(name) for name, value in read.items()])
    rows = rows.join(_same_topics(evidence), on="topic", how="left")
    topics = F.coalesce("same", F.array(F.lit(True)))

    def log(counts: Column, age: Column) -> Column:
        same = F.coalesce(F.get(topics, age), F.lit(False))
        return F.struct((counts & same).alias("is_own"), *[F.when(same, F.get(F.col(name), age)).alias(name) for name in read])

    def facts(logs: Column) -> Column:
        known = F.filter(logs, lambda one: one["log_start"].isNotNull() & one["read_ms"].isNotNull())
        moved = F.filter(F.zip_with(logs, F.slice(logs, 2, len(newest(evidence))), _started_higher), lambda one: one)
        return F.struct(
            logs.alias("logs"),
            _truncated(logs).alias("truncated"),
            per_second(F.get(logs, F.lit(0)), F.element_at(known, -1), "log_start").alias("expired_per_s"),
            (F.size(moved) >= _LOG_START_MOVES).alias("expiry_measured"),
        )

    found = bound(F.transform(F.lit(in_sequence(newest(evidence))), log), facts)
    return rows.select("topic", "partition", "recreated", found.alias("found")).select("topic", "partition", "recreated", "found.*")


def _started_higher(log: Column, before: Column) -> Column:
    return log["log_start"] > before["log_start"]


def _same_topics(evidence: Evidence) -> DataFrame:
    """topic, recreated, and array<boolean> by age ``same``: whether the topic had its present id; without a row where that is not known."""
    now = evidence.table("topics").where(F.col("topic_id").isNotNull()).select("topic", F.col("topic_id").alias("id_now"))
    then = with_age(evidence, "topics", "topic", "topic_id").join(now, on="topic", how="inner")
    same, other = F.col("topic_id") == F.col("id_now"), F.col("topic_id") != F.col("id_now")
    ids = then.groupBy("topic").agg(
        by_age(evidence, same).alias("same"), F.count_if(same).alias("times"), F.count_if(other).alias("others")
    )
    recreated = F.when(F.col("others") > 0, F.lit(True)).when(F.col("times") > 1, F.lit(False))
    return ids.select("topic", "same", recreated.alias("recreated"))


def _truncated(logs: Column) -> Column:
    """The largest step back of the log end; what was read earlier than the end before it is no step."""
    ends = F.filter(F.reverse(logs), lambda one: one["log_end"].isNotNull() & one["read_ms"].isNotNull())
    start = F.struct(*[F.lit(value).cast("bigint").alias(name) for name, value in (("end", -1), ("at", 0), ("back", 0))])

    def further(seen: Column, one: Column) -> Column:
        grown, later = one["log_end"] >= seen["end"], one["read_ms"] > seen["at"]
        back = F.greatest(seen["back"], seen["end"] - one["log_end"])
        return F.struct(
            F.when(grown, one["log_end"]).otherwise(seen["end"]).alias("end"),
            F.when(grown, one["read_ms"]).otherwise(seen["at"]).alias("at"),
            F.when(~grown & later, back).otherwise(seen["back"]).alias("back"),
        )

    return bound(ends, lambda ends: F.when(F.size(ends) > 1, F.aggregate(ends, start, further)["back"]))


def per_second(now: Column, then: Column, offset: str) -> Column:
    """By how many offsets a second one has grown between two samples, as double; NULL when it went back or no time has passed."""
    grown, seconds = now[offset] - then[offset], (now["read_ms"] - then["read_ms"]) / 1000
    return F.when((grown >= 0) & (seconds > 0), grown / seconds)
