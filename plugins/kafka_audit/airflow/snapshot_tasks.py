"""The tasks that read a cluster: one, or several that share it out and one that joins what they read."""

from typing import TYPE_CHECKING, Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowSkipException

from kafka_audit.airflow.retries import final_errors, while_unreachable
from kafka_audit.airflow.step import audit_step, checked_plan
from kafka_audit.audit.installation import snapshot_shards
from kafka_audit.audit.request import AuditPlan
from kafka_audit.collect.part import Part
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.mirrors import where

if TYPE_CHECKING:
    from kafka_audit.airflow.reading import ClusterReading


def read_cluster(planned: Any) -> Any:  # noqa: ANN401  (what a task returns, before it runs)
    """The task ``snapshot``. With ``KAFKA_AUDIT_SHARDS`` it joins what the mapped tasks ``read_groups`` and then ``read_topics`` read."""
    shards = snapshot_shards()
    if shards == 1:
        return snapshot(planned)
    # As many at once as there are shares, although other tasks that read a cluster may be limited to one (limits.py).
    one = read_part.override(max_active_tis_per_dag=shards)
    of_groups, of_topics = (
        one.override(task_id=name).partial(plan=planned, shards=shards, groups=groups).expand(index=list(range(shards)))
        for name, groups in (("read_groups", True), ("read_topics", False))
    )
    joined = join_snapshot(planned, shards)
    of_groups >> of_topics >> joined
    return joined


@task(**while_unreachable(), multiple_outputs=False)
def snapshot(plan: dict[str, Any]) -> dict[str, Any]:
    """Read the cluster into a sealed snapshot. A snapshot that is already there is verified and kept: evidence never changes."""
    made = checked_plan(plan)
    with audit_step(made, "snapshot"):
        _reading(made).whole()
        return _counted(made)


@task(**while_unreachable(), multiple_outputs=False)
def read_part(plan: dict[str, Any], shards: int, groups: bool, index: int) -> str:
    """Read the share ``index`` of the cluster's groups, or of its topics, to where all tasks of the run find it; returns its name."""
    made = checked_plan(plan)
    part = Part(groups=groups, topics=not groups, index=index, count=shards)
    with final_errors():
        _reading(made).part(part)
    return part.name


@task(task_id="snapshot", trigger_rule="all_done", multiple_outputs=False)
def join_snapshot(plan: dict[str, Any] | None, shards: int) -> dict[str, Any]:
    """Join what the tasks before read into one sealed snapshot. It fails if a part is missing, and says why that was not read."""
    if plan is None:
        raise AirflowSkipException("there is no plan, so nothing was read; the task plan says why")
    made = checked_plan(plan)
    with audit_step(made, "snapshot"):
        _reading(made).join(shards)
        return _counted(made)


def _reading(made: AuditPlan) -> "ClusterReading":
    from kafka_audit.airflow.reading import ClusterReading  # noqa: PLC0415 - kafka-python and pyarrow: not at DAG parse

    return ClusterReading(plan=made)


def _counted(made: AuditPlan) -> dict[str, Any]:
    """The verified snapshot, its rows by dataset, and its errors."""
    manifest = Snapshot.verified(made.snapshot_dir).manifest
    rows = {name.removesuffix(".parquet"): entry.get("rows") for name, entry in manifest["files"].items()}
    return {"snapshot": where(made.snapshot_dir), "rows": rows, "errors": manifest.get("errors", {})}
