"""Partitions of a group's topics on which it has neither a commit nor a reader: no lag shows them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.positions import offsets_between
from spark_jobs.rows.group.membership import assignments

_PLACE = ["topic", "partition"]
_KEYS = ["group_id", *_PLACE]


@shortened
def bare_partitions(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition, place as topic-partition, and unread_log and unread_commit string, of Empty and Stable groups.

    A row is a partition that no member has, of a topic on which the group has a commit and which, if it has members, they still read. With
    both reasons NULL it has records and no commit. ``unread_log``: it has no commit, and whether it has records could not be read.
    ``unread_commit``: whether it has a commit could not be read.
    """
    commits = evidence.table("committed_offsets").where("committed is not null or error is not null").select(*_KEYS, "error")
    commits = commits.join(_topics_read(evidence, commits), on=["group_id", "topic"], how="left_semi")
    refused = commits.where("error is not null").select(*_KEYS, F.col("error").alias("refusal"))
    records = offsets_between(F.col("log_start"), F.col("log_end")).alias("records")
    logs = evidence.table("offsets").select(*_PLACE, records, F.coalesce("error", F.lit("not read")).alias("log_error"))
    there = commits.select("group_id", "topic").distinct().join(logs.select(*_PLACE), on="topic", how="inner").select(*_KEYS)
    places = there.union(refused.select(*_KEYS)).distinct()
    for read in (commits.where("error is null"), assignments(evidence)):
        places = places.join(read.select(*_KEYS), on=_KEYS, how="left_anti")
    places = places.join(refused, on=_KEYS, how="left").join(logs, on=_PLACE, how="left")
    rows = places.where("records is null or records > 0").withColumn("place", F.concat_ws("-", "topic", F.col("partition").cast("string")))
    said = F.concat_ws(": ", F.coalesce("log_error", F.lit("not read")), "place")
    return rows.select(
        *_KEYS,
        "place",
        F.when(F.col("refusal").isNull() & F.col("records").isNull(), said).alias("unread_log"),
        F.concat(F.col("refusal"), F.lit(": the commit on "), F.col("place"), F.lit(" could not be read")).alias("unread_commit"),
    )


def _topics_read(evidence: Evidence, commits: DataFrame) -> DataFrame:
    """group_id, topic: of Empty groups what they have committed, of Stable groups what their members have assigned or subscribe."""
    groups = evidence.table("groups").select("group_id", "state")
    of_empty = commits.join(groups.where("state = 'Empty'"), on="group_id", how="left_semi").select("group_id", "topic")
    subscribed = evidence.table("members").select("group_id", F.explode("subscribed_topics").alias("topic"))
    of_members = subscribed.union(assignments(evidence).select("group_id", "topic"))
    stable = of_members.join(groups.where("state = 'Stable'"), on="group_id", how="left_semi")
    return of_empty.union(stable.select("group_id", "topic")).distinct()
