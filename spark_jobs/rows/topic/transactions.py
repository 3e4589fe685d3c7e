"""Open transactions of partitions, and those that no coordinator will end, as ``kafka-transactions find-hanging`` finds them (KIP-664)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.positions import offsets_between
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import BrokerFacts
from spark_jobs.rows.broker.configs import values_of_all_brokers

_KEYS = ["topic", "partition"]
_LISTED = 20
_NO_AUTHORIZER = "SECURITY_DISABLED"
_HIDDEN = (
    "a transaction is open and no coordinator lists any transactional id: without Describe on transactional ids they are left out "
    "without an error"
)


def with_transactions(partitions: DataFrame, evidence: Evidence, facts: BrokerFacts) -> DataFrame:
    """Adds open_transactions, oldest_transaction_ms, forgotten_transactions and transaction_max_timeout_ms (kafka_audit.catalogue.rows).

    Needs topic, partition, leader, is_internal, log_end and errors, to which it adds why coordinators' knowledge is missing. Producers of
    internal topics are not asked for.
    """
    rows = partitions.join(_open(evidence), on=_KEYS, how="left")
    told = (F.col("leader") >= 0) & ~F.col("is_internal") & ~F.map_contains_key("errors", F.lit("producers"))
    is_open = told & F.col("open").isNotNull()
    unread = _unread(evidence, facts)
    reason = F.lit(unread) if unread else F.when(is_open, F.lit(_HIDDEN)) if _hidden(evidence) else None
    # Log ends are read before producers: what began behind them is young, whatever the times of its records say, and may have ended
    # before its coordinator was asked.
    old = F.filter("forgotten", lambda one: F.coalesce(offsets_between(one["start_offset"], F.col("log_end")) > 0, F.lit(True)))
    forgotten = F.slice(old, 1, _LISTED) if reason is None else F.lit(None)
    none = F.array().cast("array<struct<producer_id:bigint,start_offset:bigint,silent_ms:bigint>>")
    return rows.withColumns(
        {
            "open_transactions": F.when(told, F.coalesce("open", F.lit(0)).cast("int")),
            "forgotten_transactions": F.when(is_open, forgotten).when(told, none),
            "transaction_max_timeout_ms": _max_timeout(evidence),
            "errors": missing.joined(F.col("errors"), missing.extra(transactions=reason)),
        }
    )


def _open(evidence: Evidence) -> DataFrame:
    """topic, partition, open bigint, oldest_transaction_ms bigint and ``forgotten``, for partitions with an open transaction."""
    known = evidence.table("transactions").select("producer_id", F.inline("partitions")).distinct().withColumn("known", F.lit(True))
    silent = F.lit(evidence.taken_ms) - F.when(F.col("last_timestamp_ms") >= 0, F.col("last_timestamp_ms"))
    transactions = evidence.table("producers").where(F.col("current_txn_start_offset") >= 0).withColumn("silent_ms", silent)
    one = F.struct("silent_ms", "producer_id", F.col("current_txn_start_offset").alias("start_offset"))
    forgotten = F.sort_array(F.collect_list(F.when(F.col("known").isNull(), one)), asc=False)
    return (
        transactions.join(known, on=[*_KEYS, "producer_id"], how="left")
        .groupBy(*_KEYS)
        .agg(
            F.count("*").alias("open"),
            F.max("silent_ms").alias("oldest_transaction_ms"),
            F.transform(forgotten, _in_order).alias("forgotten"),
        )
    )


def _in_order(one: Column) -> Column:
    return F.struct(*[one[name].alias(name) for name in ("producer_id", "start_offset", "silent_ms")])


def _unread(evidence: Evidence, facts: BrokerFacts) -> str | None:
    """Why the transactions of some coordinator are not known; None when every one told."""
    return evidence.whole_dataset_errors.get("transactions") or facts.unread_of_any("transactions")


def _hidden(evidence: Evidence) -> bool:
    """Whether transactional ids may be hidden: none is listed, and the cluster does not say that it has no authorizer."""
    return evidence.rows("transactions") == 0 and not evidence.whole_dataset_errors.get("acls", "").startswith(_NO_AUTHORIZER)


def _max_timeout(evidence: Evidence) -> Column:
    values = values_of_all_brokers(evidence).get("transaction.max.timeout.ms", [])
    numbers = [int(value) for value in values if value.isdecimal()]
    return F.lit(max(numbers) if numbers else None).cast("bigint")
