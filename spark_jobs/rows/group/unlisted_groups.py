"""Rows of groups that earlier snapshots show and that no broker lists, because what keeps them did not answer.

A group that is missing from a whole list is gone. One that is missing from a list with a hole may be behind it: it is not assessed, with
the reason. Where no list has a hole, nothing is read here.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.samples import dataset
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.tiers import matches_any, tier_of_group


def with_unlisted_groups(rows: DataFrame, evidence: Evidence, policy: Policy) -> DataFrame:
    """Wide rows of groups, and one for each unlisted group; its columns are NULL but for its names, its tier and its errors."""
    if _gap(evidence) is None:
        return rows
    tier = tier_of_group(policy, F.col("group_id"))
    found = unlisted_groups(evidence).withColumns({"resource": F.col("group_id"), "tier": tier})
    return rows.unionByName(found, allowMissingColumns=True)


def unlisted_groups(evidence: Evidence) -> DataFrame:
    """group_id, group_type, protocol_type, and errors map<dataset, reason> of each unlisted group."""
    columns = "group_id string, group_type string, protocol_type string"
    seen = dataset(evidence.tables, _snapshots(evidence), "groups", columns)
    of_scope = seen.where(matches_any(F.col("group_id"), evidence.group_scope))
    listed = evidence.table("groups").select("group_id")
    newest = F.max_by(F.struct("snapshot_id", "group_type", "protocol_type"), "snapshot_id").alias("newest")
    found = of_scope.join(listed, on="group_id", how="left_anti").groupBy("group_id").agg(newest)
    reason = F.concat(F.lit("no broker lists the group, which snapshot "), "newest.snapshot_id", F.lit(f" shows: {_gap(evidence)}"))
    unread = missing.extra(groups=reason, members=reason, committed_offsets=reason)
    return found.select("group_id", "newest.group_type", "newest.protocol_type", missing.joined(unread).alias("errors"))


@shortened
def unlisted_places(evidence: Evidence) -> DataFrame:
    """The unlisted groups with topic and partition: one row for each partition on which one had a commit."""
    places = dataset(evidence.tables, _snapshots(evidence), "committed_offsets", "group_id string, topic string, partition int")
    return unlisted_groups(evidence).join(places.select("group_id", "topic", "partition").distinct(), on="group_id", how="inner")


def has_unlisted(evidence: Evidence) -> bool:
    """Whether groups may be missing from what brokers list."""
    return _gap(evidence) is not None


def _gap(evidence: Evidence) -> str | None:
    """Why the list of groups is not whole, or None; also None without an earlier snapshot."""
    whole = evidence.whole_dataset_errors.get("groups") or broker_facts(evidence).unread_of_any("groups")
    return whole if evidence.history.all else None


def _snapshots(evidence: Evidence) -> list[Snapshot]:
    """The newest earlier snapshot that lists all groups, and those after it; all if none does.

    A group that only an older one shows was gone by then.
    """
    earlier = evidence.history.all
    read = (Evidence(spark=evidence.spark, snapshot=one, scratch=evidence.scratch) for one in earlier)
    whole = [number for number, one in enumerate(read) if _lists_all(one, evidence)]
    return list(earlier[whole[-1] if whole else 0 :])


def _lists_all(earlier: Evidence, now: Evidence) -> bool:
    broad = any(row["dataset"] == "groups" for row in earlier.broker_errors)
    gaps = "groups" in earlier.whole_dataset_errors or broad or "groups" in earlier.coordinator_errors
    return not gaps and (not earlier.group_scope or earlier.group_scope == now.group_scope)
