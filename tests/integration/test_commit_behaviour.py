"""Real consumers, the job that reads their commits, and the recorder meet; what is inferred from times is tested on recorded commits."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commit_clients import PARTITIONS, Clients, record
from commit_history_job import run

from kafka_audit.sandbox.lifecycle import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

WANTED = {"java-1s": 2, "java-kip848-5s": 1, "librdkafka-5s": 1, "per-record": 2}


@pytest.fixture(scope="module")
def history(coordinators: Sandbox, job_process: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with ExitStack() as stack:
        Clients(coordinators.bootstrap, stack, WANTED).wait_for_commits(WANTED)
    folder = tmp_path_factory.mktemp("history")
    run(coordinators.bootstrap, folder)
    return folder


@pytest.fixture(scope="module")
def groups(history: Path) -> dict[str, dict[str, Any]]:
    (table,) = history.glob("behaviour/*/groups.parquet")
    return {row["group_id"]: row for row in pq.read_table(table).to_pylist()}


def test_members_and_timeouts_are_those_the_clients_joined_with(groups: dict[str, dict[str, Any]]) -> None:
    assert (groups["java-1s"]["group_type"], groups["java-1s"]["assignor"]) == ("classic", "range")
    assert groups["java-kip848-5s"]["group_type"] == "consumer"
    assert (groups["per-record"]["session_timeout_ms"], groups["per-record"]["rebalance_timeout_ms"]) == (45_000, 300_000)
    assert groups["per-record"]["generations"] >= 1


def test_the_window_knows_how_long_the_brokers_keep_offsets(history: Path) -> None:
    (manifest,) = history.glob("behaviour/*/manifest.json")
    assert json.loads(manifest.read_text())["offsets_retention_ms"] == 14 * 86_400_000  # as the sandbox sets it


def test_a_recording_holds_every_record_that_was_read(history: Path, tmp_path: Path) -> None:
    record(history, tmp_path / "recorded.parquet")
    (manifest,) = history.glob("raw/[!.]*/manifest.json")
    recorded = pq.read_table(tmp_path / "recorded.parquet")
    assert recorded.num_rows == json.loads(manifest.read_text())["totals"]["rows"]
    assert sum(b"java-1s" in (key or b"") for key in recorded["key"].to_pylist()) >= PARTITIONS * WANTED["java-1s"]
