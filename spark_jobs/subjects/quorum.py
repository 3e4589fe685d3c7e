"""The metadata quorum: its voters and which of them keep up with the leader."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence

_HEALTHY_WITHIN_MS = 10_000


def quorum_facts(evidence: Evidence) -> DataFrame:
    """One row: voters and healthy_voters array<int>, clock_skew_ms bigint (the auditor's clock minus the leader's).

    A voter is healthy when it was caught up within 10 s of the leader's own clock (KIP-836). Without that clock nothing can be said
    and the last two are NULL. A voter without a time has not caught up since this leader was elected.
    """
    quorum = evidence.table("quorum")
    time = F.when(F.col("last_caught_up_timestamp_ms") >= 0, F.col("last_caught_up_timestamp_ms"))
    voters = quorum.agg(
        F.array_sort(F.collect_list(F.when(F.col("role") == "voter", F.struct("replica_id", time.alias("time"))))).alias("voters"),
        F.max(F.when(F.col("is_leader"), time)).alias("leader_time"),
        F.max(F.when(F.col("is_leader"), F.unix_millis("read_at"))).alias("read_ms"),
    )
    healthy = F.filter("voters", lambda voter: F.coalesce(F.col("leader_time") - voter["time"] <= _HEALTHY_WITHIN_MS, F.lit(False)))
    read = F.size("voters") > 0
    return voters.select(
        F.when(read, F.col("voters")["replica_id"]).alias("voters"),
        F.when(read & F.col("leader_time").isNotNull(), healthy["replica_id"]).alias("healthy_voters"),
        (F.col("read_ms") - F.col("leader_time")).alias("clock_skew_ms"),
    )
