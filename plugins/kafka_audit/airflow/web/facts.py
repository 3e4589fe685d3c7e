"""What the templates of the pages over clusters are filled with, made from what is known of the clusters; needs no Airflow."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from kafka_audit.airflow.web.availability_chart import availability_chart
from kafka_audit.airflow.web.matrix import matrix
from kafka_audit.airflow.web.newest import Cluster
from kafka_audit.airflow.web.past_audits import PastAudits
from kafka_audit.airflow.web.unsealed import RunStates, of_unsealed
from kafka_audit.airflow.web.waiver_lists import expiring_of, waiver_lists
from kafka_audit.audit.installation import stale_after
from kafka_audit.index.overview import ControlLine
from kafka_audit.report.fleet.states import STATES
from kafka_audit.report.tally import SEVERITIES, rank
from kafka_audit.report.trend_charts import coverage_chart, failures_chart

Facts = Mapping[str, Any]
_FAILING = frozenset({"fail", "fail_waived", "error"})


def of_clusters(known: Sequence[Cluster], states: RunStates, order: str = "") -> Facts:
    """For clusters.html.j2: the worst first, or by name if ``order`` is "name"."""
    listed = sorted(known, key=lambda one: (0, False, one.name) if order == "name" else one.order)
    begun = {one.name: of_unsealed(one.unsealed, states) for one in listed if one.unsealed}
    return {"clusters": listed, "begun": begun, "order": order, "limit": stale_after(), "severities": SEVERITIES}


def of_cluster(known: Cluster, states: RunStates, audit_now: str | None) -> Facts:
    """For cluster.html.j2.

    ``states``: those of its runs that Airflow has; only these get a link. ``audit_now``: the address at which the reader starts an audit,
    None if the reader may not.
    """
    trend = known.overview.trend if known.overview else ()
    return {
        "cluster": known,
        "begun": of_unsealed(known.unsealed, states) if known.unsealed else "",
        "runs": states,
        "audit_now": audit_now,
        "charts": [chart for chart in (failures_chart(trend), coverage_chart(trend), availability_chart(trend)) if chart] if trend else [],
        "expiring": expiring_of(known),
        "failing": failing(known),
        "foreseen": lambda milliseconds: _foreseen(known.audited_at, milliseconds),
        "severities": SEVERITIES,
        "states": {state.id: state for state in STATES},
    }


def failing(known: Cluster) -> list[ControlLine]:
    """The controls that fail, waived ones included, or whose rule raised an error: by the severity of the worst failure, then by code."""
    listed = [one for one in known.overview.controls if one.standing in _FAILING] if known.overview else []
    return sorted(listed, key=lambda one: (rank(one.worst or one.severity), one.code))


def _foreseen(at: datetime | None, milliseconds: int) -> datetime | None:
    """When a loss is foreseen, counted from the evidence; None beyond the calendar."""
    try:
        return at + timedelta(milliseconds=milliseconds) if at else None
    except OverflowError:
        return None


def of_audits(known: Cluster, shown: PastAudits, states: RunStates, before: str = "") -> Facts:
    """For cluster_audits.html.j2; ``states``: those of the audits' runs that Airflow has; only these get a link."""
    begun = {one.found.audit_id: of_unsealed(one.found, states) for one in shown.unsealed}
    return {"cluster": known, "shown": shown, "before": before, "begun": begun, "runs": states, "severities": SEVERITIES}


def of_waivers(known: Sequence[Cluster], now: datetime, asked: str = "") -> Facts:
    """For waivers.html.j2."""
    cut = [one for one in known if one.overview and one.overview.waiver_count > len(one.overview.waivers)]
    return {"lists": waiver_lists(known, now, asked), "asked": asked, "clusters": known, "cut": cut}


def of_matrix(known: Sequence[Cluster], severity: str = "", standing: str = "") -> Facts:
    """For matrix.html.j2; a severity or a standing that there is not filters nothing."""
    severity = severity if severity in SEVERITIES else ""
    standing = standing if standing in {state.id for state in STATES} else ""
    rows = matrix(known, severity=severity, standing=standing)
    return {"clusters": known, "rows": rows, "severities": SEVERITIES, "states": STATES, "severity": severity, "standing": standing}
