"""The earlier snapshots of the cluster as a series: its gaps, and where one of them is not whole."""

from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.cluster.quorum import clock_skews

_LISTED = 20


def series(evidence: Evidence) -> dict[str, Column]:
    """Columns snapshots, history_ms, longest_gap_ms and unusable_snapshots, from the manifests alone."""
    times = [one.taken_ms for one in (*evidence.history.snapshots, evidence.snapshot)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return {
        "snapshots": F.lit(len(times)).cast("int"),
        "history_ms": F.lit(times[-1] - times[0]).cast("bigint"),
        "longest_gap_ms": F.lit(max(gaps, default=None)).cast("bigint"),
        "unusable_snapshots": F.lit(list(evidence.history.unusable[-_LISTED:])).cast("array<string>"),
    }


def groups_listed(evidence: Evidence) -> dict[str, Column]:
    """Columns group_count and group_count_before: a cluster that had groups and shows none has lost them, or has not been read."""
    scope, listed = _group_scope(evidence.snapshot), evidence.rows("groups")
    untold = missing.failed(evidence, "groups") or broker_facts(evidence).unread_of_any("groups")
    before = next((one for one in reversed(evidence.history.snapshots) if _group_scope(one) == scope), None)
    return {
        "group_count": F.lit(listed if listed or not untold else None).cast("bigint"),
        "group_count_before": F.lit(0 if before is None else before.manifest["files"].get("groups.parquet", {}).get("rows")).cast("bigint"),
    }


def _group_scope(snapshot: Snapshot) -> object:
    return (snapshot.manifest.get("scope") or {}).get("groups")


def earlier_snapshots(evidence: Evidence) -> DataFrame:
    """One row: incomplete_snapshots array<string> and clock_skew_before_ms bigint. A snapshot that names no broker is not whole."""
    ids = [one.snapshot_id for one in evidence.history.snapshots]
    if not ids:
        none = (F.lit([]).cast("array<string>").alias("incomplete_snapshots"), F.lit(None).cast("bigint").alias("clock_skew_before_ms"))
        return evidence.spark.range(1).select(*none)
    silent = F.array_sort(F.collect_list(F.when(~(F.col("alive") & F.col("answered")), F.col("broker_id"))))
    brokers = evidence.series("brokers", "broker_id", "alive", "answered").groupBy("snapshot_id").agg(silent.alias("silent"))
    whole = brokers.join(clock_skews(evidence), on="snapshot_id", how="left").where(F.col("snapshot_id").isin(ids))
    names = F.array_join(F.transform("silent", lambda broker: broker.cast("string")), ", ")
    said = (
        F.when(F.size("silent") > 0, F.concat(F.lit("without broker "), names))
        .when(F.col("skew_ms").isNull(), F.lit("its clock could not be compared with the cluster's"))
        .otherwise(F.lit(""))
    )
    of_snapshot = F.map_from_entries(F.collect_list(F.struct("snapshot_id", said.alias("said"))))
    found = whole.agg(of_snapshot.alias("said"), F.max(F.abs("skew_ms")).alias("clock_skew_before_ms"))

    def text(name: Column) -> Column:
        problem = F.coalesce(F.col("said")[name], F.lit("it names no broker"))
        return F.when(problem != "", F.concat(name, F.lit(": "), problem))

    texts = F.filter(F.transform(F.lit(ids).cast("array<string>"), text), lambda one: one.isNotNull())
    return found.select(F.slice(texts, 1, _LISTED).alias("incomplete_snapshots"), "clock_skew_before_ms")
