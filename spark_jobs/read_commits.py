"""Reads what is new in ``__consumer_offsets`` and ``__transaction_state``, keeps it as it came, and decodes it.

Killed at any point, it goes on where it was.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kafka_audit.cluster.connection_file import read_keys
from kafka_audit.durable_files import write_json
from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.jars import spark_connector_jars
from spark_jobs.exit_code import exit_code_of, failure_of, say
from spark_jobs.offsets_topic.behaviour import Window, describe
from spark_jobs.offsets_topic.history import History
from spark_jobs.offsets_topic.source import Bounds, bounds, stream
from spark_jobs.offsets_topic.topic import TRANSACTIONS
from spark_jobs.offsets_topic.transactions import holding_back
from spark_jobs.session import spark_session
from spark_jobs.submit import READ_COMMITS_CONF

NAME = "read_commits"

BEHAVIOUR_HOURS = 24.0

MOST_OFFSETS = 5_000_000
"""Offsets of one batch: what a kill can cost to read again, and what bounds the disk that a half-written batch takes."""


def read(spark: SparkSession, history: History, client: Mapping[str, str], *, most: int = MOST_OFFSETS) -> Bounds:
    """Bring ``history`` up to date; returns the topic's bounds as they were at the start.

    CollectionError when the topic cannot be read, IntegrityError when the history is not of this topic.
    """
    seen = bounds(spark, client, history.topic.name)
    history.check_source(seen)

    def land(rows: DataFrame, number: int) -> None:
        history.land(rows, number, seen.log_start)

    query = (
        stream(spark, client, history.topic.name, history.next_offsets(seen), most=most)
        .writeStream.foreachBatch(land)
        .option("checkpointLocation", str(history.checkpoint.path))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    for batch in history.raw_batches():
        history.decode(spark, batch)
    return seen


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code (kafka_audit.errors); a failure is one line on stderr."""
    parser = argparse.ArgumentParser(prog="read_commits", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--history", type=Path, required=True, help="folder of this cluster's commit history")
    parser.add_argument("--bootstrap", required=True, help="HOST:PORT, several separated by commas")
    parser.add_argument("--client", type=Path, help="file with further settings of Kafka's Java client, as for security")
    parser.add_argument("--most-offsets", type=int, default=MOST_OFFSETS, help="offsets read in one batch")
    parser.add_argument("--behaviour-hours", type=float, default=BEHAVIOUR_HOURS, help="length of the window that is described")
    asked = parser.parse_args(argv)
    return exit_code_of(NAME, lambda: _run(asked.history, asked.bootstrap, asked.client, asked.most_offsets, asked.behaviour_hours))


def _run(folder: Path, bootstrap: str, client_file: Path | None, most: int, behaviour_hours: float) -> None:
    now = datetime.now(timezone.utc)
    further = {name: str(value) for name, value in read_keys(client_file).items()} if client_file else {}
    client = {**further, "bootstrap.servers": bootstrap}
    spark = spark_session(f"kafka_audit {NAME}", {**READ_COMMITS_CONF, **_jars()})
    history = History(path=folder)
    transactions = History(path=folder / "transactions", topic=TRANSACTIONS)
    with history.claimed():
        before = {*history.raw_batches(), *transactions.raw_batches()}
        seen = read(spark, history, client, most=most)
        length = timedelta(hours=behaviour_hours)
        window = Window(end=now, length=length, retention_ms=seen.retention_ms, partitions=len(seen.log_end))
        describe(spark, history.path, window)
        unread = failure_of(NAME, lambda: _read_claimed(spark, transactions, client, most))
        told = {
            **_summary(history, before),
            **_held_back(spark, history, seen, None if unread else transactions),
            "transactions": {"not_read": str(unread)} if unread else _summary(transactions, before),
        }
        write_json(history.path / "last_run.json", told)
    if isinstance(unread, CollectionError):
        say(unread)  # without this topic the run is a success: not everyone may read it
    elif unread is not None:
        raise unread


def _read_claimed(spark: SparkSession, history: History, client: Mapping[str, str], most: int) -> None:
    with history.claimed():
        read(spark, history, client, most=most)


def _jars() -> dict[str, str]:
    """The connector's jars, unless spark-submit has been given them."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    return {} if submitted else {"spark.jars": ",".join(map(str, spark_connector_jars(lambda _: None)))}


def _held_back(spark: SparkSession, history: History, seen: Bounds, transactions: History | None) -> dict[str, Any]:
    """How many offsets open transactions hold back, and which transactions these are: None when that is not known."""
    behind = {partition: end - seen.last_stable[partition] for partition, end in seen.log_end.items()}
    held = sorted(partition for partition, count in behind.items() if count > 0)
    by = holding_back(spark, transactions.path, history.topic.name, held) if transactions else None
    return {"held_back": sum(behind[partition] for partition in held), "held_back_by": by}


def _summary(history: History, before: set[str]) -> dict[str, Any]:
    """The batches of a topic that are new, and how complete they are."""
    batches = [batch for batch in history.raw_batches() if batch not in before]
    sums = [history.raw_manifest(batch)["totals"] for batch in batches]
    totals = {name: sum(each[name] for each in sums) for name in ("expected", "rows", "lost", "skipped")}
    coverage = totals["rows"] / totals["expected"] if totals["expected"] else None  # nothing new: no coverage to speak of
    return {"batches": batches, "totals": totals, "coverage": coverage}


if __name__ == "__main__":
    sys.exit(main())
