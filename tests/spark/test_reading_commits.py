"""What a run that reads commits reports about its batches and about errors of Spark's stream. Needs no Kafka."""

import json
from pathlib import Path
from typing import Any

import pytest
from coordinator_records import RAW_DDL
from pyspark.sql import SparkSession

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store.durable_files import write_json
from spark_jobs import read_commits
from spark_jobs.commit_history.decode.batch import TRANSACTIONS
from spark_jobs.commit_history.history import History
from spark_jobs.commit_history.read.source import Bounds

pytestmark = pytest.mark.spark


class Runs:
    """A history whose batches are no more than their totals."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.history = spark, History(path=folder)
        self.transactions = History(path=folder / "transactions", topic=TRANSACTIONS)

    def land(self, batch: str, *, lost: int = 0, history: History | None = None) -> None:
        totals = {"expected": 100, "rows": 100 - lost, "lost": lost, "skipped": 0}
        write_json((history or self.history).path / "raw" / batch / "manifest.json", {"totals": totals})

    def tell(self, unread: CollectionError | None = None) -> dict[str, Any]:
        read_commits._write_last_run(self.spark, self.history, self.transactions, {}, unread)
        return json.loads((self.history.path / "last_run.json").read_text())


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path) -> Runs:
    return Runs(spark, tmp_path)


def test_each_batch_is_told_of_once_also_one_that_a_killed_run_landed(runs: Runs) -> None:
    runs.land("query-00000009")
    assert runs.tell()["batches"] == ["query-00000009"]
    assert (runs.tell()["batches"], runs.tell()["coverage"]) == ([], None)
    runs.land("query-00000010", lost=40)  # and the run is killed
    runs.land("query-00000011")
    told = runs.tell()
    assert (told["batches"], told["totals"]["lost"]) == (["query-00000010", "query-00000011"], 40)
    assert told["accounted"] == ["query-00000011"]


def test_a_new_checkpoints_batches_are_told_of_whatever_their_names(runs: Runs) -> None:
    runs.land("query-00000009")
    runs.tell()
    for query in ("another", "the-third"):
        runs.land(f"{query}-00000000")
        assert runs.tell()["batches"] == [f"{query}-00000000"]
    assert runs.tell()["batches"] == []


def test_transactions_that_could_not_be_read_are_told_of_once_they_are(runs: Runs) -> None:
    runs.land("a-00000000", history=runs.transactions)
    runs.tell()
    runs.land("a-00000001", history=runs.transactions)
    told = runs.tell(CollectionError("no Read"))
    assert (told["transactions"], told["held_back_by"]) == ({"not_read": "no Read"}, None)
    assert runs.tell()["transactions"]["batches"] == ["a-00000001"]
    assert runs.tell()["transactions"]["batches"] == []


def test_an_error_of_landing_comes_out_of_the_stream_as_it_is(runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tmp_path / "rows"
    runs.spark.createDataFrame([(0, 0, None, b"", b"")], RAW_DDL).write.parquet(str(rows))
    stream = runs.spark.readStream.schema(RAW_DDL).parquet(str(rows))  # its checkpoint holds no offsets of Kafka
    seen = Bounds(cluster_id="cluster", topic_id="topic", log_start={0: 0}, last_stable={0: 1}, log_end={0: 1})
    monkeypatch.setattr(read_commits, "bounds", lambda *_: seen)
    monkeypatch.setattr(read_commits, "stream", lambda *_, **__: stream)
    with pytest.raises(IntegrityError, match=r"holds no offsets of __consumer_offsets.*move the checkpoint folder away"):
        read_commits.read(runs.spark, runs.history, {})
