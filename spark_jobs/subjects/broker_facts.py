"""What all rows share about the brokers: who is alive, where they stand, and which of them left which dataset unread.

One row, cross-joined as a broadcast: its size grows with the brokers, not with topics or groups.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.missing import reason_text

PER_BROKER = (
    "broker_configs",
    "log_dirs",
    "replica_sizes",
    "offsets",
    "producers",
    "groups",
    "members",
    "committed_offsets",
    "transactions",
)
"""Datasets that are asked of each broker."""

_UNREAD = "map<string,map<int,string>>"


def broker_facts(evidence: Evidence) -> DataFrame:
    """One row: brokers_alive array<int>, racks_of map<int,string>, racks int, unread map<dataset, map<broker_id, reason>>.

    All but ``unread`` are NULL when no broker is known, that is when metadata could not be read.
    """
    brokers = evidence.table("brokers")
    alive_rack = F.when(F.col("alive"), F.col("rack"))
    without_rack = F.count_if(F.col("alive") & F.col("rack").isNull())
    facts = brokers.agg(
        F.when(F.count("*") > 0, F.array_sort(F.collect_set(F.when(F.col("alive"), F.col("broker_id"))))).alias("brokers_alive"),
        F.when(F.count("*") > 0, F.map_from_entries(F.collect_list(F.struct("broker_id", "rack")))).alias("racks_of"),
        F.when((F.count("*") > 0) & (without_rack == 0), F.count_distinct(alive_rack)).cast("int").alias("racks"),
    )
    return facts.crossJoin(F.broadcast(_unread(evidence)))


def _unread(evidence: Evidence) -> DataFrame:
    """One row: for each dataset the brokers that did not give it, with the reason."""
    whole_broker = F.col("broker_id").isNotNull() & F.col("topic").isNull() & F.col("group_id").isNull()
    said = evidence.table("errors").where(whole_broker).select("dataset", "broker_id", reason_text().alias("reason"))
    # A broker that is alive and did not answer, without a word on what is missing: then nothing of it can be relied on.
    explained = evidence.table("errors").where(F.col("broker_id").isNotNull()).select("broker_id").distinct()
    silent = (
        evidence.table("brokers")
        .where(F.col("alive") & ~F.col("answered"))
        .join(F.broadcast(explained), on="broker_id", how="left_anti")
        .select(
            F.explode(F.array(*[F.lit(name) for name in PER_BROKER])).alias("dataset"),
            "broker_id",
            F.concat(F.lit("broker "), F.col("broker_id").cast("string"), F.lit(" did not answer every request")).alias("reason"),
        )
    )
    by_dataset = (
        said.unionByName(silent)
        .groupBy("dataset")
        .agg(F.map_from_entries(F.array_sort(F.collect_set(F.struct("broker_id", "reason")))).alias("brokers"))
    )
    return by_dataset.agg(F.map_from_entries(F.collect_list(F.struct("dataset", "brokers"))).cast(_UNREAD).alias("unread"))


def unread_of(dataset: str, broker: Column) -> Column:
    """Why a dataset is missing from one broker; NULL when it is not. Needs the column ``unread``."""
    return F.col("unread")[dataset][broker]


def unread_of_any(dataset: str, brokers: Column | None = None) -> Column:
    """Why a dataset is missing from any broker (of ``brokers``, if given); the lowest id's reason, or NULL. Needs the column ``unread``."""
    missing = F.map_keys(F.col("unread")[dataset])
    concerned = missing if brokers is None else F.array_intersect(missing, brokers)
    return F.col("unread")[dataset][F.array_min(concerned)]
