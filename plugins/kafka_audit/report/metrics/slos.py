"""The service level objectives that a policy's lag SLAs are, and why some are none; PromQL that selects the samples of one."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from kafka_audit.errors import ConfigurationError
from kafka_audit.policy.slas import LagSla
from kafka_audit.report.metrics.definitions import OFFSETS_TIME, WITHIN, label
from kafka_audit.safe_text import visible

FRESH_MINUTES = 15
"""Offsets older than this say nothing about now: three of the snapshots that are taken every five minutes are then missing."""
_LONGEST_NAME = 40
_WEEK = (datetime(2026, 1, 5, tzinfo=timezone.utc), datetime(2026, 1, 12, tzinfo=timezone.utc))
"""Any week: quiet hours are the same in each."""


@dataclass(frozen=True, kw_only=True)
class BurnRate:
    """An alert on how fast an error budget is used: ``factor`` times the rate that uses it up in exactly its window."""

    factor: float
    long: str
    short: str
    long_hours: int
    severity: str

    def reachable(self, slo: "Slo") -> bool:
        """Whether the SLO's window is as long as the alert's, and its target leaves a budget that can be used so fast."""
        return self.long_hours <= slo.window_days * 24 and self.factor * slo.budget < 1


BURN_RATES = (
    BurnRate(factor=14.4, long="1h", short="5m", long_hours=1, severity="page"),
    BurnRate(factor=6.0, long="6h", short="30m", long_hours=6, severity="page"),
    BurnRate(factor=3.0, long="1d", short="2h", long_hours=24, severity="ticket"),
    BurnRate(factor=1.0, long="3d", short="6h", long_hours=72, severity="ticket"),
)
"""The alerts of the Site Reliability Workbook, chapter 5, table 5-8: https://sre.google/workbook/alerting-on-slos/."""


@dataclass(frozen=True, kw_only=True)
class Slo:
    """A lag SLA with a target. ``id``: its name as Kubernetes, OpenSLO and Prometheus' groups of rules accept it."""

    sla: str
    id: str
    target_percent: float
    window_days: int
    judged_share: float = 1.0
    """The share of a week outside of the SLA's quiet hours; of several rules of that name, the smallest."""

    @property
    def target(self) -> float:
        """The target as a share of 1."""
        return round(self.target_percent / 100, 12)

    @property
    def budget(self) -> float:
        """The share of the time that may lie outside of the limits."""
        return round(1 - self.target, 12)

    @property
    def selector(self) -> str:
        """``{sla="..."}``. The rule that decides is in the label: no pattern has to be matched once more, nor the order of rules kept."""
        return f"{{sla={quoted(label(self.sla))}}}"

    @property
    def alerts(self) -> tuple[BurnRate, ...]:
        """The alerts that can fire."""
        return tuple(one for one in BURN_RATES if one.reachable(self))


def quoted(text: str) -> str:
    """A text as a string of PromQL: https://prometheus.io/docs/prometheus/latest/querying/basics/#string-literals."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def fresh(slo: Slo, minutes: int) -> str:
    """PromQL: the samples of the SLA from offsets that are not older than so many minutes, one for each cluster and group."""
    samples = f"min by (cluster, group, sla) ({WITHIN.name}{slo.selector})"
    return f"{samples} and on (cluster) (time() - max by (cluster) ({OFFSETS_TIME.name}) <= {minutes * 60})"


def slos_of(slas: Sequence[LagSla]) -> tuple[list[Slo], list[str]]:
    """The SLOs by the order of the rules, and a sentence for each SLA that is none or is not judged as a whole.

    ConfigurationError (exit 2) if rules of one name differ in their availability: samples carry the name only.
    """
    by_name: dict[str, list[LagSla]] = {}
    for sla in slas:
        by_name.setdefault(sla.name, []).append(sla)
    found: list[Slo] = []
    notes: list[str] = []
    for name, rules in by_name.items():
        shown, wanted = f"SLA {visible(name)}", rules[0].availability
        if any(rule.availability != wanted for rule in rules):
            raise ConfigurationError(
                f"slas.yaml: groups: several rules are named {name!r} and differ in their availability, and samples carry the name only: "
                "give each rule its own name"
            )
        judged = [rule for rule in rules if rule.max_lag_records is not None or rule.max_lag_seconds is not None]
        if wanted is None:
            notes.append(f"{shown} has no target, so it is no SLO: give it availability.target_percent in slas.yaml")
        elif not judged:
            notes.append(f"{shown} limits only max_no_progress_seconds, which one sample cannot judge, so it is no SLO; CON-14 judges it")
        else:
            if any(rule.max_no_progress_seconds is not None for rule in rules):
                notes.append(f"{shown}: max_no_progress_seconds is not judged here, because one sample cannot tell; CON-14 judges it")
            share = min(map(_judged_share, rules))
            found.append(
                Slo(sla=name, id=_id(name), target_percent=wanted.target_percent, window_days=wanted.window_days, judged_share=share)
            )
    return found, notes


def _judged_share(sla: LagSla) -> float:
    first, last = _WEEK
    quiet = sum((min(ends, last) - max(begins, first) for begins, ends in sla.quiet_spans(first, last)), timedelta())
    return 1 - quiet / (last - first)


def _id(name: str) -> str:
    """Lower-case letters, digits and hyphens; with a hash of the name where it had other characters, so that no two are the same."""
    kept = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_NAME].strip("-")
    return kept if kept == name else "-".join(filter(None, (kept, hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8])))


def comments(lines: Sequence[str]) -> str:
    """Lines of a YAML comment."""
    return "".join(f"# {visible(line)}\n" for line in lines)
