"""Airflow and its UI end with the command that started them, also if that command is killed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import AirflowDatabase
from test_airflow import free_port, left_of, processes_of

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.airflow.run_dag import only_one

pytestmark = pytest.mark.airflow


def test_a_killed_airflow_with_its_ui_leaves_no_process_behind_and_the_next_one_may_start(
    tmp_path: Path, airflow_database: AirflowDatabase
) -> None:
    root = tmp_path / "audit-root"
    airflow_database.give(root)
    command = [sys.executable, "-m", "kafka_audit.airflow.standalone", "--root", str(root), "--port", str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    home, until = airflow_home(root), time.monotonic() + 300
    while not all(any(name in line for line in processes_of(home)) for name in ("scheduler", "triggerer", "dag-processor", "api")):
        assert time.monotonic() < until, processes_of(home)
        time.sleep(0.2)
    process.kill()
    process.wait()
    assert left_of(home, 60) == []
    with only_one(home):
        pass
