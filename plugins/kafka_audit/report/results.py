"""The results of the controls as a report holds them: counts, findings, and the reasons why results are missing."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Annotated

from pydantic import SkipValidation, computed_field
from pydantic.dataclasses import dataclass

from kafka_audit.catalogue.control import Control
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import COUNTED_AS
from kafka_audit.report.comparison import Change
from kafka_audit.report.frozen import EXACT, IN_JSON_ELSEWHERE, Evidence
from kafka_audit.report.tally import Acceptance, AssessedShare, Results, Tally, WaiverTable, by_severity, rank

COUNTS = ("population", "findings", *COUNTED_AS.values())
_OF_TALLY = ("waived", "loosened", "still_open")
_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Counts(Results):
    """The number of results of a control in each status, and the number of resources."""

    population: int = 0
    findings: int = 0


def total(counts: Iterable[Counts]) -> Counts:
    """Add up counts, field by field."""
    listed = list(counts)
    return Counts(**{name: sum(getattr(one, name) for one in listed) for name in (*COUNTS, *_OF_TALLY)})


@dataclass(frozen=True, kw_only=True, config=EXACT)
class JudgedResource:
    """One result of one control on one resource; None: not known, or does not apply."""

    control_id: str
    code: str
    subject: str
    resource: str
    topic: str | None
    partition: int | None
    broker_id: int | None
    group_id: str | None
    severity: str
    evidence_class: str
    status: str
    reason: str | None
    observed: str | None
    expected: str | None
    evidence: Evidence
    tier: str | None
    catalogue_severity: str
    loosened: str | None
    rule_sha256: str
    """The hash of the rule that judged it: ``docs/results.md`` says what it covers."""


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Finding(JudgedResource):
    """One result as the job wrote it: the id of the waiver that it names, and the values for the remediation's commands as JSON text."""

    waiver: str | None
    remediation: str | None

    @property
    def values(self) -> dict[str, str]:
        """The values that were computed for the remediation's commands; those that are NULL are left out."""
        try:
            computed = json.loads(self.remediation) if self.remediation else {}
            if not isinstance(computed, dict) or any(not isinstance(value, str | None) for value in computed.values()):
                raise ValueError("not a text for each name")
        except (ValueError, RecursionError) as problem:
            raise IntegrityError(
                f"the findings of {self.code} have values for commands that this release does not write ({problem}): run verify again"
            ) from problem
        return {name: value for name, value in computed.items() if value is not None}

    @property
    def placeholders(self) -> dict[str, str]:
        """What fills the placeholders of the remediation's commands; for a result of a group or broker, its name is the resource."""
        known = {"topic": self.topic, "partition": self.partition, "group": self.group_id, "broker": self.broker_id}
        return {**self.values, **{key: str(value) for key, value in known.items() if value is not None}}


@dataclass(frozen=True, kw_only=True, config=EXACT)
class ListedFinding(JudgedResource):
    """One result as ``report.json`` lists it.

    ``waiver``: the one in force that covers it. ``remediation``: the values for the remediation's commands. ``change``: how a failure
    compares with the previous audit; None if there is none, or it is not known.
    """

    waiver: Acceptance | None
    remediation: dict[str, str]
    change: Change | None

    @classmethod
    def of(cls, finding: Finding, waivers: WaiverTable, change: Change | None) -> "ListedFinding":
        used = waivers.find(finding.waiver)
        same = {one.name: getattr(finding, one.name) for one in fields(JudgedResource)}
        return cls(**same, waiver=used.acceptance if used else None, remediation=finding.values, change=change)


FINDING_COLUMNS = tuple(one.name for one in fields(Finding))
"""The columns of findings.parquet that a finding is made of."""


@dataclass(frozen=True, kw_only=True, config=EXACT)
class ControlResult:
    """One control, its counts, and the first of its failures, errors and unassessed resources: worst first, then by resource.

    ``severity`` is the catalogue's; ``tally`` counts the results by their own severity. ``rule_sha256`` is the hash of the rule that judged
    its resources, or of the catalogue's if it did not run. ``counts`` is None if the control did not run; ``control`` is None if the given
    catalogue does not contain it. ``set_aside``: how many of its results do not apply because the audit took the baseline or nobody
    declared what they judge.
    """

    control_id: str
    code: str
    title: str
    subject: str
    severity: str
    evidence_class: str
    rule_sha256: str
    counts: Counts | None
    tally: Annotated[Tally, SkipValidation, IN_JSON_ELSEWHERE]
    control: Annotated[Control | None, SkipValidation, IN_JSON_ELSEWHERE]
    failures: Annotated[tuple[Finding, ...], IN_JSON_ELSEWHERE]
    errors: Annotated[tuple[Finding, ...], IN_JSON_ELSEWHERE]
    not_assessed: Annotated[tuple[Finding, ...], IN_JSON_ELSEWHERE]
    set_aside: int = 0

    @property
    def counted(self) -> Counts:
        """The counts; all 0 if the control did not run."""
        return self.counts or Counts()

    @cached_property
    def by_severity(self) -> dict[str, Results]:
        """Its results by the severity that their tier sets, worst first; with the catalogue's severity if there are no results."""
        return by_severity(self.tally) or {self.severity: Results()}

    @property
    def failing_severities(self) -> dict[str, Results]:
        """The severities at which it fails."""
        return {name: results for name, results in self.by_severity.items() if results.failed}

    @property
    def worst(self) -> str:
        """The worst severity of its failures; the catalogue's if nothing fails."""
        return next(iter(self.failing_severities), self.severity)

    @property
    def listed(self) -> tuple[Finding, ...]:
        """The findings that were read: failures, errors, and what was not assessed."""
        return (*self.failures, *self.errors, *self.not_assessed)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def worst_failure(self) -> str | None:
        """The worst severity of its failures; None if nothing fails."""
        return self.worst if self.counted.failed else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def failed_by_severity(self) -> dict[str, int]:
        """The number of failures by the severity that their tier sets."""
        return {name: results.failed for name, results in self.failing_severities.items()}

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ran(self) -> bool:
        """Whether the control was judged at all."""
        return self.counts is not None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def coverage(self) -> AssessedShare:
        """How much of what applies was assessed."""
        return self.counted.coverage

    @computed_field  # type: ignore[prop-decorator]
    @property
    def truncated(self) -> bool:
        """Whether the report lists fewer failures, errors or unassessed resources than there are."""
        counts = self.counted
        listed = ((self.failures, counts.failed), (self.errors, counts.errored), (self.not_assessed, counts.not_assessed))
        return any(len(findings) < count for findings, count in listed)


@dataclass(frozen=True, kw_only=True, config=EXACT)
class AtSeverity:
    """One severity: the number of controls with such results, of those that judged one, the controls that fail with it, and the counts."""

    name: str
    controls: int
    judged: int
    assessed: int
    failing: tuple[ControlResult, ...]
    failed: int
    waived: int


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Reason:
    """One reason why results are missing or do not apply: how many results it concerns, of which controls, and example resources."""

    status: str
    reason: str
    count: int = 0
    codes: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def with_more(self, code: str, resources: Sequence[str]) -> "Reason":
        examples = sorted({*self.resources, *resources})[:_EXAMPLES]
        codes = tuple(sorted({*self.codes, code}))
        return replace(self, count=self.count + len(resources), codes=codes, resources=tuple(examples))


def worst_first(results: Sequence[ControlResult]) -> tuple[ControlResult, ...]:
    """Sort results by their worst failure, then by code."""
    return tuple(sorted(results, key=lambda one: (rank(one.worst), one.code, one.control_id)))
