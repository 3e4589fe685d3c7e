"""The plan that repairs an audit's failures: every changing command that its findings give, each setting of a resource once."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from kafka_audit.audit.inputs import CONTROLS
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.remediation import NAMES, Change
from kafka_audit.catalogue.shell_template import PLACEHOLDER
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Status
from kafka_audit.report.commands import fill, shell_word
from kafka_audit.report.results import FINDING_COLUMNS, Finding
from kafka_audit.report.rows import batches, exists
from kafka_audit.report.tally import rank
from kafka_audit.store.layout import Audit

_ENTITY = re.compile(r"--entity-type\s+(\S+)\s+(--entity-name\s+\S+|--entity-default)")
_SETTING = re.compile(r"--(add|delete)-config\s+(?:([a-z0-9.]+)=)?\{([a-z][a-z0-9_]*)\}")
_UNLIMITED = -1
_MAY_BE_UNLIMITED = frozenset({"retention.ms", "retention.bytes", "local.retention.ms", "local.retention.bytes"})
_HIGHER_IS_STRONGER = _MAY_BE_UNLIMITED | {
    *("min.insync.replicas", "delete.retention.ms", "min.compaction.lag.ms", "max.message.bytes"),
    *("consumer.session.timeout.ms", "streams.session.timeout.ms"),
}
_LOWER_IS_STRONGER = frozenset({"message.timestamp.after.max.ms"})
_NO_AGREEMENT = (
    "controls ask for different values of this setting, and which of them is right is not known: run at most one of these commands."
)

Target = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One failure that a command repairs."""

    code: str
    title: str
    severity: str
    resource: str
    observed: str
    impact: str


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command. ``decide``: why a person decides first, else None. ``setting`` and ``value``: what it sets, if that is all it does."""

    command: str
    does: str
    decide: str | None
    reasons: tuple[Reason, ...]
    setting: str | None = None
    value: str | None = None

    @property
    def rank(self) -> tuple[object, ...]:
        """The order in the plan: the worst failure first, then by control, resource and command."""
        first = self.reasons[0]
        return rank(first.severity), first.code, first.resource, self.command


@dataclass(frozen=True, kw_only=True)
class Left:
    """Failures of one control for which there is no command."""

    code: str
    title: str
    text: str
    resources: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What repairs the failures of one audit; ``waived`` failures are left out."""

    audit_id: str
    cluster: str
    snapshot_id: str
    steps: tuple[Step, ...]
    left: tuple[Left, ...]
    waived: int


def read_plan(audit: Audit, controls: Mapping[str, Control] | None = None) -> Plan:
    """The plan for a sealed audit, by the controls that are kept in it.

    IntegrityError (exit 5) if there are no findings or they cannot be read, ConfigurationError (exit 2) if this release cannot read the
    controls.
    """
    known = controls if controls is not None else {control.id: control for control in load_catalogue([audit.inputs / CONTROLS]).controls}
    steps: dict[Target, list[Step]] = {}
    left: dict[str, list[str]] = {}
    waived = 0
    for finding in _failures(audit):
        if finding.waiver is not None:
            waived += 1
            continue
        if finding.control_id not in known:
            raise IntegrityError(f"{audit.path} has results of {finding.control_id!r:.100}, which is no control of it: start a new audit")
        found = steps_of(known[finding.control_id], finding)
        for target, step in found:
            steps.setdefault(target, []).append(step)
        if not found:
            left.setdefault(finding.control_id, []).append(finding.resource)
    run = audit.run()
    return Plan(
        audit_id=str(run.get("audit_id", audit.path.name)),
        cluster=str(run.get("cluster", "")),
        snapshot_id=str(run.get("snapshot_id", "")),
        steps=tuple(sorted((step for same in steps.values() for step in merged(same)), key=lambda step: step.rank)),
        left=tuple(sorted((_left(known[name], resources) for name, resources in left.items()), key=lambda one: one.code)),
        waived=waived,
    )


def _failures(audit: Audit) -> Iterable[Finding]:
    paths = [part / "findings.parquet" for part in (audit.settings, audit.lag)]
    if not any(exists(path) for path in paths):
        raise IntegrityError(
            f"{audit.path} has no findings, so there is nothing to plan: name the folder of an audit that judged something"
        )
    for path in paths:
        if exists(path):
            for table in batches(path, FINDING_COLUMNS, pc.field("status") == Status.FAIL.value):
                yield from (Finding(**row) for row in table.to_pylist())


def _left(control: Control, resources: list[str]) -> Left:
    return Left(code=control.code, title=control.title, text=control.remediation.text, resources=tuple(sorted(resources)))


def steps_of(control: Control, finding: Finding) -> list[tuple[Target, Step]]:
    """The commands for one failure, each with what it changes; a command whose value could not be computed is left out."""
    reason = Reason(
        code=control.code,
        title=control.title,
        severity=finding.severity,
        resource=finding.resource,
        observed=finding.observed or "",
        impact=control.remediation_impact,
    )
    found = []
    for change in control.remediation.changes:
        command = fill(change.command.replace('"$BOOTSTRAP"', '"$BOOTSTRAP" $OPTIONS'), finding.placeholders)
        if command is not None:
            target, setting, value = _target(change, finding)
            decide = change.decide or _unnamed(change, finding)
            found.append((target, Step(command=command, does=change.does, decide=decide, reasons=(reason,), setting=setting, value=value)))
    return found


def _unnamed(change: Change, finding: Finding) -> str | None:
    """Why a command cannot be run as it is: it has variables in the place of names that a shell cannot pass."""
    names = [name for name in PLACEHOLDER.findall(change.command) if name in NAMES]
    absent = [f"${name.upper()}" for name in names if name not in finding.placeholders or shell_word(finding.placeholders[name]) is None]
    return f"set {' and '.join(absent)} to the name, which cannot be printed as a word of a shell." if absent else None


def _target(change: Change, finding: Finding) -> tuple[Target, str | None, str | None]:
    """What a command changes, its setting and the value: for one that sets or deletes a setting, the entity and the key."""
    entity, setting = _ENTITY.search(change.command), _SETTING.search(change.command)
    if entity is None or setting is None:
        return (_named(change.command, finding),), None, None
    value = finding.values.get(setting[3], "")
    key = setting[2] or value
    return (entity[1], _named(entity[2], finding), key), key, value if setting[1] == "add" else None


def _named(template: str, finding: Finding) -> str:
    """A text with the names themselves: two names that no shell can pass are different things, though both are printed as a variable."""
    return PLACEHOLDER.sub(lambda found: finding.placeholders.get(found[1], ""), template)


def merged(steps: list[Step]) -> list[Step]:
    """Steps that change the same thing as one: the strongest. If it is not known which that is, all remain, for a person to decide."""
    ordered = sorted(steps, key=lambda step: step.rank)
    by_value: dict[str | None, list[Step]] = {}
    for step in ordered:
        by_value.setdefault(step.value, []).append(step)
    if len(by_value) == 1:
        return [_joined(ordered[0], ordered)]
    try:
        strongest = max(by_value, key=lambda value: _strength(ordered[0].setting, value))
    except ValueError:
        return [replace(_joined(same[0], same), decide=_NO_AGREEMENT) for same in by_value.values()]
    return [_joined(by_value[strongest][0], ordered)]


def _joined(kept: Step, steps: list[Step]) -> Step:
    """One command for the failures of several steps. A person decides if that is so for a command that would set the same value."""
    reasons = tuple(reason for step in steps for reason in step.reasons)
    decide = next((step.decide for step in steps if step.decide is not None and step.value == kept.value), None)
    return replace(kept, reasons=reasons, decide=decide)


def _strength(setting: str | None, value: str | None) -> float:
    """A number that grows with the strength of a setting's value; ValueError where the order is not known."""
    number = int(value or "")
    if setting in _MAY_BE_UNLIMITED and number == _UNLIMITED:
        return float("inf")
    if setting in _HIGHER_IS_STRONGER:
        return number
    if setting in _LOWER_IS_STRONGER:
        return -number
    raise ValueError(setting)
