"""Writes rules for Prometheus: burn rates of the lag SLAs' error budgets over several windows, and alerts on missing evidence."""

from collections.abc import Sequence
from typing import Any

import yaml

from kafka_audit.policy.slas import LagSla
from kafka_audit.report.metrics.definitions import OFFSETS_TIME, SLAS_LEFT_OUT, UP
from kafka_audit.report.metrics.slos import BURN_RATES, FRESH_MINUTES, BurnRate, Slo, comments, fresh, slos_of

FRESH = "kafka_audit:sla_within_limits:fresh"
ERRORS = "kafka_audit:sla_errors:ratio_avg"
"""The share of the samples outside of the limits; the name ends with the window."""
BUDGET_LEFT = "kafka_audit:sla_error_budget_left:ratio"
_LOOKS = 60
"""How many moments of a long window are looked at: one in as many minutes as it has hours, whatever Prometheus' own interval is."""
_LEAST_KNOWN = 0.5
"""The share of a long window, less quiet hours, of which it must be known whether the limits were kept."""
_WINDOWS = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")
_ABOUT = (
    "Rules for Prometheus, written by `kafka-audit slas export --format prometheus` from slas.yaml. Do not edit: write them again.",
    "Alerts: Site Reliability Workbook, https://sre.google/workbook/alerting-on-slos/, table 5-8. docs/metrics.md explains them.",
)


def render(slas: Sequence[LagSla], minutes: int = FRESH_MINUTES) -> str:
    """A rule file for the lag SLAs that have a target; comments say which have none.

    ``minutes``: offsets older than this count as not known. ConfigurationError as :func:`kafka_audit.report.metrics.slos.slos_of`.
    """
    slos, notes = slos_of(slas)
    notes += [note for slo in slos for note in _never(slo)]
    groups = [_evidence(minutes), *(_group(slo, minutes) for slo in slos)]
    text = yaml.safe_dump({"groups": groups}, sort_keys=False, allow_unicode=False, width=10_000)
    return f"{comments([*_ABOUT, *notes])}{text}"


def _never(slo: Slo) -> list[str]:
    """Why alerts are missing, as sentences."""
    missing = [f"{one.factor:g}x over {one.long}" for one in BURN_RATES if one not in slo.alerts]
    why = f"its window has {slo.window_days} days and its target leaves {slo.budget:.4%} of the time"
    return [f"SLA {slo.sla}: no alert on {', '.join(missing)}, which cannot happen: {why}"] if missing else []


def _evidence(minutes: int) -> dict[str, Any]:
    """Alerts on what would otherwise look like silence."""
    old = f"time() - {OFFSETS_TIME.name} > {minutes * 60}"
    return {
        "name": "kafka-audit-evidence",
        "rules": [
            _alert("KafkaAuditMetricsMissing", f"absent({UP.name})", "15m", "ticket", "Prometheus reads no metrics of kafka-audit."),
            _alert(
                "KafkaAuditEvidenceUnusable",
                f"{UP.name} == 0",
                "15m",
                "ticket",
                "No {{ $labels.evidence }} of cluster {{ $labels.cluster }} can be used: the log of the web server says why.",
            ),
            _alert(
                "KafkaAuditOffsetsOld",
                old,
                "5m",
                "ticket",
                "The newest offsets of cluster {{ $labels.cluster }} are {{ $value | humanizeDuration }} old: no lag SLA is measured.",
            ),
            _alert(
                "KafkaAuditSlasLeftOut",
                f"{SLAS_LEFT_OUT.name} > 0",
                "15m",
                "ticket",
                "{{ $value }} groups of cluster {{ $labels.cluster }} have too many SLAs for the metrics page, which leaves them out.",
            ),
        ],
    }


def _group(slo: Slo, minutes: int) -> dict[str, Any]:
    """Rules have a label with the SLO's id: promtool warns of two that have the same name and labels."""
    of_slo = f"{FRESH}{slo.selector}"
    recorded = {FRESH: fresh(slo, minutes), **{f"{ERRORS}{window}": f"1 - avg_over_time({of_slo}[{window}])" for window in _WINDOWS}}
    if slo.budget > 0:
        whole = f"1 - avg_over_time({of_slo}[{slo.window_days}d])"
        recorded[BUDGET_LEFT] = f"1 - ({whole}) / {slo.budget:.12g}"
    rules = [{"record": name, "expr": expr, "labels": {"slo": slo.id}} for name, expr in recorded.items()]
    return {"name": f"kafka-audit-slo-{slo.id}", "rules": [*rules, *(_burn(slo, one) for one in slo.alerts)]}


def _burn(slo: Slo, rate: BurnRate) -> dict[str, Any]:
    limit = f"{rate.factor:g} * {slo.budget:.12g}"
    both = " and ".join(f"{ERRORS}{window}{slo.selector} > {limit}" for window in (rate.long, rate.short))
    looks = f"count_over_time({FRESH}{slo.selector}[{rate.long}:{rate.long_hours}m])"
    known = f"{looks} >= {max(1, round(_LOOKS * _LEAST_KNOWN * slo.judged_share))}"
    text = (
        "Group {{ $labels.group }} of cluster {{ $labels.cluster }} uses up the error budget of its lag SLA {{ $labels.sla }} "
        f"{rate.factor:g} times too fast: {{{{ $value | humanizePercentage }}}} of what is known of the last {rate.long} "
        "was outside of the limits."
    )
    alert = _alert("KafkaLagSlaBudgetBurn", f"{both} and {known}", None, rate.severity, text)
    return {**alert, "labels": {**alert["labels"], "slo": slo.id, "long_window": rate.long, "short_window": rate.short}}


def _alert(name: str, expr: str, wait: str | None, severity: str, text: str) -> dict[str, Any]:
    """Texts name what labels hold by ``$labels`` only: a name from slas.yaml would be evaluated as a template."""
    waits = {} if wait is None else {"for": wait}
    return {"alert": name, "expr": expr, **waits, "labels": {"severity": severity}, "annotations": {"summary": text}}
