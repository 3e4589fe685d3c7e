"""Compares two audits finding by finding: what is new, worse, unchanged or resolved, and what cannot be compared.

Nothing is called resolved that was not assessed again, and nothing unchanged that the earlier audit was not asked in the same words.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_audit.findings import Status
from kafka_audit.report.asked import asked_of, changes_verdicts, lost_in
from kafka_audit.report.change_rules import FindingJudge
from kafka_audit.report.comparison import Change, ChangedFinding
from kafka_audit.report.side import Row, Rows, Side
from kafka_audit.report.tally import rank

LISTED = 100
"""The largest number of findings that are listed per change; counts include all."""

_FEWEST_PRUNED = 5_000
Wanted = Mapping[str, Collection[str]]
"""Resources by control id."""


@dataclass(kw_only=True)
class Compared:
    """``counts`` by change; ``open``: failures of the later audit that are not shown to be old; ``old``: the unchanged ones without a
    waiver, by (control_id, severity); ``changes``: those of the findings that were asked for."""

    counts: Counter[str] = field(default_factory=Counter)
    open: int = 0
    old: Counter[tuple[str, str]] = field(default_factory=Counter)
    listed: tuple[ChangedFinding, ...] = ()
    changes: dict[tuple[str, str], Change] = field(default_factory=dict)


def compare(before: Side, now: Side, wanted: Collection[tuple[str, str]] = ()) -> Compared:
    """Compare all failures of both audits; ``wanted``: (control_id, resource) whose change is to be known one by one.

    Needs memory for the failures alone, and reads the findings batch by batch. IntegrityError when they cannot be read.
    """
    fails_now, twice_now = now.failures()
    fails_before, twice_before = before.failures()
    others_now, others_before = now.others(fails_before, fails_now), before.others(fails_before, fails_now)
    twice = twice_now | twice_before | _both(fails_now, others_now) | _both(fails_before, others_before)
    judge = _judge_of(before, now, twice, fails_before, fails_now)
    asked = set(wanted)
    found, kept = Compared(), _First()
    for old, new in _pairs(fails_before, fails_now, others_before, others_now):
        change, why = judge(old, new)
        found.counts[change.value] += 1
        if new is not None and new.status == Status.FAIL.value:
            if (new.control_id, new.resource) in asked:
                found.changes[(new.control_id, new.resource)] = change
            if change is not Change.UNCHANGED:
                found.open += 1
            elif new.waiver is None:
                found.old[(new.control_id, new.severity)] += 1
        kept.add(_Candidate(change=change, why=why, old=old, new=new))
    found.listed = _listed(kept.all(), before, now)
    return found


def _both(failing: Rows, others: Rows) -> set[tuple[str, str]]:
    """Findings of one audit that fail and do not."""
    return {(control, resource) for control, rows in others.items() for resource in rows.keys() & failing.get(control, {}).keys()}


def _pairs(fails_before: Rows, fails_now: Rows, others_before: Rows, others_now: Rows) -> Iterator[tuple[Row | None, Row | None]]:
    """Every failure of either audit with its counterpart, as (before, now), each once."""
    for control, rows in fails_now.items():
        old, other = fails_before.get(control, {}), others_before.get(control, {})
        for resource, row in rows.items():
            yield old.get(resource) or other.get(resource), row
    for control, rows in fails_before.items():
        new, other = fails_now.get(control, {}), others_now.get(control, {})
        for resource, row in rows.items():
            if resource not in new:
                yield row, other.get(resource)


def _judge_of(before: Side, now: Side, twice: Collection[tuple[str, str]], fails_before: Rows, fails_now: Rows) -> FindingJudge:
    """Reads the evidence of those findings whose comparison depends on it."""
    names = {*before.policy, *now.policy}
    policy_changed = any(changes_verdicts(name) and before.policy.get(name) != now.policy.get(name) for name in names)
    rules_before, rules_now = before.rules or {}, now.rules or {}
    both = rules_before.keys() & rules_now.keys()
    asks = both if policy_changed else {one for one in both if rules_before[one].defaults != rules_now[one].defaults}
    wanted = {one: fails_before.get(one, {}).keys() | fails_now.get(one, {}).keys() for one in asks}
    counting = {one for one in both if rules_now[one].counts_loss}
    still = {one: fails_before.get(one, {}).keys() & fails_now.get(one, {}).keys() for one in counting}
    texts: dict[str | None, str | None] = {}
    return FindingJudge(
        before=before,
        now=now,
        twice=twice,
        policy_changed=policy_changed,
        asked=(_asked(before, wanted, texts), _asked(now, wanted, texts)),
        lost=(_lost(before, still), _lost(now, still)),
    )


def _asked(side: Side, wanted: Wanted, texts: dict[str | None, str | None]) -> dict[tuple[str, str], str | None]:
    """What was asked of each finding; equal texts are kept once."""
    found = ((control, resource, asked_of(evidence)) for control, resource, evidence in side.texts("evidence", _some(wanted)))
    return {(control, resource): texts.setdefault(asked, asked) for control, resource, asked in found}


def _lost(side: Side, wanted: Wanted) -> dict[tuple[str, str], int | None]:
    return {(control, resource): lost_in(evidence) for control, resource, evidence in side.texts("evidence", _some(wanted))}


def _some(wanted: Wanted) -> Wanted:
    return {control: resources for control, resources in wanted.items() if resources}


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A finding that may be listed."""

    change: Change
    why: str | None
    old: Row | None
    new: Row | None

    @property
    def row(self) -> Row:
        found = self.new or self.old
        if found is None:
            raise AssertionError("a finding of neither audit")
        return found

    @property
    def order(self) -> tuple[int, str, str]:
        """Worst severity first, then by control and resource."""
        failing = self.new if self.new is not None and self.new.status == Status.FAIL.value else self.old
        return rank((failing or self.row).severity), self.row.control_id, self.row.resource


@dataclass(kw_only=True)
class _First:
    """Keeps the first findings of each change."""

    _kept: dict[Change, list[_Candidate]] = field(default_factory=dict)

    def add(self, one: _Candidate) -> None:
        kept = self._kept.setdefault(one.change, [])
        kept.append(one)
        if len(kept) >= _FEWEST_PRUNED:
            kept.sort(key=lambda candidate: candidate.order)
            kept[LISTED:] = []

    def all(self) -> list[_Candidate]:
        return [one for change in Change for one in sorted(self._kept.get(change, []), key=lambda one: one.order)[:LISTED]]


def _listed(candidates: Sequence[_Candidate], before: Side, now: Side) -> tuple[ChangedFinding, ...]:
    """The findings with what was observed in either audit, which is read only for these."""
    wanted: dict[str, set[str]] = {}
    for one in candidates:
        wanted.setdefault(one.row.control_id, set()).add(one.row.resource)
    seen, seen_before = (
        {(control, resource): text for control, resource, text in side.texts("observed", wanted)} for side in (now, before)
    )
    made = []
    for one in candidates:
        row, key = one.row, (one.row.control_id, one.row.resource)
        rules = [side.rules[row.control_id] for side in (now, before) if side.rules and row.control_id in side.rules]
        made.append(
            ChangedFinding(
                change=one.change,
                control_id=row.control_id,
                code=rules[0].code if rules else "",
                title=rules[0].title if rules else "",
                subject=rules[0].subject if rules else "",
                resource=row.resource,
                severity=one.new.severity if one.new is not None and one.new.status == Status.FAIL.value else None,
                severity_before=one.old.severity if one.old is not None and one.old.status == Status.FAIL.value else None,
                observed=seen.get(key),
                observed_before=seen_before.get(key),
                why=one.why,
            )
        )
    return tuple(made)
