"""Partitions of a group's topics on which it has no commit and, because the group has no members, no reader either."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.positions import offsets_between

_PLACE = ["topic", "partition"]


@shortened
def uncommitted_places(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition, place as topic-partition, and unread_log and unread_commit string, of groups in state Empty.

    A row is a partition of a topic on which the group has a commit. With both reasons NULL it has records and no commit. ``unread_log``:
    it has no commit, and whether it has records could not be read. ``unread_commit``: whether it has a commit could not be read.
    """
    commits = evidence.table("committed_offsets").where("committed is not null or error is not null").select("group_id", *_PLACE, "error")
    commits = commits.join(evidence.table("groups").where("state = 'Empty'").select("group_id"), on="group_id", how="left_semi")
    refused = commits.where("error is not null").select("group_id", *_PLACE, F.col("error").alias("refusal"))
    records = offsets_between(F.col("log_start"), F.col("log_end")).alias("records")
    logs = evidence.table("offsets").select(*_PLACE, records, F.coalesce("error", F.lit("not read")).alias("log_error"))
    topics = commits.select("group_id", "topic").distinct()
    there = topics.join(logs.select(*_PLACE), on="topic", how="inner").select("group_id", *_PLACE)
    places = there.union(refused.select("group_id", *_PLACE)).distinct()
    places = places.join(commits.where("error is null"), on=["group_id", *_PLACE], how="left_anti")
    places = places.join(refused, on=["group_id", *_PLACE], how="left").join(logs, on=_PLACE, how="left")
    rows = places.where("records is null or records > 0").withColumn("place", F.concat_ws("-", "topic", F.col("partition").cast("string")))
    said = F.concat_ws(": ", F.coalesce("log_error", F.lit("not read")), "place")
    return rows.select(
        "group_id",
        *_PLACE,
        "place",
        F.when(F.col("refusal").isNull() & F.col("records").isNull(), said).alias("unread_log"),
        F.concat(F.col("refusal"), F.lit(": the commit on "), F.col("place"), F.lit(" could not be read")).alias("unread_commit"),
    )
