"""Compares an audit with the previous sealed one of its cluster, for its report and for the gate, and says what differs between the two."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_audit.audit.baseline import choose_baseline, not_signed_back_to
from kafka_audit.audit.gate_result import LetThrough, OldFailures
from kafka_audit.audit.previous import FIGURES, changed, choose_previous
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Status
from kafka_audit.report.compare import Compared, compare
from kafka_audit.report.comparison import Change, Comparison
from kafka_audit.report.side import Side
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Audit, Snapshot

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy

_NAMED = 10
_WHY_NAMED = 3
_UNKNOWN_VERDICT = "UNKNOWN"
_UNKNOWN = (Status.NOT_ASSESSED.value, Status.ERROR.value)


@dataclass(frozen=True, kw_only=True)
class _Result:
    """``compared`` is None if ``problem`` says why the audit cannot be compared with the earlier one."""

    before: Side | None = None
    now: Side | None = None
    compared: Compared | None = None
    problem: str | None = None


def read_comparison(
    audit: Audit,
    snapshot: Snapshot,
    catalogue: "Catalogue",
    policy: "Policy",
    *,
    wanted: Collection[tuple[str, str]] = (),
    notes: Collection[str] = (),
    let_through: LetThrough | None = None,
) -> Comparison | None:
    """Compare an audit with the previous one; None if no earlier audit of this cluster is sealed.

    ``wanted``: (control_id, resource) whose change is to be known one by one. ``notes``: sentences to be added. ``let_through``: what the
    gate said of old failures. If no earlier audit can be compared with, or the previous one is gone or was changed, the comparison says
    so and holds no counts.
    """
    chosen = choose_previous(audit, snapshot)
    if chosen.newest is None:
        return None
    found = _compare(chosen.seal, audit, snapshot, catalogue, policy, wanted=wanted) if chosen.seal else _Result()
    passed = [f"Audit {audit_id} was passed over: {why}." for audit_id, why in chosen.passed_over]
    if found.compared is None or found.before is None or found.now is None:
        said = f"Nothing could be compared: {found.problem}." if chosen.seal else "No earlier audit can be compared with."
        return Comparison(
            previous_audit_id=chosen.seal.audit_id if chosen.seal else None,
            previous_started_at="",
            previous_verdict=_UNKNOWN_VERDICT,
            counts={},
            notes=(said, *passed, *notes),
            possible=False,
        )
    return comparison_of(found.before, found.now, found.compared, [*_gate_notes(let_through, found.compared), *passed, *notes])


def comparison_of(before: Side, now: Side, compared: Compared, notes: Collection[str] = ()) -> Comparison:
    """The result of a comparison with the words of a report; ``notes`` come first."""
    return Comparison(
        previous_audit_id=before.audit.path.name,
        previous_started_at=str(before.audit.run().get("started_at") or ""),
        previous_verdict=_verdict(before),
        counts={change.value: compared.counts[change.value] for change in Change},
        listed=compared.listed,
        notes=(*notes, *_notes(before, now)),
        changes=compared.changes,
        not_shown_old=compared.open,
    )


def old_failures(audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: "Policy") -> OldFailures:
    """Which failures the baseline had, too, for a gate that blocks on new ones only; none if there is nothing to compare with.

    An installation that signs takes nothing from an audit without its signature, and follows none: whoever may write into the folder
    could add one.
    """
    chosen, baseline = choose_previous(audit, snapshot), choose_baseline(audit, snapshot)
    if chosen.seal is None:
        return OldFailures(previous=None, baseline=None, why_none="no earlier audit judged this cluster")
    why = dict(baseline.passed_over).get(chosen.seal.audit_id)
    named = baseline.seal.audit_id if baseline.seal else None
    known = OldFailures(previous=chosen.seal.audit_id, baseline=named, not_previous=why)
    if baseline.seal is None:
        return known.model_copy(update={"why_none": _no_baseline(baseline.passed_over)})
    found = _compare(baseline.seal, audit, snapshot, catalogue, policy)
    why_none = found.problem or not_signed_back_to(baseline.seal, chosen.newest, audit.path.parent)
    if why_none or found.compared is None:
        return known.model_copy(update={"why_none": why_none})
    return known.model_copy(update={"counts": dict(found.compared.old)})


def _no_baseline(passed_over: Sequence[tuple[str, str]]) -> str:
    listed = "; ".join(f"audit {audit_id}: {why}" for audit_id, why in passed_over[:_WHY_NAMED])
    more = f"; and {len(passed_over) - _WHY_NAMED:,} more" if len(passed_over) > _WHY_NAMED else ""
    return f"the failures of no earlier audit count as old ({listed}{more}); after one audit without fail_on_new, its failures do"


def _gate_notes(let_through: LetThrough | None, compared: Compared) -> Iterator[str]:
    """What a reader must know if the gate did not take the failures of the previous audit as old."""
    if let_through is None or let_through.not_previous is None:
        return
    unchanged = compared.counts[Change.UNCHANGED.value]
    start = f"The gate did not count the failures of the previous audit as old ({let_through.not_previous})"
    told = f"the {unchanged:,} that are called unchanged here" if unchanged != 1 else "the one that is called unchanged here"
    if let_through.why_none is not None:
        yield f"{start}, and no others, so it blocks on {told}, too, if severe enough and not waived."
    else:
        yield (
            f"{start}, but those of audit {let_through.baseline}: it may block on {told}, and let through one that is called new, worse or "
            "incomparable."
        )


def _compare(
    seal: Seal,
    audit: Audit,
    snapshot: Snapshot,
    catalogue: "Catalogue",
    policy: "Policy",
    *,
    wanted: Collection[tuple[str, str]] = (),
) -> _Result:
    cluster, folder = audit.path.parent.name, audit.path.parent / seal.audit_id
    if problem := changed(seal, folder):
        return _Result(problem=problem)
    try:
        before, now = Side.sealed(Audit(path=folder), snapshot.root, cluster), Side.judged(audit, snapshot, catalogue, policy)
        before.audit.run()  # its start and verdict are shown: a run.json that cannot be read is found here
        return _Result(before=before, now=now, compared=compare(before, now, wanted))
    except IntegrityError as found:
        return _Result(problem=str(found))


def _verdict(side: Side) -> str:
    path = side.audit.path / FIGURES
    return str(read_json(path).get("verdict") or _UNKNOWN_VERDICT) if path.is_file() else _UNKNOWN_VERDICT


def _notes(before: Side, now: Side) -> Iterator[str]:
    """What differs between two audits, in sentences."""
    for what in ("topics", "groups"):
        old, new = (", ".join(getattr(side.scope, what)) for side in (before, now))
        if old != new:
            yield f"The scope differs: {what} were {old} and are {new}."
    yield from _catalogue_notes(before, now)
    files = [name for name in sorted({*before.policy, *now.policy}) if before.policy.get(name) != now.policy.get(name)]
    if files:
        yield f"The policy differs in {_some(files)}."
    if before.release != now.release:
        old, new = (side.release or "one that is not known" for side in (before, now))
        yield f"The audits were made by different releases of kafka-audit: {old} and {new}. The same rule may see more or less."
    unknown = [sum(side.statuses[status] for status in _UNKNOWN) for side in (before, now)]
    if unknown[0] != unknown[1]:
        yield f"Results that were not assessed or raised an error: {unknown[0]:,} in the previous audit and {unknown[1]:,} in this one."
    for side, which in ((before, "The previous audit"), (now, "This audit")):
        if not side.fit:
            yield f"{which} was void: its evidence was not fit to be judged."
        for missing in sorted({str(side.part_missing(subject)) for subject in ("topic", "group") if side.part_missing(subject)}):
            yield f"{which} judged nothing about {missing}."
    if before.snapshot is None:
        yield "The snapshot of the previous audit is gone or was changed, so it is not known what did not exist then."


def _catalogue_notes(before: Side, now: Side) -> Iterator[str]:
    if before.rules is None or now.rules is None:
        yield "One of the audits kept no copy of its controls, so no result can be compared."
        return
    added, removed = (
        sorted(one[name].code for name in one.keys() - other.keys())
        for one, other in ((now.rules, before.rules), (before.rules, now.rules))
    )
    both = [(before.rules[name], rule) for name, rule in now.rules.items() if name in before.rules]
    changed = sorted(new.code for old, new in both if old.changed_fields(new))
    defaults = sorted(
        f"{new.code}.{name} {old.defaults.get(name)} to {new.defaults.get(name)}"
        for old, new in both
        for name in {*old.defaults, *new.defaults}
        if old.defaults.get(name) != new.defaults.get(name)
    )
    texts = (
        (added, "Controls that the previous audit did not have"),
        (removed, "Controls that this audit does not have"),
        (changed, "Controls whose rule was changed"),
        (defaults, "Parameters whose default was changed"),
    )
    yield from (f"{text}: {_some(found)}." for found, text in texts if found)


def _some(names: Collection[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_NAMED]) + (f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else "")
