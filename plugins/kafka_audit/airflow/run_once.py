"""Runs the audit DAG once, to its end, inside this process: ``python -m kafka_audit.airflow.run_once --conf JSON --events FD``.

No scheduler and no web server are started: Airflow's own ``dag.test`` makes the run, its task instances and their states in the
database, and runs the tasks one after the other. What happens is told as JSON lines on the file descriptor ``FD``; Airflow's
log goes to standard output and error. Started by run_dag.py.
"""

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any

from airflow.dag_processing.dagbag import DagBag
from airflow.listeners import hookimpl
from airflow.sdk.listener import get_listener_manager
from airflow.utils import db

from kafka_audit.airflow.retries import expected_error
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.outcome import ERROR, Outcome, audit_outcome
from kafka_audit.audit.request import DAG_ID, audit_id_of
from kafka_audit.shipped import shipped_folder
from kafka_audit.store.durable_files import keep_new_files_private
from kafka_audit.store.layout import EvidenceRoot

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun
    from airflow.sdk import DAG


class Events:
    """Tells what happens, one JSON object a line; also an Airflow listener, for the beginning and end of each task."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.tasks: list[str] = []
        self._began: dict[str, float] = {}
        self._interrupted = False
        self.plan_error: BaseException | str | None = None

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handles SIGINT: the running task ends, and no task after it begins.

        Airflow takes the KeyboardInterrupt for a failure of the task and goes on to the gates and the report, which would seal an audit
        that nobody let finish. So it is raised once more, outside of the task, when Airflow tells us that the task has ended.
        """
        self._interrupted = True
        raise KeyboardInterrupt

    def tell(self, event: str, **facts: object) -> None:
        """Write one event at once."""
        self._stream.write(json.dumps({"event": event, **facts}, default=str) + "\n")
        self._stream.flush()

    @hookimpl
    def on_task_instance_running(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ANN401  (Airflow's hook)
        if not self._began:
            self.tell("first task", tasks=self.tasks)
        self._began[task_instance.task_id] = time.monotonic()
        self.tell("task", name=task_instance.task_id, state="running", seconds=None)

    @hookimpl
    def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ANN401
        self._ended(task_instance.task_id, "success")

    @hookimpl
    def on_task_instance_skipped(self, previous_state: Any, task_instance: Any) -> None:  # noqa: ANN401
        self._ended(task_instance.task_id, "skipped")

    @hookimpl
    def on_task_instance_failed(
        self,
        previous_state: Any,  # noqa: ANN401
        task_instance: Any,  # noqa: ANN401
        error: BaseException | str | None,
    ) -> None:
        if task_instance.task_id == "plan":
            self.plan_error = error
        self._ended(task_instance.task_id, "failed")

    def _ended(self, task_id: str, state: str) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        seconds = time.monotonic() - self._began.get(task_id, time.monotonic())
        self.tell("task", name=task_id, state=state, seconds=round(seconds, 1))


def _prepare_database(events: Events) -> None:
    """Create or migrate Airflow's database, once for each release of Airflow."""
    done = Path(os.environ["AIRFLOW_HOME"]) / f"migrated-{version('apache-airflow')}"
    if done.exists():
        return
    began = time.monotonic()
    db.upgradedb()
    done.touch()
    events.tell("phase", name="airflow database", seconds=round(time.monotonic() - began, 1))


def _load_dag() -> "DAG":
    file = shipped_folder("dags") / f"{DAG_ID}.py"
    bag = DagBag(dag_folder=str(file))
    if DAG_ID not in bag.dags:
        raise RuntimeError(f"{file} does not define the DAG {DAG_ID}: {bag.import_errors}")
    return bag.dags[DAG_ID]


def _result(run: "DagRun", conf: Mapping[str, Any], plan_error: BaseException | str | None) -> tuple[Outcome, Path | None]:
    states = {instance.task_id: str(instance.state) for instance in run.get_task_instances()}
    if states.get("plan") != "success":
        problem = expected_error(plan_error) if isinstance(plan_error, BaseException) else None
        reason = str(problem or plan_error or "the task plan failed: the log says why")
        return Outcome(verdict=ERROR, exit_code=problem.exit_code if problem else 1, reasons=(reason,), report=None), None
    root = EvidenceRoot(path=audit_root())
    audit = root.bring_audit(conf["cluster"], audit_id_of(run.dag_id, run.run_id, run.run_after))
    result = audit_outcome(audit, root.find_snapshot(conf["cluster"], audit.run()["snapshot_id"]), states)
    if states.get("gate") != "success" and result.exit_code == 0:
        result = Outcome(verdict=ERROR, exit_code=1, reasons=("the task gate failed: its log says why",), report=result.report)
    return result, audit.path


def main() -> None:
    """Run the audit; the last event is ``end`` with the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conf", type=json.loads, required=True, help="the run's configuration: JSON, the DAG's Params")
    parser.add_argument("--events", type=int, required=True, help="file descriptor for the JSON lines")
    arguments = parser.parse_args()
    keep_new_files_private()
    with os.fdopen(arguments.events, "w", encoding="utf-8") as stream:
        # Spark must not inherit it: its reader waits until the last process has closed it.
        os.set_inheritable(stream.fileno(), False)
        events = Events(stream)
        signal.signal(signal.SIGINT, events.interrupt)
        _prepare_database(events)
        dag = _load_dag()
        events.tasks = [task.task_id for task in dag.topological_sort()]  # type: ignore[no-untyped-call]
        get_listener_manager().add_listener(events)  # type: ignore[no-untyped-call]
        run = dag.test(run_conf=arguments.conf)
        result, audit = _result(run, arguments.conf, events.plan_error)
        facts = {
            "verdict": result.verdict,
            "exit_code": result.exit_code,
            "reasons": result.reasons,
            "notices": result.notices,
            "report": result.report,
        }
        events.tell("end", state=str(run.state), audit=audit, run_id=run.run_id, **facts)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        # Python's own end takes long after a task that was interrupted, and the Spark job, which our guard ends after us, would work on.
        os._exit(128 + signal.SIGINT)
