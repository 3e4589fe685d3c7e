"""An audit by the command runs without Airflow's services; refused or interrupted, it leaves no process and no result."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from airflow_processes import left_of, processes_of
from command_line import AirflowDatabase

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.airflow.run_dag import only_one, run_audit_through_airflow
from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.lifecycle import Sandbox

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark]


def test_a_mistyped_key_of_the_connection_ends_the_audit_and_is_named(tmp_path: Path, airflow_database: AirflowDatabase) -> None:
    airflow_database.give(tmp_path / "audit-root")
    wrong = run_audit_through_airflow(
        connection={"bootstrap.servers": "127.0.0.1:1", "bootstrap.severs": "x"},
        cluster="nowhere",
        root=tmp_path / "audit-root",
        progress=lambda line: None,
    )
    assert wrong.exit_code == 2
    assert "bootstrap.severs" in " ".join(wrong.reasons)
    assert processes_of(airflow_home(tmp_path / "audit-root")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_audit_leaves_no_process_behind(
    tmp_path: Path, healthy_cluster: Sandbox, airflow_database: AirflowDatabase, number: signal.Signals
) -> None:
    airflow_database.give(tmp_path / "audit-root")
    script = f"""
from pathlib import Path
from kafka_audit.airflow.run_dag import run_audit_through_airflow
run_audit_through_airflow(connection={{"bootstrap.servers": {healthy_cluster.bootstrap!r}}}, cluster="kafka", root=Path({str(tmp_path / "audit-root")!r}),
    progress=lambda step: step.seconds is not None and print(step.name, flush=True))
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("evidence_gate"):
            break
    home = airflow_home(tmp_path / "audit-root")
    until = time.monotonic() + 300
    while not any("spark-submit" in command or "SparkSubmit" in command for command in processes_of(home)):
        assert time.monotonic() < until, "no Spark job was started"
        time.sleep(0.2)
    child.send_signal(number)
    assert child.wait(timeout=600) != 0
    # Whoever is killed cannot wait; and until all of it is gone, its run is nobody's to end.
    if number == signal.SIGKILL and processes_of(home):
        with contextlib.suppress(CollectionError), only_one(home):
            assert processes_of(home) == []
    assert left_of(home, 60 if number == signal.SIGKILL else 0) == []
    with only_one(home), contextlib.closing(sqlite3.connect(home / "airflow.db")) as database:
        assert database.execute("SELECT state FROM dag_run").fetchall() == [("failed",)]
    assert not list((tmp_path / "audit-root").glob("audits/*/*/manifest.json"))
