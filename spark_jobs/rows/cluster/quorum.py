"""The metadata quorum: its voters and which of them keep up with the leader."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence

_HEALTHY_WITHIN_MS = 10_000


@dataclass(frozen=True, kw_only=True)
class Quorum:
    """Sorted voter ids and the auditor's clock minus the leader's in milliseconds; None where it is not known."""

    voters: list[int] | None
    healthy_voters: list[int] | None
    clock_skew_ms: int | None


def quorum(evidence: Evidence) -> Quorum:
    """Read the quorum dataset: a row for each voter and observer, so it grows with the brokers only.

    A voter is healthy when it was caught up within 10 s of the leader's own clock (KIP-836). Without that clock nothing can be said.
    A voter without a time has not caught up since this leader was elected.
    """
    rows = evidence.small("quorum", "replica_id", "role", "is_leader", "last_caught_up_timestamp_ms", "read_at")
    voters = sorted((row for row in rows if row["role"] == "voter"), key=lambda row: row["replica_id"])
    times = {row["replica_id"]: row["last_caught_up_timestamp_ms"] for row in rows if (row["last_caught_up_timestamp_ms"] or -1) >= 0}
    leader = next((row for row in rows if row["is_leader"] and row["replica_id"] in times), None)
    ids = [row["replica_id"] for row in voters] or None
    if leader is None:
        return Quorum(voters=ids, healthy_voters=None, clock_skew_ms=None)
    clock = times[leader["replica_id"]]
    healthy = [voter for voter in ids or [] if voter in times and clock - times[voter] <= _HEALTHY_WITHIN_MS]
    read_ms = round(leader["read_at"].timestamp() * 1000) if leader["read_at"] else None
    return Quorum(voters=ids, healthy_voters=healthy if ids else None, clock_skew_ms=None if read_ms is None else read_ms - clock)


def clock_skews(evidence: Evidence) -> DataFrame:
    """snapshot_id and skew_ms (auditor's clock minus the quorum leader's, NULL where not told) of this snapshot and the earlier ones."""
    leader = F.col("is_leader") & (F.col("last_caught_up_timestamp_ms") >= 0)
    skew = F.unix_millis("read_at") - F.col("last_caught_up_timestamp_ms")
    rows = evidence.series("quorum", "is_leader", "last_caught_up_timestamp_ms", "read_at")
    return rows.groupBy("snapshot_id").agg(F.max(F.when(leader, skew)).alias("skew_ms"))
