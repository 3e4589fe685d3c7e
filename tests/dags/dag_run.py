"""Runs a DAG to its end in the test's own process."""

from datetime import datetime, timezone
from typing import Any

WHEN = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


class Run:
    """One finished DAG run: task states, what tasks returned, and the error of each failed task."""

    def __init__(self, dag: Any, when: datetime = WHEN, **conf: Any) -> None:
        from airflow.listeners import hookimpl
        from airflow.sdk.listener import get_listener_manager

        errors: dict[str, BaseException] = {}

        class Listener:
            @hookimpl
            def on_task_instance_failed(self, previous_state: Any, task_instance: Any, error: Any) -> None:
                errors[task_instance.task_id] = error

        listener = Listener()
        get_listener_manager().add_listener(listener)
        try:
            run = dag.test(run_after=when, logical_date=when, run_conf=conf)
        finally:
            get_listener_manager().pm.unregister(listener)
        self.state = str(run.state)
        self.states = {instance.task_id: str(instance.state) for instance in run.get_task_instances()}
        self.errors = errors
        self._run = run
        self.gate = str(errors.get("gate", ""))

    @property
    def failed(self) -> set[str]:
        return {task for task, state in self.states.items() if state == "failed"}

    def instances(self) -> list[Any]:
        """The task instances, as Airflow stored them."""
        return list(self._run.get_task_instances())

    def returned(self, task_id: str) -> Any:
        """What the task returned."""
        return self._run.get_task_instance(task_id).xcom_pull(task_ids=task_id)
