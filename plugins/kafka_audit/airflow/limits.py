"""What each DAG's tasks have in common, and how many runs of the audit DAG there may be at once and how long one may take."""

import os
from datetime import timedelta
from typing import Any

from kafka_audit.airflow.retries import once_more_if_lost
from kafka_audit.audit.clusters import DagCluster
from kafka_audit.audit.installation import POOL_VARIABLE
from kafka_audit.audit.review_settings import ReviewSettings

_AUDIT = timedelta(hours=2)


def task_defaults(one: DagCluster, *, minutes: int = 45) -> dict[str, Any]:
    """The default arguments of the tasks of a DAG that is not held back: its owners, another try if it is lost, ``minutes`` at most."""
    return {"owner": ", ".join(one.owners), **once_more_if_lost(), "execution_timeout": timedelta(minutes=minutes)}


def pooled_defaults(one: DagCluster) -> dict[str, Any]:
    """The default arguments of tasks that run Spark or lead to it: in the pool ``KAFKA_AUDIT_POOL``, if that is set.

    Airflow starts no task whose pool does not exist, and tells only its scheduler's log: so there is no pool unless somebody names one that
    they have made. Where tasks wait for a slot, those later in their run come first: else all snapshots would be taken before any of them
    is judged, and be too old by then.
    """
    pool = (os.environ.get(POOL_VARIABLE) or "").strip()
    return {**task_defaults(one), **({"pool": pool, "weight_rule": "upstream"} if pool else {})}


def run_limits(one: DagCluster, review: ReviewSettings | None) -> dict[str, Any]:
    """The arguments of the audit DAG for its limits; ``review`` is None when failed audits are not reviewed.

    Without reviews there is one audit at a time, and it takes at most two hours. A review that waits must neither hold back the next audit
    nor be ended by the timeout of the run. So there may be one run for each hour of waiting and one more, which is enough for hourly audits
    of which nobody answers any. Each task then runs in one run at a time: two audits of a cluster never read it, or use Spark, side by
    side. Where they overlap, the lock of the chain gives each its place (kafka_audit.store.chain).
    """
    if review is None:
        return {"max_active_runs": 1, "dagrun_timeout": _AUDIT, "default_args": pooled_defaults(one)}
    return {
        "max_active_runs": review.hours + 1,
        "dagrun_timeout": timedelta(hours=review.hours) + 2 * _AUDIT,  # an audit, and waiting for the one before it
        "default_args": {**pooled_defaults(one), "max_active_tis_per_dag": 1},
    }
