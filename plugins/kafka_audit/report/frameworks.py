"""Computes which requirements of compliance frameworks the results support. Support does not prove conformity."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from pydantic import computed_field
from pydantic.dataclasses import dataclass

from kafka_audit.findings import Status
from kafka_audit.policy.frameworks import Framework, Requirement
from kafka_audit.report.frozen import EXACT
from kafka_audit.report.results import ControlResult, Counts, total
from kafka_audit.report.tally import AssessedShare

_DID_NOT_RUN = "did not run"


class Support(StrEnum):
    """Whether the results of a control, or of all controls of a requirement, support the requirement."""

    DOES_NOT_SUPPORT = "does not support"
    NOT_KNOWN = "not known"
    SUPPORTS = "supports"
    NOT_APPLICABLE = "not applicable"


KINDS = {Support.SUPPORTS: "pass", Support.DOES_NOT_SUPPORT: "fail", Support.NOT_KNOWN: "gap", Support.NOT_APPLICABLE: "none"}
"""The kind of mark of each support."""
VERDICTS = {Support.DOES_NOT_SUPPORT: "not supported", Support.NOT_KNOWN: "not known", Support.SUPPORTS: "supported"}
"""What is said of a requirement, in the order in which they are counted."""
SAID = {
    Support.DOES_NOT_SUPPORT: "do not support it",
    Support.NOT_KNOWN: "not known",
    Support.SUPPORTS: "support it",
    Support.NOT_APPLICABLE: "nothing to judge",
}
"""What is said of the controls of a requirement, in the order in which they are listed."""


@dataclass(frozen=True, kw_only=True, config=EXACT)
class ControlSupport:
    """One control of a requirement; ``why`` says why it does not support the requirement, or in spite of what it does."""

    code: str
    support: Support
    why: str = ""


@dataclass(frozen=True, kw_only=True, config=EXACT)
class RequirementResult:
    """One requirement and the support of each of its controls; controls that had nothing to judge do not count.

    ``cannot_show``: what no result of these controls shows of it. ``coverage``: how much of what its controls judge was assessed.
    """

    id: str
    title: str
    rationale: str
    cannot_show: str
    strict: bool
    support: Support
    controls: tuple[ControlSupport, ...]
    coverage: AssessedShare

    @property
    def not_run(self) -> int:
        """How many of the controls did not run; the coverage says nothing of these."""
        return sum(control.why == _DID_NOT_RUN for control in self.controls)

    def groups(self) -> Iterator["SupportGroup"]:
        """The controls by their support, as a report lists them."""
        for support in SAID:
            if found := [control for control in self.controls if control.support is support]:
                yield _group(support, found)


class SupportGroup(NamedTuple):
    """The controls of a requirement with one kind of support, as (code, why), and ``why`` all of them: then their own are empty."""

    support: Support
    why: str
    controls: tuple[tuple[str, str], ...]


def _group(support: Support, controls: Sequence[ControlSupport]) -> SupportGroup:
    """A reason that several share, and that counts nothing, is said once; what does not apply needs none."""
    reasons = [control.why if support is not Support.NOT_APPLICABLE else "" for control in controls]
    shared = len(reasons) > 1 and len(set(reasons)) == 1 and not any(letter.isdigit() for letter in reasons[0])
    own = ("" if shared else why for why in reasons)
    return SupportGroup(support, reasons[0] if shared else "", tuple(zip((one.code for one in controls), own, strict=True)))


@dataclass(frozen=True, kw_only=True, config=EXACT)
class FrameworkResult:
    """One framework of the policy."""

    id: str
    title: str
    edition: str
    source: str
    requirements: tuple[RequirementResult, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def counts(self) -> dict[str, int]:
        """The number of requirements for each kind of support."""
        found = Counter(requirement.support for requirement in self.requirements)
        return {support.value: found[support] for support in Support}


def assess(frameworks: Sequence[Framework], results: Sequence[ControlResult], *, void: bool) -> tuple[FrameworkResult, ...]:
    """Assess every requirement of every framework; with ``void`` evidence the support of all is not known."""
    by_code = {result.code: result for result in results}
    return tuple(
        FrameworkResult(
            **framework.model_dump(include={"id", "title", "edition", "source"}),
            requirements=tuple(_requirement(one, by_code, void) for one in framework.requirements),
        )
        for framework in frameworks
    )


def _requirement(requirement: Requirement, results: Mapping[str, ControlResult], void: bool) -> RequirementResult:
    controls = tuple(_control(code, results.get(code), requirement.strict, void) for code in requirement.supported_by)
    said = {control.support for control in controls}
    order = (Support.DOES_NOT_SUPPORT, Support.NOT_KNOWN, Support.SUPPORTS)
    return RequirementResult(
        **requirement.model_dump(include={"id", "title", "rationale", "cannot_show", "strict"}),
        support=next((one for one in order if one in said), Support.NOT_KNOWN),
        controls=controls,
        coverage=total(results[code].counted for code in requirement.supported_by if code in results).coverage,
    )


def _control(code: str, result: ControlResult | None, strict: bool, void: bool) -> ControlSupport:
    support, why = (Support.NOT_KNOWN, "the evidence is not fit to judge") if void else _said(result, strict)
    return ControlSupport(code=code, support=support, why=why)


def _said(result: ControlResult | None, strict: bool) -> tuple[Support, str]:
    """A failure decides first, then a result that is not known; a pass counts only if there is neither."""
    if result is None or result.counts is None:
        return Support.NOT_KNOWN, _DID_NOT_RUN
    counts = result.counts
    against = counts.failed if strict else counts.failed - counts.waived
    if against:
        waived = f", {counts.waived:,} of them waived" if strict and counts.waived else ""
        return Support.DOES_NOT_SUPPORT, f"{against:,} failing{waived}"
    if unknown := _unknown(result, counts, strict):
        return Support.NOT_KNOWN, unknown
    if counts.passed:
        return Support.SUPPORTS, f"{counts.failed:,} failing, and waived" if counts.failed else ""
    return (Support.NOT_KNOWN, "all failing, and waived") if counts.failed else (Support.NOT_APPLICABLE, "nothing to judge")


def _unknown(result: ControlResult, counts: Counts, strict: bool) -> str | None:
    """Which of the results are not known, or not known strictly enough; None when all are."""
    if counts.errored or counts.not_assessed:
        return f"{counts.errored + counts.not_assessed:,} not assessed"
    if result.set_aside:
        return f"{result.set_aside:,} without a past to compare with, not declared, or hidden by the managed service"
    loosened = sum(number for kind, number in result.tally.items() if kind.loosened is not None and kind.status == Status.PASS.value)
    return f"{loosened:,} judged by a loosened requirement" if strict and loosened else None
