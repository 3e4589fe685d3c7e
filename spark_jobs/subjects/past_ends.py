"""The log ends that earlier snapshots saw of the same topic: a recreated one has another id and starts a new log (KIP-516)."""

from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence, shortened
from spark_jobs.subjects.ages import ages_where, array_by_age, array_of, largest, set_of, with_age

_ARRAYS = ("log_starts", "log_ends", "ends_at")
_MOVES = 2
"""Retention deletes whole segments, so the log start jumps: one jump tells nothing of how often it does."""


@shortened
def past_ends(evidence: Evidence) -> DataFrame:
    """topic, partition, ``same`` (the ages at which the topic's id was its present one), and arrays by age of these ages only.

    ``log_starts`` and ``log_ends`` are offsets, ``ends_at`` the time they were read at in milliseconds since the epoch: array<bigint>.
    Also recreated, truncated and expired_per_s (kafka_audit.subjects), and ``expiry_measured``: the log start moved often enough.
    """
    rows = with_age(evidence, "offsets", "topic", "partition", "log_start", "log_end", "read_at").groupBy("topic", "partition")
    ends = rows.agg(
        array_by_age(evidence, "log_start").alias("log_starts"),
        array_by_age(evidence, "log_end").alias("log_ends"),
        array_by_age(evidence, "unix_millis(read_at)").alias("ends_at"),
    )
    known = ends.join(_same_topics(evidence), on="topic", how="left").withColumn("same", F.coalesce("same", F.lit(1).cast("bigint")))
    known = known.withColumns({name: array_of(evidence, partial(_if_same, name)) for name in _ARRAYS})
    known = known.withColumn(
        "first", largest(set_of(evidence, lambda age: f"log_starts[{age}] is not null and ends_at[{age}] is not null"))
    )
    moves = F.bit_count(set_of(evidence, lambda age: f"log_starts[{age}] > get(log_starts, {age + 1})"))
    return known.withColumns(
        {"truncated": _truncated(), "expired_per_s": per_second("log_starts", "first"), "expiry_measured": moves >= _MOVES}
    ).drop("first")


def per_second(offsets: str, first: str) -> Column:
    """By how many offsets a second an array by age has grown since an age, as double; NULL when it went back or no time has passed.

    Needs ends_at.
    """
    seconds = (F.col("ends_at")[0] - F.get("ends_at", F.col(first))) / 1000
    grown = F.col(offsets)[0] - F.get(offsets, F.col(first))
    return F.when((grown >= 0) & (seconds > 0), grown / seconds)


def _truncated() -> Column:
    """The largest step back of the log end; what was read earlier than the end before it is no step."""
    ends = F.filter(
        F.arrays_zip(F.reverse("log_ends").alias("end"), F.reverse("ends_at").alias("at")),
        lambda one: one["end"].isNotNull() & one["at"].isNotNull(),
    )
    start = F.struct(*[F.lit(value).cast("bigint").alias(name) for name, value in (("end", -1), ("at", 0), ("back", 0))])

    def further(seen: Column, one: Column) -> Column:
        grown, later = one["end"] >= seen["end"], one["at"] > seen["at"]
        return F.struct(
            F.when(grown, one["end"]).otherwise(seen["end"]).alias("end"),
            F.when(grown, one["at"]).otherwise(seen["at"]).alias("at"),
            F.when(~grown & later, F.greatest(seen["back"], seen["end"] - one["end"])).otherwise(seen["back"]).alias("back"),
        )

    return F.when(F.size(ends) > 1, F.aggregate(ends, start, further)["back"])


def _if_same(name: str, age: int) -> str:
    return f"if((same & {1 << age}L) <> 0, {name}[{age}], null)"


def _same_topics(evidence: Evidence) -> DataFrame:
    """topic, ``same`` and recreated; of a topic whose id is not known, nothing that is older is taken for the same."""
    now = evidence.table("topics").where(F.col("topic_id").isNotNull()).select("topic", F.col("topic_id").alias("id_now"))
    then = with_age(evidence, "topics", "topic", "topic_id").join(now, on="topic", how="inner")
    ids = then.groupBy("topic").agg(ages_where("topic_id = id_now").alias("same"), ages_where("topic_id <> id_now").alias("others"))
    recreated = F.when(F.col("others") != 0, F.lit(True)).when(F.bit_count("same") > 1, F.lit(False))
    return ids.select("topic", "same", recreated.alias("recreated"))
