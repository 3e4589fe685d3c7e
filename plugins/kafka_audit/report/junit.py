"""Writes the report as JUnit XML, one suite for the gates and one per subject, so that a CI pipeline shows failures as failed tests."""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from kafka_audit import safe_text as text
from kafka_audit.audit.gate_result import GateResult
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Finding
from kafka_audit.report.shares import share_per_status
from kafka_audit.report.tally import WaiverTable, WaiverUse
from kafka_audit.report.words import hints, waiver_sentence

MOST_CASES = 10_000
"""The largest number of test cases. GitLab refuses a file of 30 MB or more; a test case has 1 to 2 KB."""
_GATE_CASES = 3
_CASES_PER_CONTROL = 4  # one for the failures beyond the listed ones, one for errors, one for what was not assessed, one for the rest
_LONGEST = 1000


def _safe(value: object) -> str:
    """Text for XML, at most 1,000 characters; characters that XML forbids and other invisible ones are spelled out."""
    kept, cut = text.shortened(str(value), _LONGEST)
    return text.visible(kept) + (f" ... {cut} more characters" if cut else "")


def _case(suite: ET.Element, result: ControlResult, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=_safe(f"{result.subject}.{result.control_id}"), name=_safe(name), time="0")


def _severity(finding: Finding) -> str:
    """The severity by tier, followed by the catalogue's if they differ."""
    changed = finding.severity != finding.catalogue_severity
    return f"{finding.severity} (catalogue: {finding.catalogue_severity})" if changed else finding.severity


def _details(result: ControlResult, finding: Finding, waiver: WaiverUse | None = None) -> str:
    lines = [
        f"control: {result.code} {result.title}",
        f"severity: {_severity(finding)}",
        f"observed: {finding.observed or 'not known'}",
        f"expected: {finding.expected or 'not known'}",
    ]
    lines += [f"reason: {finding.reason}"] if finding.reason else []
    lines += [f"loosened by tier {finding.tier}: {finding.loosened}"] if finding.loosened else []
    lines += [f"waived: {waiver_sentence(waiver)}; {waiver.justification}"] if waiver else []
    lines += [f"evidence: {finding.evidence}"] if finding.evidence else []
    return "\n".join(_safe(line) for line in lines)


def _failures(suite: ET.Element, result: ControlResult, waivers: WaiverTable, most: int) -> None:
    """Add the failures, ``most`` of each kind; a waived failure is still a failure, with its own type and message."""
    for finding in result.failures[:most]:
        observed, expected = finding.observed or "not known", finding.expected or "not known"
        waiver = waivers.find(finding.waiver)
        waived = f", waived by {waiver.id} until {waiver.expires}" if waiver else ""
        message = f"{result.code} {finding.severity}{waived}: observed {observed}, expected {expected}"
        kind = f"waived {finding.severity}" if waiver else finding.severity
        failure = ET.SubElement(_case(suite, result, finding.resource), "failure", type=_safe(kind), message=_safe(message))
        failure.text = _details(result, finding, waiver)
    for finding in result.errors[:most]:
        message = finding.reason or "the rule raised an error"
        error = ET.SubElement(_case(suite, result, finding.resource), "error", type="error", message=_safe(message))
        error.text = _details(result, finding)
    for finding in result.not_assessed[:most]:
        message = f"not assessed: {finding.reason or 'no reason was recorded'}"
        ET.SubElement(_case(suite, result, finding.resource), "skipped", message=_safe(message))


def _left_out(suite: ET.Element, result: ControlResult, most: int) -> None:
    """Add one test case for the failures beyond the listed ones, so that no failure is missing from the suite."""
    counts = result.counted
    rest = (
        ("failure", "failing", counts.failed - len(result.failures[:most])),
        ("error", "failed to run on", counts.errored - len(result.errors[:most])),
        ("skipped", "not assessed", counts.not_assessed - len(result.not_assessed[:most])),
    )
    for tag, word, count in rest:
        if count > 0:
            case = _case(suite, result, f"{count} more resources, {word}, that are not listed")
            ET.SubElement(case, tag, message=_safe(f"{result.code}: {count} more, {word}; see findings.parquet"))


def _others(suite: ET.Element, result: ControlResult, unfit: str) -> None:
    """Add a passed test case for a control that only passed, and a skipped one for a control that judged nothing.

    ``unfit``: why nothing passes in a void audit; empty for any other.
    """
    counts = result.counted
    if result.counts is None:
        ET.SubElement(_case(suite, result, result.title), "skipped", message="not assessed: the control did not run")
    elif counts.failed or counts.errored:
        return
    elif counts.passed:
        case = _case(suite, result, f"{result.title} ({counts.passed} passed)")
        if unfit:
            ET.SubElement(case, "skipped", message=unfit)
    elif not counts.applicable and not counts.still_open:
        ET.SubElement(_case(suite, result, result.title), "skipped", message="not applicable: nothing in scope to judge")


def _gate(suite: ET.Element, gate: GateResult) -> None:
    case = ET.SubElement(suite, "testcase", classname="gate", name=f"{gate.gate} gate", time="0")
    if not gate.ran:
        ET.SubElement(case, "error", type="error", message=_safe(" ".join(gate.reasons)))
    elif not gate.passed:
        verdict = gate.verdict.value if gate.verdict else "none"
        failure = ET.SubElement(case, "failure", type=verdict, message=f"{verdict}, exit code {gate.exit_code}")
        failure.text = "\n".join(_safe(reason) for reason in gate.reasons)


def _verdict(suite: ET.Element, report: Report) -> None:
    case = ET.SubElement(suite, "testcase", classname="gate", name="verdict", time="0")
    if report.outcome.exit_code:
        message = f"{report.outcome.verdict}, exit code {report.outcome.exit_code}"
        failure = ET.SubElement(case, "failure", type=report.outcome.verdict, message=message)
        failure.text = "\n".join(_safe(reason) for reason in report.outcome.reasons)


def _count(elements: Sequence[ET.Element]) -> dict[str, str]:
    tags = (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    cases = [case for element in elements for case in element.iter("testcase")]
    return {"tests": str(len(cases)), **{name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in tags}}


def render(report: Report) -> str:
    """Render the XML text. Missing evidence is a skipped test. A gate that did not pass is a failed test, so such an audit is not green."""
    stamp = report.generated_at.isoformat()
    most = share_per_status(report, MOST_CASES - _GATE_CASES - _CASES_PER_CONTROL * len(report.results))
    unfit = hints(report)
    root = ET.Element("testsuites", name=_safe(f"kafka-audit {report.cluster}"))
    gates = ET.SubElement(root, "testsuite", name="gate", timestamp=stamp, time="0")
    _verdict(gates, report)
    for gate in report.gates:
        _gate(gates, gate)
    for subject in sorted({result.subject for result in report.results}):
        suite = ET.SubElement(root, "testsuite", name=_safe(subject), timestamp=stamp, time="0")
        for result in report.results:
            if result.subject == subject:
                _failures(suite, result, report.waivers, most)
                _left_out(suite, result, most)
                _others(suite, result, unfit)
    for suite in root:
        suite.attrib.update(_count([suite]))
    # The schema of Jenkins' xUnit plugin allows no count of skipped tests here.
    root.attrib.update({name: number for name, number in _count([root]).items() if name != "skipped"})
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"
