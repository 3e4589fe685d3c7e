"""What a program asks of a running Airflow: its REST API and the plugin's pages."""

import contextlib
import json
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

DAG = "kafka_reliability_audit"


class Api:
    """Airflow's REST API and the plugin's pages, as one user."""

    def __init__(self, base: str, user: str | None, password: str | None = None) -> None:
        """``password``: the user's name, unless it is given."""
        self.base = base
        self.token = ""
        if user:
            self.token = self.call("POST", "/auth/token", {"username": user, "password": password or user})[1]["access_token"]

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, JSON or text)."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def is_ready(self) -> bool:
        """Whether the database, the scheduler and the DAG processor work."""
        with contextlib.suppress(OSError):
            status, health = self.call("GET", "/api/v2/monitor/health")
            return status == 200 and all(health[part]["status"] == "healthy" for part in ("metadatabase", "scheduler", "dag_processor"))
        return False

    def trigger(self, dag_id: str = DAG, **conf: Any) -> str:
        status, run = self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})
        assert status == 200, run
        return str(run["dag_run_id"])

    def wait_for_dag(self, dag_id: str, since: str) -> None:
        """Wait until Airflow has read the DAG's file since that time (UTC, ISO 8601)."""
        until = time.monotonic() + 300
        while not self._has_loaded(dag_id, since):
            assert time.monotonic() < until, f"{dag_id} was not loaded"
            time.sleep(1)

    def _has_loaded(self, dag_id: str, since: str) -> bool:
        """Airflow knows from its database the DAGs that it had before."""
        status, dag = self.call("GET", f"/api/v2/dags/{dag_id}")
        return status == 200 and str(dag["last_parsed_time"]) > since

    def state(self, run: str) -> str | None:
        """The state of a run (its path), None where Airflow does not say it just now."""
        try:
            status, answer = self.call("GET", run)
        except OSError:
            return None
        return str(answer["state"]) if status == 200 else None

    def wait(self, run_id: str, dag_id: str = DAG, seconds: float = 1200) -> tuple[str, dict[str, str]]:
        """The run's final state and its tasks' states."""
        run, until = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}", time.monotonic() + seconds
        while (state := self.state(run)) not in ("success", "failed"):
            assert time.monotonic() < until, f"run {run_id} did not end: {state}"
            time.sleep(1)
        _, tasks = self.call("GET", f"{run}/taskInstances")
        return str(state), {task["task_id"]: task["state"] for task in tasks["task_instances"]}

    def wait_for_task(self, run_id: str, task: str, state: str, *, tries: int = 1, seconds: float = 1200) -> None:
        """Wait until a task of a run is in that state, in that try or a later one; fails at once, and says why, when it ended otherwise."""
        path, until = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/{task}", time.monotonic() + seconds
        while True:
            status, found = self.call("GET", path)
            now, tried = (found["state"], found["try_number"]) if status == 200 else (None, 0)
            if now == state and tried >= tries:
                return
            # A task that never ran has no try; that of a try before is gone as soon as it is cleared.
            ended = now in ("skipped", "upstream_failed") or (now in ("success", "failed") and tried >= tries)
            assert not ended, f"task {task} became {now}, not {state}: {self.told(run_id)}"
            assert time.monotonic() < until, f"task {task} did not become {state}, but is {now}: {self.told(run_id)}"
            time.sleep(1)

    def told(self, run_id: str) -> str:
        """The states of a run's tasks, and the end of the logs of those that failed."""
        run = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances"
        tasks = {one["task_id"]: one for one in self.call("GET", run)[1]["task_instances"]}
        said = [", ".join(f"{name} {one['state']}" for name, one in tasks.items())]
        for name, one in tasks.items():
            if one["state"] == "failed":
                log = self.call("GET", f"{run}/{name}/logs/{max(1, one['try_number'])}?full_content=true")[1]
                said.append(f"log of {name}: {json.dumps(log, ensure_ascii=False)[-4000:]}")
        return "\n".join(said)
