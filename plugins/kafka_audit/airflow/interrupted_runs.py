"""Ends runs that an interrupted Airflow left open in the audit folder's own database."""

import sqlite3
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

_OPEN = "('running', 'queued', 'scheduled', 'restarting', 'up_for_retry', 'up_for_reschedule', 'deferred')"


def end_interrupted_runs(database: Path) -> int:
    """Mark every DAG run that is still open in this SQLite database as failed, with its open tasks; returns how many there were.

    Only for a database that nobody uses at the moment. A run that was stopped with Ctrl-C had its connection in its environment;
    left open, the next scheduler on this database would go on with it without that, and hold back every new run until then.
    """
    if not database.is_file():
        return 0
    with closing(sqlite3.connect(database)) as connection, connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"dag_run", "task_instance"} <= tables:
            return 0  # interrupted while the database was being made; Airflow's own migration goes on with it
        now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
        runs = "SELECT run_id FROM dag_run WHERE state IN ('running', 'queued')"
        connection.execute(f"UPDATE task_instance SET state = 'failed', end_date = ? WHERE state IN {_OPEN} AND run_id IN ({runs})", (now,))
        ended = connection.execute("UPDATE dag_run SET state = 'failed', end_date = ? WHERE state IN ('running', 'queued')", (now,))
        return ended.rowcount
