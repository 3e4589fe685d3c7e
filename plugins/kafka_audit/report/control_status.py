"""One control as a whole: how it stands, in how many words and numbers, what a report leaves out of it, which requirements name it."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafka_audit.audit.outcome import VOID
from kafka_audit.catalogue.rows import LAG, SUBJECTS
from kafka_audit.findings import Status
from kafka_audit.report.comparison import ChangedFinding
from kafka_audit.report.frameworks import FrameworkResult, RequirementResult
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Counts, Finding

UNFIT_EVIDENCE = "The evidence of this audit is not fit to judge: this is no verdict."


class Standing(StrEnum):
    """How a control stands over all its resources, the worst first.

    UNFIT: it only passed, on evidence that is not fit to judge. IN_PART: it passed, and some of its results were set aside, because there
    is no past to compare with, nobody declared what they judge, or the managed service hides it.
    """

    FAIL = "fail"
    ERROR = "error"
    NOT_ASSESSED = "not_assessed"
    DID_NOT_RUN = "did_not_run"
    UNFIT = "unfit"
    IN_PART = "pass_in_part"
    PASS = "pass"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """Results of a control in one status beyond those that the report lists, and the file that has all of them."""

    result: ControlResult
    status: str
    count: int
    file: str

    def __str__(self) -> str:
        return f"{self.result.code}: {self.count:,} more results with status {self.status} are not listed here; all are in {self.file}."


def is_fit(report: Report) -> bool:
    """Whether the evidence was fit to judge; on a void audit nothing passes."""
    return report.outcome.verdict != VOID


def standing(result: ControlResult, *, fit: bool) -> Standing:
    """How a control stands. It passes only if it ran on fit evidence, every applicable result passed, and none was set aside."""
    return standing_by(result.counts, result.set_aside, fit=fit)


def standing_by(counts: Counts | None, set_aside: int, *, fit: bool) -> Standing:
    """How a control stands by its counts, and by how many of its results were set aside; None: it did not run."""
    if counts is None:
        return Standing.DID_NOT_RUN
    if counts.failed:
        return Standing.FAIL
    if counts.errored:
        return Standing.ERROR
    if counts.not_assessed:
        return Standing.NOT_ASSESSED
    if counts.passed:
        return Standing.UNFIT if not fit else Standing.IN_PART if set_aside else Standing.PASS
    return Standing.NOT_APPLICABLE


def coverage_sentence(result: ControlResult) -> str:
    """How many results a control has in each status, and how much of what applies was assessed."""
    counts = result.counts
    if counts is None:
        return "The control did not run: nothing was assessed."
    waived = f" ({counts.waived:,} waived)" if counts.waived else ""
    aside = f" ({result.set_aside:,} of them set aside for a recorded reason)" if result.set_aside else ""
    by_status = (
        f"{counts.passed:,} passed, {counts.failed:,} failed{waived}, {counts.errored:,} could not be judged because of an error, "
        f"{counts.not_assessed:,} not assessed, {counts.not_applicable:,} not applicable{aside}"
    )
    manual = f"; {counts.still_open:,} of those not assessed wait for a person to attest" if counts.still_open else ""
    return f"{by_status}; {counts.assessed:,} of {counts.applicable:,} applicable results were assessed{manual}."


def judgement(finding: Finding) -> str:
    """What was observed and expected of a failure, or why a resource could not be judged, as a sentence or two."""
    if finding.status == Status.FAIL.value:
        return f"Observed: {finding.observed or 'not known'}. Expected: {finding.expected or 'not known'}."
    what = "The rule raised an error" if finding.status == Status.ERROR.value else "Not assessed"
    return f"{what}: {finding.reason or 'no reason was recorded'}."


def no_longer(resolved: ChangedFinding) -> str:
    """Why a failure is resolved, as the end of a sentence: what no longer exists did not pass."""
    return f"is gone: {resolved.why}" if resolved.why else "passes in this one"


def counts_of(counts: Counts) -> dict[str, Any]:
    """The counts by status, with assessed and applicable results and their ratio: null if nothing applies, never 1."""
    names = ("population", "passed", "failed", "waived", "errored", "not_assessed", "not_applicable", "assessed", "applicable")
    known = {name: getattr(counts, name) for name in names}
    return {**known, "waiting_for_attestation": counts.still_open, "coverage_ratio": counts.coverage.ratio}


def listed(result: ControlResult) -> tuple[tuple[str, tuple[Finding, ...], int], ...]:
    """(status, the findings that the report lists, the number that there are) for failures, errors and unassessed resources."""
    counts = result.counted
    return (
        ("fail", result.failures, counts.failed),
        ("error", result.errors, counts.errored),
        ("not_assessed", result.not_assessed, counts.not_assessed),
    )


def left_out(report: Report, most: int | None = None) -> tuple[LeftOut, ...]:
    """What the report does not list, per control and status, in the order of the controls.

    ``most``: how many of each a file lists, if that is less than the report has.
    """
    parts = {part: f"{part}/findings.parquet of audit {report.audit_id}" for part in ("settings", "lag")}
    return tuple(
        LeftOut(result=result, status=status, count=rest, file=parts["lag" if _is_lag(result) else "settings"])
        for result in report.results
        for status, findings, count in listed(result)
        if (rest := count - len(findings[:most])) > 0
    )


def left_out_sentences(report: Report) -> Mapping[str, list[str]]:
    """The sentences of :func:`left_out` by control id; empty where everything is listed."""
    found: dict[str, list[str]] = defaultdict(list)
    for rest in left_out(report):
        found[rest.result.control_id].append(str(rest))
    return found


def _is_lag(result: ControlResult) -> bool:
    subject = SUBJECTS.get(result.subject)
    return subject is not None and subject.part == LAG


def requirements(report: Report) -> Mapping[str, list[tuple[FrameworkResult, RequirementResult]]]:
    """The requirements of the policy's frameworks that name a control, by the control's code."""
    found: dict[str, list[tuple[FrameworkResult, RequirementResult]]] = defaultdict(list)
    for framework in report.frameworks:
        for requirement in framework.requirements:
            for control in requirement.controls:
                found[control.code].append((framework, requirement))
    return found
