"""Partitions with their replicas, racks and missing evidence: what the subjects partition and topic both use."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import BrokerFacts

# The cluster's answer about a partition that has no leader or lacks a replica is evidence, not a lack of it.
_STATES = ("LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE")


@shortened
def placed_partitions(evidence: Evidence, facts: BrokerFacts) -> DataFrame:
    """The partitions dataset plus in_progress, settled, replication_factor, rack figures and errors.

    ``settled`` array<int> are the assigned replicas without those still being added. ``rack_spread`` and ``rack_survivors`` int are
    NULL when a replica's rack is not known, ``rack_survivors_best_case`` int takes each unknown rack as a rack of its own.
    ``errors`` map<dataset, reason> holds what is missing for this partition.
    """
    reassignments = evidence.table("reassignments").select("topic", "partition", "adding_replicas", F.lit(True).alias("in_progress"))
    rows = evidence.table("partitions").join(reassignments, on=["topic", "partition"], how="left")
    rows = missing.with_item_errors(rows, missing.of_topics(evidence), missing.of_partitions(evidence))
    adding = F.coalesce(F.col("adding_replicas"), F.array().cast("array<int>"))
    rows = rows.withColumns({"settled": F.array_except(F.col("replicas"), adding), "errors": _errors(evidence, facts)})
    racks = F.transform("settled", facts.rack_of) if facts.racks else F.lit(None).cast("array<string>")
    rows = rows.withColumns({"replication_factor": F.size("settled"), "replica_racks": racks})
    return rows.withColumns(_rack_figures())


def _rack_figures() -> dict[str, Column]:
    """From the settled replicas' racks: how many there are, and how many replicas are left when the most crowded rack is lost."""
    known = F.filter("replica_racks", lambda rack: rack.isNotNull())
    complete = F.size(known) == F.size("replica_racks")
    unknown = F.when(complete, 0).otherwise(1)
    crowds = F.transform(F.array_distinct(known), lambda rack: F.size(F.filter("replica_racks", lambda other: other == rack)))
    crowd = F.coalesce(F.array_max(crowds), F.lit(0))  # no known rack at all: the largest known crowd is empty
    best_case = F.size("replica_racks") - F.when(crowd > unknown, crowd).otherwise(unknown)
    return {
        "rack_survivors_best_case": best_case,
        "rack_survivors": F.when(complete, best_case),
        "rack_spread": F.when(complete, F.size(F.array_distinct(known))),
    }


def _errors(evidence: Evidence, facts: BrokerFacts) -> Column:
    replicas, leader = F.col("replicas"), F.col("leader")
    of_row = missing.extra(
        partitions=F.when(~F.col("error").isin(*_STATES), F.col("error")),
        offsets=facts.unread_of("offsets", leader),
        producers=facts.unread_of("producers", leader),
        replica_sizes=missing.first_known(facts.unread_of_some("replica_sizes", replicas), facts.unread_of_some("log_dirs", replicas)),
    )
    return missing.joined(of_row, F.col("item_errors"), missing.whole_datasets(evidence))
