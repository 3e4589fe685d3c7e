"""A gate for DAGs of other teams: it stops them unless the newest audit of the cluster that they use is good enough.

It needs the asset's events only: no audit folder, no Kafka, no connection.
"""

import logging
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kafka_audit.airflow.assets import audit_asset
from kafka_audit.audit.published import AT_LEAST, READ_EVENTS, Event, Newest, newest_audit, why_stopped
from kafka_audit.errors import ConfigurationError
from kafka_audit.store.layout import check_cluster_name

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

DEFAULT_MAX_AGE = timedelta(hours=26)
"""A daily audit may be two hours late."""
_ON_STOP = {"fail": AirflowFailException, "skip": AirflowSkipException}

log = logging.getLogger(__name__)


class RequireAudit(BaseOperator):
    """Succeeds when the newest audit of ``cluster`` is good enough; else it fails, without a retry, or is skipped."""

    def __init__(
        self,
        *,
        cluster: str,
        at_least: str = "passed",
        max_age: timedelta = DEFAULT_MAX_AGE,
        on_stop: str = "fail",
        **kwargs: Any,  # noqa: ANN401  (the operator's own)
    ) -> None:
        check_cluster_name(cluster)
        if at_least not in AT_LEAST:
            raise ConfigurationError(f"require_audit: at_least: {at_least!r} is not a level: write one of {', '.join(AT_LEAST)}")
        if on_stop not in _ON_STOP:
            raise ConfigurationError(f"require_audit: on_stop: {on_stop!r} is not usable: write one of {', '.join(_ON_STOP)}")
        if max_age <= timedelta():
            raise ConfigurationError(f"require_audit: max_age: {max_age} lets no audit through: write a positive timedelta")
        super().__init__(**kwargs)
        self.cluster = cluster
        self.at_least = at_least
        self.max_age = max_age
        self.on_stop = on_stop
        self.inlets = [*self.inlets, audit_asset(cluster)]

    def execute(self, context: "Context") -> dict[str, Any]:
        """Return what the audit says; AirflowFailException or AirflowSkipException with which audit, why, and where to look."""
        newest_first = context["inlet_events"][audit_asset(self.cluster)].ascending(ascending=False).limit(READ_EVENTS)
        events = [
            Event(extra=one.extra, dag_id=one.source_dag_id, task_id=one.source_task_id, run_id=one.source_run_id) for one in newest_first
        ]
        newest = newest_audit(events, self.cluster)
        for why in newest.passed_over:
            log.warning("does not count: %s", why)
        reason = why_stopped(newest, at_least=self.at_least, max_age=self.max_age, now=datetime.now(timezone.utc))
        if reason is not None or newest.verdict is None:
            raise _ON_STOP[self.on_stop](_stopped(self.cluster, self.at_least, newest, str(reason)))
        found = newest.verdict
        log.info("audit %s of %s ended %s; the cluster was read at %s", found.audit_id, found.cluster, found.verdict, found.evidence_at)
        return found.model_dump(mode="json")


def require_audit(
    cluster: str,
    *,
    at_least: Literal["passed", "incomplete", "judged"] = "passed",
    max_age: timedelta = DEFAULT_MAX_AGE,
    on_stop: Literal["fail", "skip"] = "fail",
    task_id: str | None = None,
    **kwargs: Any,  # noqa: ANN401  (the operator's own)
) -> RequireAudit:
    """A task that lets a DAG go on only if the newest audit of the cluster is good enough: ``require_audit("orders") >> my_task``.

    ``cluster``: its name in the audit installation. ``at_least``: ``passed``, ``incomplete`` (enough may not have been assessed) or
    ``judged`` (any verdict on fit evidence). A void, broken or missing audit never is good enough, nor is one whose evidence is older
    than ``max_age`` or from the future, or that a run with other parameters made (a part of the topics, another policy, a looser limit).
    ``on_stop``: ``fail`` this task, or ``skip`` it; tasks after it follow by their trigger rules. ``task_id``: else
    ``require_audit_<cluster>``. Other arguments are those of any operator. ConfigurationError at load when an argument is not usable.
    """
    name = task_id or f"require_audit_{cluster}"
    return RequireAudit(task_id=name, cluster=cluster, at_least=at_least, max_age=max_age, on_stop=on_stop, **kwargs)


def _stopped(cluster: str, at_least: str, newest: Newest, reason: str) -> str:
    """Which audit, why it does not do, and where to look."""
    asset = audit_asset(cluster).uri
    found = newest.verdict
    if found is None:
        said = [f"This task asks for an audit of the cluster {cluster} that is at least {at_least}: {reason} on the asset {asset}."]
        said += [f"- {one}" for one in newest.passed_over[:5]]
        return "\n".join([*said, f"Run the audit DAG of {cluster}, and see its tasks publish and gate."])
    page = f"/dags/{quote(newest.dag_id, safe='')}/runs/{quote(newest.run_id, safe='')}/plugin/audit-report"
    said = [f"The newest audit of the cluster {cluster} ({found.audit_id}) is not at least {at_least} and recent: {reason}."]
    said += [f"- {one}" for one in found.reasons]
    return "\n".join([*said, f"Its report is the tab Audit report of its run, {page}, for people who may read it."])
