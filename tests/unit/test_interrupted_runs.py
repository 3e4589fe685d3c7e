"""Runs that Ctrl-C leaves open in Airflow's database are ended before the next run."""

import sqlite3
from pathlib import Path

from kafka_audit.airflow.run_dag import end_interrupted_runs


def states(database: Path, table: str) -> dict[str, str]:
    with sqlite3.connect(database) as connection:
        return dict(
            connection.execute(
                f"SELECT run_id || coalesce(task_id, ''), state FROM {table}"
                if table == "task_instance"
                else "SELECT run_id, state FROM dag_run"
            )
        )


def test_open_runs_and_their_open_tasks_fail_and_finished_ones_stay(tmp_path: Path) -> None:
    database = tmp_path / "airflow.db"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE dag_run (run_id TEXT, state TEXT, end_date TEXT)")
        connection.execute("CREATE TABLE task_instance (run_id TEXT, task_id TEXT, state TEXT, end_date TEXT)")
        connection.executemany("INSERT INTO dag_run VALUES (?, ?, NULL)", [("cut", "running"), ("waiting", "queued"), ("done", "success")])
        tasks = [("cut", "plan", "success"), ("cut", "snapshot", "running"), ("cut", "gate", None), ("done", "plan", "success")]
        connection.executemany("INSERT INTO task_instance VALUES (?, ?, ?, NULL)", tasks)
    assert end_interrupted_runs(database) == 2
    assert states(database, "dag_run") == {"cut": "failed", "waiting": "failed", "done": "success"}
    assert states(database, "task_instance") == {"cutplan": "success", "cutsnapshot": "failed", "cutgate": None, "doneplan": "success"}
    assert end_interrupted_runs(database) == 0


def test_no_database_and_a_half_made_one_are_left_to_airflow(tmp_path: Path) -> None:
    assert end_interrupted_runs(tmp_path / "airflow.db") == 0
    sqlite3.connect(tmp_path / "new.db").close()
    assert end_interrupted_runs(tmp_path / "new.db") == 0
