"""What a run that reads commits reports about its batches. Needs no Kafka."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_audit.errors import CollectionError
from kafka_audit.store.durable_files import write_json
from spark_jobs import read_commits
from spark_jobs.commit_history.decode.batch import TRANSACTIONS
from spark_jobs.commit_history.history import History

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
    runs.land("00000009")
    assert runs.tell()["batches"] == ["00000009"]
    assert (runs.tell()["batches"], runs.tell()["coverage"]) == ([], None)
    runs.land("00000010", lost=40)  # and the run is killed
    runs.land("00000011")
    told = runs.tell()
    assert (told["batches"], told["totals"]["lost"]) == (["00000010", "00000011"], 40)
    assert told["accounted"] == {"batches": "00000011"}


def test_transactions_that_could_not_be_read_are_told_of_once_they_are(runs: Runs) -> None:
    runs.land("00000001", history=runs.transactions)
    runs.tell()
    runs.land("00000002", history=runs.transactions)
    told = runs.tell(CollectionError("no Read"))
    assert (told["transactions"], told["held_back_by"]) == ({"not_read": "no Read"}, None)
    assert runs.tell()["transactions"]["batches"] == ["00000002"]
    assert runs.tell()["transactions"]["batches"] == []
