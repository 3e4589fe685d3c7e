"""Copies new records of ``__consumer_offsets`` and ``__transaction_state`` into the history, decodes them, and describes what groups did.

After a kill at any point the next run continues without a missing or double record.
"""

import argparse
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.cluster.connection_file import read_keys
from kafka_audit.cluster.java_client import java_keys
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, NothingToReadError
from kafka_audit.jars.fetch import spark_connector_jars
from kafka_audit.store.commit_batches import batches_in, has_deleted
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import bring, remote_at, root_folder
from kafka_audit.submit import READ_COMMITS_CONF
from spark_jobs.commit_history.decode.batch import TRANSACTIONS
from spark_jobs.commit_history.describe.behaviour_tables import Window, describe
from spark_jobs.commit_history.history import History
from spark_jobs.commit_history.read.source import Bounds, bounds, check_transport, records
from spark_jobs.engine.exit_code import exit_code_of, failure_of, say
from spark_jobs.engine.remote_tables import tables_of
from spark_jobs.engine.session import spark_session

NAME = "read_commits"

BEHAVIOUR_HOURS = 24.0

MOST_OFFSETS = 5_000_000
"""The most offsets of one batch: what a kill costs to read again, and how much disk an incomplete batch takes."""

_OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
"""States of a transaction that no marker has ended yet."""
_ISO = "yyyy-MM-dd'T'HH:mm:ss.SSSXXX"


def read(spark: SparkSession, history: History, client: Mapping[str, str], now: datetime, *, most: int = MOST_OFFSETS) -> Bounds:
    """Copy and decode all new records of the history's topic; returns the topic's offsets as they were at the start.

    ``now``: when the run began, in UTC. NothingToReadError when the topic does not exist yet, CollectionError when it cannot be read or
    existed before, IntegrityError when the history is not of this topic.
    """
    try:
        seen = bounds(spark, client, history.topic.name)
    except NothingToReadError as problem:
        if history.raw_batches():
            raise CollectionError(f"{problem}; but {history.path} holds records of it: it was deleted") from problem
        raise
    history.check_source(seen)
    while planned := history.next_batch(seen, most):
        history.land(records(spark, client, history.topic.name, planned.start, planned.end), planned, seen.log_start, now)
    history.decode(spark)
    return seen


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code (kafka_audit.errors); a failure is one line on stderr."""
    parser = argparse.ArgumentParser(prog="read_commits", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--history", required=True, help="folder of this cluster's commit history, or URL ROOT/history/CLUSTER/commits")
    parser.add_argument("--bootstrap", required=True, help="HOST:PORT, several separated by commas")
    parser.add_argument("--client", type=Path, help="connection file, or settings of Kafka's Java client")
    parser.add_argument("--most-offsets", type=int, default=MOST_OFFSETS, help="offsets read in one batch")
    parser.add_argument("--behaviour-hours", type=float, default=BEHAVIOUR_HOURS, help="length of the window that is described")
    asked = parser.parse_args(argv)
    return exit_code_of(NAME, lambda: _run(asked.history, asked.bootstrap, asked.client, asked.most_offsets, asked.behaviour_hours))


def _run(history: str, bootstrap: str, client_file: Path | None, most: int, behaviour_hours: float) -> None:
    now = datetime.now(timezone.utc)
    folder = history_folder(history)
    client = java_keys(read_keys(client_file, pipe=True) if client_file else {}, bootstrap, where=str(client_file))
    spark = spark_session(f"kafka_audit {NAME}", {**READ_COMMITS_CONF, **_jars()})
    check_transport(dict(spark.sparkContext.getConf().getAll()), client)
    bring_up_to_date(spark, folder, client, now, most=most, described=timedelta(hours=behaviour_hours))


def history_folder(place: str) -> Path:
    """The folder of a commit history; of a URL ``s3://bucket/root/history/CLUSTER/commits``, that of its copies on this machine.

    ConfigurationError when the URL names no commit history or cannot be used.
    """
    if found := re.fullmatch(r"([^/]+://.+)/history/([^/]+)/commits/?", place):
        return EvidenceRoot.at(found[1], "--history").commit_history(found[2])
    if "://" in place and not place.startswith("file:"):
        # Any other folder in the bucket would be one in which no audit looks.
        raise ConfigurationError("--history: write a folder, or the URL of a root and history/CLUSTER/commits after it")
    return root_folder(place, "--history")


def bring_up_to_date(
    spark: SparkSession, folder: Path, client: Mapping[str, str], now: datetime, *, most: int = MOST_OFFSETS, described: timedelta
) -> None:
    """Read what is new of both topics into a history, write last_run.json, and describe the time of that length until ``now`` (UTC).

    A step that fails does not keep the others from what they can do; its error comes last.
    """
    history = History(path=folder)
    transactions = History(path=folder / "transactions", topic=TRANSACTIONS)
    with history.claimed():
        seen = read(spark, history, client, now, most=most)
        behind = {p: end - seen.last_stable[p] for p, end in seen.log_end.items() if end > seen.last_stable[p]}
        window = Window(
            end=now,
            length=described,
            retention_ms=seen.retention_ms,
            partitions=len(seen.log_end),
            held_back=frozenset(behind),
        )
        unread = failure_of(NAME, lambda: _read_claimed(spark, transactions, client, now, most))
        unwritten = failure_of(NAME, lambda: _write_last_run(spark, history, transactions, behind, unread))
        undescribed = failure_of(NAME, lambda: describe(spark, history.path, window))
    if isinstance(unread, CollectionError):
        say(unread)  # the run succeeds without this topic: many accounts may not read it
        unread = None
    failures = [problem for problem in (unread, unwritten, undescribed) if problem is not None]
    for problem in failures[:-1]:
        say(problem)
    if failures:
        raise failures[-1]


def _read_claimed(spark: SparkSession, history: History, client: Mapping[str, str], now: datetime, most: int) -> None:
    with history.claimed():
        read(spark, history, client, now, most=most)


def _jars() -> dict[str, str]:
    """The connector's jars, unless spark-submit has been given them."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    return {} if submitted else {"spark.jars": ",".join(map(str, spark_connector_jars(lambda _: None)))}


def _write_last_run(
    spark: SparkSession, history: History, transactions: History, behind: Mapping[int, int], unread: AuditError | None
) -> None:
    """Write last_run.json; ``behind``: how many offsets open transactions hold back, by partition."""
    file = history.path / "last_run.json"
    if remote := remote_at(file):
        remote.bring_file(file)
    accounted = read_json(file)["accounted"] if file.is_file() else {}
    summary = _summary(history, accounted.get("batches", ""))
    of_transactions = {"not_read": str(unread)} if unread else _summary(transactions, accounted.get("transactions", ""))
    summary |= {
        "held_back": sum(behind.values()),
        "held_back_by": None if unread else holding_back(spark, transactions.path, history.topic.name, behind),
        "transactions": of_transactions,
    }
    told = {"batches": summary["batches"], "transactions": of_transactions.get("batches")}
    summary["accounted"] = {**accounted, **{name: batches[-1] for name, batches in told.items() if batches}}
    write_json(file, summary)
    if remote:
        remote.send_file(file)


def holding_back(spark: SparkSession, history: Path, topic: str, partitions: Collection[int]) -> list[dict[str, Any]] | None:
    """Transactions that were open at their newest record in ``history`` and write to ``partitions`` of ``topic``, by transactional id.

    Each has transactional_id, state, since (start, ISO 8601, or None) and the ``partitions`` in question. None where none is found and
    batches were deleted, which may have held its record.
    """
    batches = [history / "decoded" / name for name in batches_in(history / "decoded")]
    if not batches or not partitions:
        return []
    for batch in batches:
        bring(batch)
    transactions = tables_of(spark)
    with transactions.settings():
        found = _open_at_newest(transactions.read_whole(*[batch / "transactions.parquet" for batch in batches]), topic, partitions)
    return None if not found and has_deleted(history) else found


def _open_at_newest(records: DataFrame, topic: str, partitions: Collection[int]) -> list[dict[str, Any]]:
    newest = F.max_by(F.struct("append_time", "state", "start", "partitions"), "log_offset")  # the broker's clock may go back
    of_partition = records.groupBy("transactional_id", "log_partition").agg(newest.alias("newest"))
    # An id has records in two partitions only if the topic got more of them meanwhile.
    states = of_partition.groupBy("transactional_id").agg(F.max_by("newest", "newest.append_time").alias("newest"))
    states = states.select("transactional_id", "newest.*")
    written = (
        states.where(F.col("state").isin(*_OPEN_STATES)).select("*", F.explode("partitions").alias("of")).where(F.col("of.topic") == topic)
    )
    held = F.array_sort(F.array_intersect("of.partitions", F.array(*map(F.lit, partitions))))
    rows = written.select("transactional_id", "state", F.date_format("start", _ISO).alias("since"), held.alias("partitions"))
    return [row.asDict() for row in rows.where(F.size("partitions") > 0).orderBy("transactional_id").collect()]


def _summary(history: History, accounted: str) -> dict[str, Any]:
    """The batches of a topic that are in no earlier last_run.json, whose newest is ``accounted``, and how complete they are."""
    batches = [batch for batch in history.raw_batches() if batch > accounted]
    sums = [history.raw_manifest(batch)["totals"] for batch in batches]
    totals = {name: sum(each[name] for each in sums) for name in ("expected", "rows", "lost", "skipped")}
    coverage = totals["rows"] / totals["expected"] if totals["expected"] else None  # nothing new: no coverage to speak of
    return {"batches": batches, "totals": totals, "coverage": coverage}


if __name__ == "__main__":
    sys.exit(main())
