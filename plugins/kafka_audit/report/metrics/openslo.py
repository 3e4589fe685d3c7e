"""Writes the lag SLAs as OpenSLO v1 documents: https://github.com/OpenSLO/OpenSLO."""

from collections.abc import Sequence
from typing import Any

import yaml

from kafka_audit.policy.slas import LagSla
from kafka_audit.report.metrics.slos import BURN_RATES, FRESH_MINUTES, BurnRate, Slo, comments, fresh, slos_of
from kafka_audit.safe_text import visible

_SERVICE, _SOURCE, _TARGET = "kafka-consumer-groups", "kafka-audit-prometheus", "kafka-audit-on-call"
_ABOUT = (
    "OpenSLO v1, written by `kafka-audit slas export --format openslo` from slas.yaml. Do not edit: write it again.",
    f"Set the url of the DataSource {_SOURCE}, and whom {_TARGET} notifies.",
    "An SLO here is over all groups of its SLA together; the rules of `--format prometheus` judge each group by itself.",
)
_DESCRIPTION_LENGTH = 1050


def render(slas: Sequence[LagSla], minutes: int = FRESH_MINUTES) -> str:
    """The documents as one stream of YAML; comments say which SLAs have none.

    ``minutes``: offsets older than this count as not known. ConfigurationError as :func:`kafka_audit.report.metrics.slos.slos_of`.
    """
    slos, notes = slos_of(slas)
    notes += [f"SLA {slo.sla} has a target of 100 %, which OpenSLO does not allow, so it is no SLO here" for slo in slos if slo.budget <= 0]
    kept = [slo for slo in slos if slo.budget > 0]
    used = [one for one in BURN_RATES if any(one in slo.alerts for slo in kept)]
    documents = [
        _document("DataSource", _SOURCE, {"type": "Prometheus", "connectionDetails": {"url": "http://localhost:9090"}}),
        _document("Service", _SERVICE, {"description": "Consumer groups of Kafka, by the lag SLAs of kafka-audit's policy."}),
        *([_document("AlertNotificationTarget", _TARGET, {"target": "page", "description": "Whoever is on call."})] if used else []),
        *(made for one in used for made in _alert(one)),
        *(made for slo in kept for made in _objective(slo, minutes)),
    ]
    text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=False, width=10_000, explicit_start=True)
    return f"{comments([*_ABOUT, *notes])}{text}"


def _document(kind: str, name: str, spec: dict[str, Any], title: str | None = None) -> dict[str, Any]:
    titled = {} if title is None else {"displayName": title}
    return {"apiVersion": "openslo/v1", "kind": kind, "metadata": {"name": name, **titled}, "spec": spec}


def _alert(rate: BurnRate) -> list[dict[str, Any]]:
    """OpenSLO's condition has one window: the short one is how long it must hold."""
    name = _alert_name(rate)
    condition = {"kind": "burnrate", "op": "gt", "threshold": rate.factor, "lookbackWindow": rate.long, "alertAfter": rate.short}
    policy = {
        **{"alertWhenNoData": False, "alertWhenResolved": True, "alertWhenBreaching": True},
        "conditions": [{"conditionRef": name}],
        "notificationTargets": [{"targetRef": _TARGET}],
    }
    return [
        _document("AlertCondition", name, {"severity": rate.severity, "condition": condition}),
        _document("AlertPolicy", name, policy),
    ]


def _alert_name(rate: BurnRate) -> str:
    return f"burn-{rate.factor:g}x-over-{rate.long}".replace(".", "-")


def _objective(slo: Slo, minutes: int) -> list[dict[str, Any]]:
    samples = fresh(slo, minutes)
    ratio = {"counter": False, "good": _metric(f"sum({samples})"), "total": _metric(f"count({samples})")}
    about = f"Share of the samples of group lag within the limits of SLA {visible(slo.sla)}."[:_DESCRIPTION_LENGTH]
    objective = {
        "description": about,
        "service": _SERVICE,
        "indicatorRef": slo.id,
        "timeWindow": [{"duration": f"{slo.window_days}d", "isRolling": True}],
        "budgetingMethod": "Occurrences",
        "objectives": [{"displayName": f"{slo.target_percent:g} % within the limits", "target": slo.target}],
        "alertPolicies": [_alert_name(one) for one in slo.alerts],
    }
    title = visible(slo.sla)
    return [
        _document("SLI", slo.id, {"description": about, "ratioMetric": ratio}, title),
        _document("SLO", slo.id, objective, title),
    ]


def _metric(query: str) -> dict[str, Any]:
    return {"metricSource": {"metricSourceRef": _SOURCE, "type": "Prometheus", "spec": {"query": query}}}
