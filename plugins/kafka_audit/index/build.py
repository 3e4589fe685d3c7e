"""Makes the overview of an audit from its report, and from the overview of the audit before it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeVar

from kafka_audit.audit.outcome import VOID
from kafka_audit.audit.published import SCOPE, judged_less
from kafka_audit.index.figures import LONG
from kafka_audit.index.overview import (
    LETTERS,
    LISTED,
    REASONS,
    REMEMBERED,
    UNKNOWN_LETTER,
    WAIVERS,
    Budget,
    Burn,
    Changes,
    ControlLine,
    Failed,
    FailsSince,
    GroupCounts,
    Loss,
    LossTotals,
    Overview,
    PastAudit,
    SilentBroker,
    Statuses,
    WaiverLine,
)
from kafka_audit.report.comparison import ChangedFinding, Comparison
from kafka_audit.report.control_status import is_fit, standing
from kafka_audit.report.fleet.states import ABSENT, WAIVED
from kafka_audit.report.lag_groups import GroupLag, GroupSla
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Counts
from kafka_audit.report.tally import WaiverUse

MOST_OF_A_LIST = 1 << 20
"""About how many bytes the losses, and the changes of each kind, that an overview lists may have together."""
_One = TypeVar("_One")
_FAILING = frozenset({LETTERS["fail"], LETTERS[WAIVED]})
_TELLS_NOTHING = frozenset({LETTERS[name] for name in ("error", "not_assessed", "did_not_run", "unknown", ABSENT)})


def build_overview(
    report: Report,
    run: Mapping[str, Any],
    losses: tuple[Sequence[Loss], Sequence[Loss]],
    before: Overview | None,
    burns: Sequence[Burn] = (),
) -> Overview:
    """The overview of the audit that ``report`` is of; ``run`` is its run.json.

    ``losses``: the next ones and those that happened. ``before``: the overview of the newest audit that was sealed before it.
    ``burns``: the error budgets that are used up too fast.
    """
    fit = is_fit(report)
    whole = fit and not report.missing
    past, groups = _past(report, before), report.lag.every_group
    targets = [sla.target_met for group in groups for sla in group.slas if sla.target_percent is not None]
    params = run.get("params")
    less = judged_less(params) if isinstance(params, Mapping) else ()
    narrowed = any(name in SCOPE for name in less)
    return Overview(
        sample=run.get("sample") is True,
        judged_less=less,
        audit_id=report.audit_id,
        cluster=report.cluster,
        cluster_id=report.collection.cluster_id or None,
        dag_id=str(run.get("dag_id") or ""),
        run_id=str(run.get("run_id") or ""),
        snapshot_id=report.collection.snapshot_id,
        started_at=report.started_at,
        evidence_at=report.collection.started_at or None,
        generated_at=report.generated_at.isoformat(),
        verdict=report.verdict,
        exit_code=report.exit_code,
        summary=report.summary,
        reasons=report.reasons_for_verdict[:REASONS],
        reason_count=len(report.reasons_for_verdict),
        assessed=report.coverage.assessed if whole else None,
        applicable=report.coverage.applicable if whole else None,
        failed=_failed(report) if whole else None,
        statuses=_statuses(report.counts) if whole else None,
        loss=_loss(report) if fit else None,
        budget=_budget(groups) if fit else None,
        burns=tuple(burns),
        targets=len(targets) if fit and report.lag.ran else None,
        targets_missed=_missed(targets) if fit and report.lag.ran else None,
        trend=report.trend[-REMEMBERED:],
        changes=_changes(report.comparison),
        groups=_group_counts(groups) if fit and report.lag.ran else None,
        next_losses=_fitting(losses[0][:LISTED]) if fit else (),
        happened_losses=_fitting(losses[1][:LISTED]) if fit else (),
        waivers=tuple(map(_waiver, report.waivers.listed[:WAIVERS])),
        waiver_count=len(report.waivers.listed),
        brokers=len(report.collection.brokers) or None,
        silent_brokers=tuple(
            SilentBroker(broker_id=one.broker_id, host=one.host, port=one.port, rack=one.rack, alive=one.alive)
            for one in report.collection.brokers
            if one.alive is not True or one.answered is not True
        )[:LISTED],
        collection_errors=report.collection.problem_count,
        controls=tuple(_control(one, past, before, fit=fit, narrowed=narrowed) for one in report.results),
        past=past,
        not_written=tuple(str(one) for one in report.not_written),
    )


def _fitting(listed: Sequence[_One]) -> tuple[_One, ...]:
    """The first ones that have about MOST_OF_A_LIST bytes together, or fewer: a name may have 32,767 bytes, and six times that in JSON."""
    sizes = accumulate(len(json.dumps(str(one))) for one in listed)
    return tuple(one for one, size in zip(listed, sizes, strict=True) if size <= MOST_OF_A_LIST)


def worst_status(group: GroupLag) -> str:
    """The worst status of a group's partitions; NOT_ASSESSED for a group without partitions."""
    return group.statuses[0][0] if group.statuses else "NOT_ASSESSED"


def _waiver(one: WaiverUse) -> WaiverLine:
    return WaiverLine(**{name: getattr(one, name) for name in WaiverLine.model_fields})


def _failed(report: Report) -> dict[str, Failed]:
    return {one.name: Failed(controls=len(one.failing), results=one.failed, waived=one.waived) for one in report.by_severity()}


def _statuses(counts: Counts) -> Statuses:
    return Statuses(**{name: getattr(counts, name) for name in Statuses.model_fields})


def _loss(report: Report) -> LossTotals | None:
    lag, loss = report.lag, report.lag.loss
    if not lag.ran:
        return None
    unknown = not loss.known or bool(lag.unknown_count)
    return LossTotals(
        # A sum that no column holds has gone round to a negative number.
        records=None if (unknown and not loss.records) or loss.records < 0 else min(loss.records, LONG),
        partitions=loss.partitions,
        groups=loss.groups,
        within_a_day=None if not loss.within_a_day and (unknown or loss.rates_unknown) else loss.within_a_day,
        unknown=lag.unknown_count,
        rates_unknown=loss.rates_unknown,
    )


def _budget(groups: Iterable[GroupLag]) -> Budget | None:
    """The SLA with the largest used share of its error budget; one that allows nothing comes first if anything is used."""
    known = [
        (_used(sla), sla)
        for group in groups
        for sla in group.slas
        if None not in (sla.target_percent, sla.budget_allowed_minutes, sla.budget_used_minutes, sla.budget_left_minutes)
    ]
    if not known:
        return None
    worst = max(known, key=lambda one: (one[0], one[1].group_id, one[1].sla))[1]
    return Budget(
        group_id=worst.group_id,
        sla=worst.sla,
        target_percent=worst.target_percent or 0.0,
        window_days=worst.window_days,
        availability_percent=worst.availability_percent,
        allowed_minutes=worst.budget_allowed_minutes or 0.0,
        used_minutes=worst.budget_used_minutes or 0.0,
        left_minutes=worst.budget_left_minutes or 0.0,
        target_met=worst.target_met,
    )


def _missed(targets: Sequence[bool | None]) -> int | None:
    missed = targets.count(False)
    return None if not missed and None in targets else missed


def _used(sla: GroupSla) -> float:
    used, allowed = sla.budget_used_minutes or 0.0, sla.budget_allowed_minutes or 0.0
    return used / allowed if allowed else (float("inf") if used else 0.0)


def _group_counts(groups: Sequence[GroupLag]) -> GroupCounts:
    by_status: dict[str, int] = {}
    by_state: dict[str, int] = {}
    for group in groups:
        by_status[worst_status(group)] = by_status.get(worst_status(group), 0) + 1
        by_state[group.state] = by_state.get(group.state, 0) + 1
    return GroupCounts(total=len(groups), by_status=by_status, by_state=by_state)


def _changes(comparison: Comparison | None) -> Changes | None:
    if comparison is None:
        return None
    listed: dict[str, list[ChangedFinding]] = {}
    for one in comparison.listed:
        listed.setdefault(one.change.value, []).append(one)
    return Changes(
        compared_with=comparison.compared_with,
        compared_with_at=comparison.previous_started_at,
        counts=dict(comparison.counts),
        listed=tuple(one for changed in listed.values() for one in _fitting(changed[:LISTED])),
        notes=comparison.notes[:REASONS],
    )


def _past(report: Report, before: Overview | None) -> tuple[PastAudit, ...]:
    earlier = tuple(one for one in before.past if one.audit_id != report.audit_id) if before else ()
    own = PastAudit(audit_id=report.audit_id, started_at=report.started_at, verdict=report.verdict)
    return (*earlier, own)[-REMEMBERED:]


def _control(result: ControlResult, past: Sequence[PastAudit], before: Overview | None, *, fit: bool, narrowed: bool) -> ControlLine:
    known = next((one for one in before.controls if one.control_id == result.control_id), None) if before else None
    stands = _stands(result, fit=fit)
    letter = LETTERS.get(stands, UNKNOWN_LETTER)
    # What a part of the cluster passes, the whole may fail: that ends no failure.
    history = _history(known, before, past[:-1]) + (UNKNOWN_LETTER if narrowed and letter not in _FAILING else letter)
    counts = result.counts
    return ControlLine(
        control_id=result.control_id,
        code=result.code,
        title=result.title,
        subject=result.subject,
        severity=result.severity,
        evidence_class=result.evidence_class,
        standing=stands,
        statuses=_statuses(counts) if counts and fit else None,
        waived=counts.waived if counts and fit else 0,
        worst=(result.worst_failure if fit else None),
        fails_since=fails_since(history, past, known.fails_since if known else None),
        history=history,
    )


def _stands(result: ControlResult, *, fit: bool) -> str:
    """As in the fleet report; nothing of a void audit is known."""
    if not fit:
        return "unknown"
    counts = result.counts
    if counts and 0 < counts.failed == counts.waived:
        return WAIVED
    return standing(result, fit=fit).value


def _history(known: ControlLine | None, before: Overview | None, past: Sequence[PastAudit]) -> str:
    """The letters of the earlier audits. Of a control that was not in the audit before, nothing further back is known."""
    if before is None or not past:
        return ""
    if known is None:
        return UNKNOWN_LETTER * (len(past) - 1) + LETTERS[ABSENT]
    letters = dict(zip((one.audit_id for one in before.past), known.history, strict=False))
    return "".join(letters.get(one.audit_id, UNKNOWN_LETTER) for one in past)


def fails_since(history: str, past: Sequence[PastAudit], known: FailsSince | None) -> FailsSince | None:
    """Since when a control fails that fails now; audits that could not assess it do not count. None: it does not fail now.

    ``known``: what the audit before said, which reaches back beyond the remembered audits.
    """
    if history[-1:] not in _FAILING or past[-1].verdict == VOID:
        return None
    first, passed = len(history) - 1, False
    for position in range(len(history) - 2, -1, -1):
        if history[position] in _FAILING:
            first = position
        elif history[position] not in _TELLS_NOTHING:
            passed = True
            break
    if not passed and known is not None:
        return known
    return FailsSince(audit_id=past[first].audit_id, started_at=past[first].started_at, earlier=not passed)
