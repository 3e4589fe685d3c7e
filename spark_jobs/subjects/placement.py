"""Partitions with their replicas, racks and missing evidence: what the subjects partition and topic both stand on."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects import missing
from spark_jobs.subjects.broker_facts import broker_facts, unread_of, unread_of_any

# The cluster's answer about a partition that has no leader or lacks a replica is evidence, not a lack of it.
_STATES = ("LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE")


def placed_partitions(evidence: Evidence) -> DataFrame:
    """The partitions dataset plus adding, reassigning, settled replicas, replication_factor, rack figures, broker facts and errors.

    ``settled`` are the assigned replicas without those still being added; ``rack_spread``, ``rack_survivors`` int are NULL when a
    replica's rack is not known, ``rack_survivors_best_case`` int takes each unknown rack as a rack of its own.
    ``errors`` map<dataset, reason> holds what is missing for this partition.
    """
    reassignments = evidence.table("reassignments").select("topic", "partition", "adding_replicas", F.lit(True).alias("in_progress"))
    rows = evidence.table("partitions").join(reassignments, on=["topic", "partition"], how="left")
    rows = rows.crossJoin(F.broadcast(broker_facts(evidence)))
    rows = missing.with_item_errors(rows, missing.of_topics(evidence), missing.of_partitions(evidence))
    return rows.transform(with_replicas).transform(with_racks).withColumn("errors", _errors(evidence)).drop("item_errors")


def with_replicas(rows: DataFrame) -> DataFrame:
    """Adds ``adding`` and ``settled`` array<int>, and ``replication_factor`` int."""
    adding = F.coalesce(F.col("adding_replicas"), F.array().cast("array<int>"))
    return (
        rows.withColumn("adding", adding)
        .withColumn("settled", F.array_except("replicas", "adding"))
        .withColumn("replication_factor", F.size("settled"))
    )


def with_racks(rows: DataFrame) -> DataFrame:
    """Adds rack_spread, rack_survivors and rack_survivors_best_case int from the racks of the settled replicas."""
    racks = F.transform("settled", lambda broker: F.col("racks_of")[broker])
    rows = rows.withColumn("replica_racks", F.when(F.col("racks_of").isNotNull(), racks))
    known = F.filter("replica_racks", lambda rack: rack.isNotNull())
    complete = F.size(known) == F.size("replica_racks")
    unknown = F.when(complete, 0).otherwise(1)
    crowds = F.transform(F.array_distinct(known), lambda rack: F.size(F.filter("replica_racks", lambda other: other == rack)))
    crowd = F.coalesce(F.array_max(crowds), F.lit(0))  # no known rack at all: the largest known crowd is empty
    best_case = F.size("settled") - F.when(crowd > unknown, crowd).otherwise(unknown)
    return (
        rows.withColumn("rack_survivors_best_case", F.when(F.col("replica_racks").isNotNull(), best_case))
        .withColumn("rack_survivors", F.when(complete, F.col("rack_survivors_best_case")))
        .withColumn("rack_spread", F.when(complete, F.size(F.array_distinct(known))))
        .drop("replica_racks")
    )


def _errors(evidence: Evidence) -> Column:
    not_read = F.when(F.col("error").isNotNull() & ~F.col("error").isin(*_STATES), F.col("error"))
    sizes = F.coalesce(unread_of_any("replica_sizes", F.col("replicas")), unread_of_any("log_dirs", F.col("replicas")))
    of_row = missing.extra(
        partitions=not_read,
        offsets=unread_of("offsets", F.col("leader")),
        producers=unread_of("producers", F.col("leader")),
        replica_sizes=sizes,
    )
    return missing.joined(of_row, F.col("item_errors"), missing.whole_datasets(evidence))
