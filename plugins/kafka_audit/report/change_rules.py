"""How one finding compares with its counterpart in the earlier audit: the rules of what is new, worse, resolved or incomparable."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from kafka_audit.catalogue.rule import Rule
from kafka_audit.findings import Status
from kafka_audit.report.asked import differences
from kafka_audit.report.comparison import Change
from kafka_audit.report.side import Row, Side
from kafka_audit.report.tally import rank

_ALONE = {
    "topics": frozenset({"topic", "partition", "group_partition", "declared_topic"}),
    "groups": frozenset({"group", "group_partition", "group_sla", "declared_group"}),
}
"""Subjects whose rows depend on one topic or group alone, so that others in scope do not matter."""

_NOT_ASSESSED = {
    Status.NOT_ASSESSED.value: "was not assessed",
    Status.ERROR.value: "raised an error",
    Status.NOT_APPLICABLE.value: "did not apply",
}
_OF_TOPIC = frozenset({"topic", "partition", "group_partition"})
_OF_GROUP = frozenset({"group", "group_partition", "group_sla"})
"""Subjects that have a row for every topic or group that exists; rows of others come and go with what the policy declares."""
_RECREATED = "the topic was deleted and created again under the same name"
_MOST_DIFFERENCES = 5


@dataclass(frozen=True, kw_only=True)
class FindingJudge:
    """Compares one finding with its counterpart. ``asked`` and ``lost``: what the evidence of the findings that need it says, in the
    earlier and in the later audit."""

    before: Side
    now: Side
    twice: Collection[tuple[str, str]]
    policy_changed: bool
    asked: tuple[Mapping[tuple[str, str], str | None], Mapping[tuple[str, str], str | None]]
    lost: tuple[Mapping[tuple[str, str], int | None], Mapping[tuple[str, str], int | None]]

    def __call__(self, before: Row | None, now: Row | None) -> tuple[Change, str | None]:
        """The change, and what makes it incomparable or worse, new on something that did not exist, or resolved without a pass of it."""
        known = now or before
        if known is None:
            raise AssertionError("a finding of neither audit")
        why = self._not_comparable(known, before, now)
        if why is not None:
            return Change.INCOMPARABLE, why
        if self._recreated(known, self._subject(known)):
            return self._on_another_topic(before, now)
        if now is None:
            return self._gone(known, self._subject(known))
        if before is None:
            return self._first_seen(now, self._subject(now))
        return self._in_both(before, now)

    def _in_both(self, before: Row, now: Row) -> tuple[Change, str | None]:
        if now.status != Status.FAIL.value:
            return (Change.RESOLVED, None) if now.status == Status.PASS.value else self._unknown("in this audit it", now)
        if before.status == Status.PASS.value:
            return Change.NEW, None
        if before.status != Status.FAIL.value:
            return self._unknown("in the previous audit it", before)
        worse = self._worse(before, now)
        return (Change.WORSE, worse) if worse else (Change.UNCHANGED, None)

    def _recreated(self, row: Row, subject: str) -> bool:
        """Whether the two audits saw different topics of the same name."""
        if subject not in _OF_TOPIC or row.topic is None or self.before.existence is None or self.now.existence is None:
            return False
        before, now = (shown.topic_id(row.topic) for shown in (self.before.existence, self.now.existence))
        return before is not None and now is not None and before != now

    def _on_another_topic(self, before: Row | None, now: Row | None) -> tuple[Change, str]:
        """What failed on the earlier topic is gone with it; the later one is only resolved if it passes."""
        if now is None:
            return Change.INCOMPARABLE, f"{_RECREATED}, and this audit has no result for it"
        if now.status == Status.FAIL.value:
            failed = before is not None and before.status == Status.FAIL.value
            return Change.NEW, f"{_RECREATED}; the one before it failed, too" if failed else _RECREATED
        if now.status == Status.PASS.value:
            return Change.RESOLVED, f"{_RECREATED}, and the new one passes"
        return self._unknown(f"{_RECREATED}, and in this audit it", now)

    @staticmethod
    def _unknown(which: str, row: Row) -> tuple[Change, str]:
        said = f"{which} {_NOT_ASSESSED.get(row.status, f'had the status {row.status}, which is not known')}"
        return Change.INCOMPARABLE, f"{said}: {row.reason}" if row.reason else said

    def _not_comparable(self, known: Row, before: Row | None, now: Row | None) -> str | None:
        for side, which in ((self.before, "the previous audit"), (self.now, "this audit")):
            if not side.fit:
                return f"the evidence of {which} was not fit to be judged"
        if (known.control_id, known.resource) in self.twice:
            return "the control has two verdicts on this resource in one of the audits"
        of_control = self._of_controls.get(known.control_id, "the control is in no catalogue of the two audits")
        if of_control is not None:
            return of_control
        new, old = (side.rules[known.control_id] for side in (self.now, self.before) if side.rules)
        return self._out_of_scope(known) or self._asked_otherwise(new, old, known, both=before is not None and now is not None)

    @cached_property
    def _of_controls(self) -> Mapping[str, str | None]:
        """Why no result of a control can be compared, by control id; None where they can."""
        names = {*(self.before.rules or ()), *(self.now.rules or ())}
        return {name: self._of_control(name) for name in names}

    def _of_control(self, control_id: str) -> str | None:
        rules_before, rules_now = self.before.rules, self.now.rules
        if rules_before is None or rules_now is None:
            return "one of the audits kept no copy of its controls, so it is not known what it asked"
        old, new = rules_before.get(control_id), rules_now.get(control_id)
        if old is None or new is None:
            return f"the control is not in the catalogue of {'the previous audit' if old is None else 'this audit'}"
        if changed := old.changed_fields(new):
            return f"the control was changed ({', '.join(changed)}), so the two audits asked different things"
        return self._of_subject(new)

    def _of_subject(self, rule: Rule) -> str | None:
        for side, which in ((self.before, "the previous audit"), (self.now, "this audit")):
            if missing := side.part_missing(rule.subject):
                return f"{which} judged nothing about {missing}"
        for what, alone in _ALONE.items():
            if rule.subject not in alone and set(getattr(self.before.scope, what)) != set(getattr(self.now.scope, what)):
                return f"the two audits cover other {what}, on which this result depends"
        if self.policy_changed and rule.reads_policy_itself:
            return "the policy was changed, and this result depends on it"
        return None

    def _out_of_scope(self, row: Row) -> str | None:
        for side, which in ((self.before, "the previous audit"), (self.now, "this audit")):
            if row.topic is not None and not side.scope.covers_topic(row.topic):
                return f"the topic is outside the scope of {which}"
            if row.group_id is not None and not side.scope.covers_group(row.group_id):
                return f"the group is outside the scope of {which}"
        return None

    def _asked_otherwise(self, new: Rule, old: Rule, known: Row, *, both: bool) -> str | None:
        if not both or (not self.policy_changed and new.defaults == old.defaults):
            return None
        before, now = (asked.get((known.control_id, known.resource)) for asked in self.asked)
        if before is None or now is None:
            return "the policy or the parameters were changed, and the evidence does not say what was asked of this resource"
        if before == now:
            return None
        changed = differences(before, now)
        more = f"; and {len(changed) - _MOST_DIFFERENCES} more" if len(changed) > _MOST_DIFFERENCES else ""
        return f"the two audits asked different things: {'; '.join(changed[:_MOST_DIFFERENCES])}{more}"

    def _subject(self, row: Row) -> str:
        return self.now.rules[row.control_id].subject if self.now.rules else ""

    def _gone(self, before: Row, subject: str) -> tuple[Change, str]:
        shown, of_topic = self.now.existence, subject in _OF_TOPIC and before.topic is not None
        if shown and of_topic and shown.without_topic(str(before.topic), _holders(self.before, before)):
            return Change.RESOLVED, "the topic no longer exists, and nothing was assessed"
        if shown and subject in _OF_GROUP and before.group_id is not None and shown.without_group(before.group_id):
            return Change.INCOMPARABLE, "the group no longer exists, so it was not assessed again"
        return Change.INCOMPARABLE, "it was not assessed again: this audit has no result for it and cannot show that it no longer exists"

    def _first_seen(self, now: Row, subject: str) -> tuple[Change, str]:
        shown = self.before.existence
        if shown is None:
            return Change.INCOMPARABLE, "the previous audit has no result for it, and its snapshot is gone or was changed"
        of_topic = subject in _OF_TOPIC and now.topic is not None
        if of_topic and shown.without_topic(str(now.topic), _holders(self.now, now)):
            return Change.NEW, "the topic did not exist in the previous audit"
        if of_topic and now.partition is not None and shown.without_partition(str(now.topic), now.partition):
            return Change.NEW, "the partition did not exist in the previous audit"
        if subject in _OF_GROUP and now.group_id is not None and shown.without_group(now.group_id):
            return Change.NEW, "the group did not exist in the previous audit"
        return Change.INCOMPARABLE, "the previous audit has no result for it and cannot show that it did not exist"

    def _worse(self, before: Row, now: Row) -> str | None:
        if rank(now.severity) < rank(before.severity):
            return f"its severity was {before.severity} and is {now.severity}"
        if before.waiver is not None and now.waiver is None:
            return f"waiver {before.waiver} covered it in the previous audit and does not any more"
        lost_before, lost_now = (lost.get((now.control_id, now.resource)) for lost in self.lost)
        if lost_before is not None and lost_now is not None and lost_now > lost_before:
            return f"lost records were {lost_before:,} and are {lost_now:,}"
        return None


def _holders(side: Side, row: Row) -> AbstractSet[int]:
    """The brokers that have a replica of a result's topic; empty if none is known."""
    return side.existence.holders(str(row.topic)) if side.existence else frozenset()
