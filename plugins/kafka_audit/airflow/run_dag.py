"""Runs one audit through Airflow for people who have no Airflow: the command line and the demo."""

import fcntl
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kafka_audit.airflow.environment import airflow_home, audit_environment, chosen
from kafka_audit.airflow.guard import guarded
from kafka_audit.airflow.process_group import end_marked, interruptible, stopped_at_exit
from kafka_audit.audit.outcome import ERROR, Outcome
from kafka_audit.errors import CollectionError
from kafka_audit.store.layout import check_cluster_name

MARK = "KAFKA_AUDIT_AIRFLOW"
"""The environment variable of the processes of an Airflow of ours; it holds the Airflow home."""

_TAIL_LINES = 12
DATABASE, START = "airflow database", "airflow start"
"""The steps before the first task; the first of them only in the first run of a root folder."""

WAITING, RUNNING, SUCCESS = "waiting", "running", "success"
_LOGS_KEPT = 30
_OPEN = "('running', 'queued', 'scheduled', 'restarting', 'up_for_retry', 'up_for_reschedule', 'deferred', 'awaiting_input')"


@dataclass(frozen=True, kw_only=True)
class Step:
    """A task of the run, or one of the two steps before the first task.

    ``state``: waiting, running, success, failed or skipped. ``seconds``: wall-clock seconds that it took; None until it has ended.
    """

    name: str
    state: str
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class AuditRun(Outcome):
    """How a run of Airflow's ended, where its audit and its log are, and how long it took.

    ``step_seconds``: wall-clock seconds of each task and of Airflow's own start, in the order in which they ended.
    ``total_seconds``: of the whole run.
    """

    audit: Path | None
    log: Path
    step_seconds: dict[str, float]
    total_seconds: float


def run_audit_through_airflow(
    *,
    connection: Mapping[str, Any],
    cluster: str,
    root: Path,
    policy_dir: Path | None = None,
    controls_dirs: Sequence[Path] = (),
    params: Mapping[str, Any] | None = None,
    progress: Callable[[Step], None],
) -> AuditRun:
    """Run the audit DAG to its end and return its outcome; ``progress`` gets each step at each change of its state.

    ``connection``: librdkafka-style keys. ``params``: further Params of the DAG. Airflow lives in a process group of its own
    below ``<root>/../.airflow`` and is gone when this returns or raises; Airflow's and Spark's output is kept in ``log``.
    ConfigurationError when the cluster's name, a folder or the installation cannot be used, CollectionError when another run is under way.
    """
    root = root.resolve()
    conf = {**(params or {}), "cluster": check_cluster_name(cluster)}
    environment = audit_environment(root=root, connection=connection)
    environment |= chosen(cluster=cluster, policy=policy_dir, controls=controls_dirs)
    home = airflow_home(root)
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    with only_one(home) as lock:
        log_path = _new_log(home)
        progress(Step(name=START if any(home.glob("migrated-*")) else DATABASE, state=RUNNING))
        return _run(conf, environment, home=home, lock=lock, log_path=log_path, progress=progress)


def _run(
    conf: Mapping[str, Any], environment: dict[str, str], *, home: Path, lock: int, log_path: Path, progress: Callable[[Step], None]
) -> AuditRun:
    began = time.monotonic()
    reader, writer = os.pipe()
    with log_path.open("w", encoding="utf-8") as log, os.fdopen(reader, encoding="utf-8") as events:
        command = [sys.executable, "-m", "kafka_audit.airflow.run_once", "--conf", json.dumps(conf), "--events", str(writer)]
        try:
            # A session of its own: the terminal's Ctrl-C reaches only us, and we stop Airflow and Spark as one group.
            process = interruptible(
                guarded(command, lock=lock, hand_over=[writer]),
                env=environment | mark(home),
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=[writer, lock],
            )
        finally:
            os.close(writer)
        with stopped_at_exit(process):
            seconds: dict[str, float] = {}
            end = follow(events, began, seconds, progress)
            status = process.wait()
    total = round(time.monotonic() - began, 1)
    if end is None:
        tail = "\n  ".join(log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:])
        reason = f"Airflow ended with status {status} before the audit was finished. The end of {log_path}:\n  {tail}"
        end = {"exit_code": 1, "verdict": ERROR, "reasons": [reason], "notices": [], "report": None, "audit": None}
    return AuditRun(
        exit_code=int(end["exit_code"]),
        verdict=str(end["verdict"]),
        reasons=tuple(end["reasons"]),
        notices=tuple(end["notices"]),
        report=Path(end["report"]) if end["report"] else None,
        audit=Path(end["audit"]) if end["audit"] else None,
        log=log_path,
        step_seconds=seconds,
        total_seconds=total,
    )


def follow(events: Iterable[str], began: float, seconds: dict[str, float], progress: Callable[[Step], None]) -> dict[str, Any] | None:
    """Pass events on until the process closes its end; the last event, or None when it died before telling it."""
    end = None
    for line in events:
        event: dict[str, Any] = json.loads(line)
        if event["event"] == "end":
            end = event
        elif event["event"] == "first task":
            took = round(time.monotonic() - began - seconds.get(DATABASE, 0), 1)
            _tell(Step(name=START, state=SUCCESS, seconds=took), seconds, progress)
            for name in event["tasks"]:
                progress(Step(name=name, state=WAITING))
        else:
            _tell(Step(name=event["name"], state=event.get("state", SUCCESS), seconds=event["seconds"]), seconds, progress)
            if event["name"] == DATABASE:
                progress(Step(name=START, state=RUNNING))
    return end


def _tell(step: Step, seconds: dict[str, float], progress: Callable[[Step], None]) -> None:
    if step.seconds is not None:
        seconds[step.name] = step.seconds
    progress(step)


def mark(home: Path) -> dict[str, str]:
    """Environment variables by which the processes of this home's Airflow are known again."""
    # Airflow renames its processes in `ps`, which overwrites the environment that the system shows of them unless this is set.
    return {MARK: str(home), "SPT_NOENV": "1"}


@contextmanager
def only_one(home: Path) -> Iterator[int]:
    """Hold the home's lock; CollectionError when another run has it (SQLite and the chain of audits allow one at a time).

    Yields the lock's file descriptor, for the guard of what is started: after we were killed it holds the lock until nothing of that lives.
    Whoever gets the lock knows that neither we nor a guard is there: what is left of an Airflow whose guard was killed, too, is ended,
    and only then the runs that it left open are marked as failed.
    """
    with (home / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            raise CollectionError(
                f"another audit, or Airflow's UI, is running in {home}: wait for it, stop it or use another --root"
            ) from problem
        end_marked(MARK, str(home))
        end_interrupted_runs(home / "airflow.db")
        yield lock.fileno()


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


def _new_log(home: Path) -> Path:
    folder = home / "runs"
    folder.mkdir(exist_ok=True)
    for old in sorted(folder.glob("*.log"))[: -_LOGS_KEPT + 1]:
        old.unlink()
    return folder / f"{datetime.now(timezone.utc).strftime('%Y%m%dT%H%M%S.%f')}.log"
