"""How many runs of the audit DAG there may be at once, and how long one may take: without reviews, and with them."""

from datetime import timedelta
from typing import Any

from kafka_audit.audit.review_settings import ReviewSettings

_AUDIT = timedelta(hours=2)
_TASKS = {"owner": "kafka-audit", "retries": 0, "execution_timeout": timedelta(minutes=45)}


def run_limits(review: ReviewSettings | None) -> dict[str, Any]:
    """The arguments of the audit DAG for its limits; ``review`` is None when failed audits are not reviewed.

    Without reviews there is one audit at a time, and it takes at most two hours. A review that waits must neither hold back the next audit
    nor be ended by the timeout of the run. So there may be one run for each hour of waiting and one more, which is enough for hourly audits
    of which nobody answers any. Each task then runs in one run at a time: two audits of a cluster never read it, or use Spark, side by
    side. Where they overlap, the lock of the chain gives each its place (kafka_audit.store.chain).
    """
    if review is None:
        return {"max_active_runs": 1, "dagrun_timeout": _AUDIT, "default_args": _TASKS}
    return {
        "max_active_runs": review.hours + 1,
        "dagrun_timeout": timedelta(hours=review.hours) + 2 * _AUDIT,  # an audit, and waiting for the one before it
        "default_args": {**_TASKS, "max_active_tis_per_dag": 1},
    }
