"""Transactions that their coordinators should have ended: open beyond their timeout, or prepared and not completed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing

_PREPARED = ("PrepareCommit", "PrepareAbort")
_SLACK_MS = 60_000
_LISTED = 20


def unfinished_transactions(evidence: Evidence) -> DataFrame:
    """One row: transaction_count bigint, unfinished_transaction_count bigint and unfinished_transactions array<string>.

    A coordinator ends a transaction within seconds of its timeout. So one that is a minute beyond it is overdue in any state, and a
    prepared one that an earlier snapshot showed a minute before, too, is not being completed.
    """
    age = F.lit(evidence.taken_ms) - F.col("start_time_ms")
    overdue = F.col("state").isin("Ongoing", *_PREPARED) & (age > F.col("timeout_ms") + _SLACK_MS)
    prepared = F.col("state").isin(*_PREPARED) & F.col("prepared_before")
    unfinished = F.coalesce(overdue, F.lit(False)) | F.coalesce(prepared, F.lit(False))
    begun = F.concat(F.lit(" since "), F.round(age / 1000).cast("bigint").cast("string"), F.lit(" s"))
    limit = F.concat(F.lit(" (timeout "), F.round(F.col("timeout_ms") / 1000).cast("bigint").cast("string"), F.lit(" s)"))
    text = F.concat("transactional_id", F.lit(": "), "state", F.coalesce(begun, F.lit("")), F.coalesce(limit, F.lit("")))
    found = _with_past(evidence).agg(
        F.count("*").alias("listed"),
        F.count_if(unfinished).alias("unfinished_transaction_count"),
        F.slice(F.array_sort(F.collect_list(F.when(unfinished, text))), 1, _LISTED).alias("unfinished_transactions"),
    )
    # Coordinators leave out ids that the auditor may not describe: none is none only if the partitions show no transaction either.
    seen = evidence.table("producers").where(F.col("current_txn_start_offset") >= 0).select("topic")
    unread = evidence.table("errors").where("dataset = 'producers'").select("topic")
    open_ones = seen.unionByName(unread).limit(1).agg(F.count("*").alias("open_ones"))
    known = F.lit(not missing.failed(evidence, "transactions")) & ((F.col("listed") > 0) | (F.col("open_ones") == 0))
    columns = ("unfinished_transaction_count", "unfinished_transactions")
    rows = found.crossJoin(F.broadcast(open_ones))
    return rows.select(
        F.when(known, F.col("listed")).alias("transaction_count"), *(F.when(known, F.col(name)).alias(name) for name in columns)
    )


def _with_past(evidence: Evidence) -> DataFrame:
    """The transactions with prepared_before: an earlier snapshot, a minute older at least, shows the same one prepared."""
    same: list[str | Column] = ["transactional_id", "producer_id", "start_time_ms"]
    earlier = evidence.series("transactions", "transactional_id", "producer_id", "start_time_ms", "state")
    long_ago = F.col("taken_ms") <= F.lit(evidence.taken_ms - _SLACK_MS)
    before = earlier.where(long_ago & F.col("state").isin(*_PREPARED)).select(*same, F.lit(True).alias("prepared_before")).distinct()
    return evidence.table("transactions").join(before, on=["transactional_id", "producer_id", "start_time_ms"], how="left")
