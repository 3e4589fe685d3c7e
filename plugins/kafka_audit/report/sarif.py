"""Writes the report as SARIF 2.1.0 (an OASIS standard), which code scanning platforms and their viewers read.

Each verdict has the kind that SARIF (3.27.9) has for it:

- ``fail`` is ``fail``, with a level by severity. A waived failure stays one, with an accepted external suppression.
- ``not_assessed`` is ``open``: there is not enough information to decide. If only a person can attest it, it is ``review``.
- ``error`` is ``open``, too: a rule that raised decided nothing. It is also a notification of level ``error``, which by SARIF (3.20.21)
  means that the run is not complete: such a run must not be read as one that found nothing else.
- ``pass`` and ``not_applicable`` are one result a control with their number, so that the file alone shows what was covered. On evidence
  that is not fit to judge nothing passes: the passes are ``open``.

A result's logical location is its ``kafka://`` name. Its physical location is the same name as a relative path, because GitHub refuses
results without one, and whole files with another scheme than ``file``.
"""

from collections.abc import Iterator
from typing import Any

from kafka_audit import __version__
from kafka_audit.audit.outcome import FAILED, PASSED
from kafka_audit.findings import EvidenceClass
from kafka_audit.report import words
from kafka_audit.report.comparison import Change, ChangedFinding
from kafka_audit.report.control_status import UNFIT_EVIDENCE, counts_of, is_fit, judgement, left_out, no_longer
from kafka_audit.report.inert_text import json_value, line, message
from kafka_audit.report.json_text import json_text
from kafka_audit.report.model import Report
from kafka_audit.report.report_times import times_of, zulu
from kafka_audit.report.resource_names import cluster_segment, encoded, fingerprint, resource_name, uuid_of
from kafka_audit.report.results import ControlResult, Finding
from kafka_audit.report.sarif_rules import level_of, rules
from kafka_audit.report.shares import share_per_status

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST_RESULTS = 25_000
"""GitHub refuses a run with more results. Where the report has more, each control and status gets an equal share."""
_COUNTS_PER_CONTROL = 2
_LEVELS = 4  # the log, its runs, the run, its results: each result is one line
_BASELINE = {Change.NEW: "new", Change.WORSE: "updated", Change.UNCHANGED: "unchanged", Change.RESOLVED: "absent"}

_NOTIFICATIONS = (
    {"id": "verdict", "name": "NoVerdict", "shortDescription": {"text": "The audit ended without a verdict on the policy."}},
    {"id": "rule-error", "name": "RuleError", "shortDescription": {"text": "A rule raised an error on a resource."}},
    {"id": "not-listed", "name": "NotListed", "shortDescription": {"text": "Results are not listed in this file."}},
)


class _Results:
    """Makes the results of one report, each with its rule, location and fingerprint."""

    def __init__(self, report: Report, most: int) -> None:
        self._report = report
        self._most = most
        self._cluster = cluster_segment(report.collection.cluster_id, report.cluster)
        self._rules = {result.control_id: number for number, result in enumerate(report.results)}
        self._fit = is_fit(report)

    def all(self) -> list[dict[str, Any]]:
        """Failures, errors, unassessed resources and counts per control, in the order of the controls; at the end what was resolved."""
        made = [one for result in self._report.results for one in self._of_control(result)]
        return [*made, *self._resolved()]

    def _of_control(self, result: ControlResult) -> Iterator[dict[str, Any]]:
        most = self._most
        yield from (self._failure(result, finding) for finding in result.failures[:most])
        yield from (self._undecided(result, finding) for finding in (*result.errors[:most], *result.not_assessed[:most]))
        counts = result.counted
        if result.counts is None:
            yield self._count(result, "open", "did_not_run", 0, "The control did not run: nothing was assessed.")
        if counts.passed and self._fit:
            yield self._count(result, "pass", "pass", counts.passed, f"{words.counted(counts.passed, 'result')} passed.")
        elif counts.passed:
            text = f"{words.counted(counts.passed, 'result')} met the rule, on evidence that is not fit to judge: this is no pass."
            yield self._count(result, "open", "unfit", counts.passed, text)
        if counts.not_applicable or (result.counts is not None and not counts.applicable and not counts.still_open):
            text = f"{words.counted(counts.not_applicable, 'result')} did not apply."
            yield self._count(result, "notApplicable", "not_applicable", counts.not_applicable, text)

    def _made(self, result: ControlResult, kind: str, texts: list[str], of: tuple[str, str], mark: str | None = None) -> dict[str, Any]:
        """A result without details; ``of``: subject and resource. ``mark``: what its fingerprint names in place of the resource."""
        subject, resource = of
        name = resource_name(self._cluster, subject, resource)
        print_ = fingerprint(self._cluster, result.control_id, subject, resource if mark is None else mark)
        return {
            "ruleId": line(result.code),
            "ruleIndex": self._rules[result.control_id],
            "kind": kind,
            "level": "none",
            "message": {"text": " ".join(message(text) for text in (result.code, *texts))},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": f"{name.cluster}/{name.path}"},
                        "region": {"startLine": 1},
                    },
                    "logicalLocations": [{"name": line(resource), "fullyQualifiedName": name.uri, "kind": "resource"}],
                }
            ],
            "partialFingerprints": {"kafkaAuditResource/v1": print_, "primaryLocationLineHash": f"{print_[:16]}:1"},
            "suppressions": [],
        }

    def _count(self, result: ControlResult, kind: str, status: str, number: int, text: str) -> dict[str, Any]:
        made = self._made(result, kind, [f"{result.title}:", text], ("cluster", "cluster"), f"all results: {status}")
        return {**made, "properties": {"status": status, "count": number, "controlId": line(result.control_id)}}

    def _details(self, finding: Finding) -> dict[str, Any]:
        texts = ("subject", "resource", "status", "severity", "tier", "loosened", "reason", "observed", "expected")
        known = {name: line(value) for name in texts if (value := getattr(finding, name)) is not None}
        classes = {
            "controlId": finding.control_id,
            "evidenceClass": finding.evidence_class,
            "catalogueSeverity": finding.catalogue_severity,
        }
        evidence = json_value(finding.evidence)
        return {**known, **{key: line(value) for key, value in classes.items()}, **({} if evidence is None else {"evidence": evidence})}

    def _failure(self, result: ControlResult, finding: Finding) -> dict[str, Any]:
        waiver = self._report.waivers.find(finding.waiver)
        waived = [f"Waived: {words.waiver_sentence(waiver)}."] if waiver else []
        texts = [f"{finding.resource}:", judgement(finding), *waived, *([] if self._fit else [UNFIT_EVIDENCE])]
        made = self._made(result, "fail", texts, (finding.subject, finding.resource))
        made["level"] = level_of(finding.severity)
        made["properties"] = self._details(finding)
        comparison = self._report.comparison
        change = comparison.change_of(finding.control_id, finding.resource) if comparison else None
        if change is not None:
            made["properties"]["change"] = change.value
            made.update({"baselineState": _BASELINE[change]} if change in _BASELINE else {})
        if waiver:
            kept = ("id", "owner", "approver", "ticket", "approved_on", "expires")
            made["suppressions"] = [
                {
                    "kind": "external",
                    "status": "accepted",
                    "guid": uuid_of("waiver", waiver.id),
                    "justification": line(waiver.justification),
                    "properties": {name: line(getattr(waiver, name)) for name in kept},
                }
            ]
        return made

    def _undecided(self, result: ControlResult, finding: Finding) -> dict[str, Any]:
        failed = finding.status == "error"
        manual = finding.evidence_class == EvidenceClass.MANUAL.value and not failed
        texts = [f"{finding.resource}:", *(["Only a person can attest it."] if manual else []), judgement(finding)]
        made = self._made(result, "review" if manual else "open", texts, (finding.subject, finding.resource))
        return {**made, "properties": self._details(finding)}

    def _resolved(self) -> Iterator[dict[str, Any]]:
        by_id = {result.control_id: result for result in self._report.results}
        comparison = self._report.comparison
        for one in comparison.listed if comparison else ():
            if one.change is Change.RESOLVED and one.control_id in by_id:
                yield self._absent(by_id[one.control_id], one)

    def _absent(self, result: ControlResult, one: ChangedFinding) -> dict[str, Any]:
        texts = [
            f"{one.resource}:",
            f"Failed in the previous audit, and {no_longer(one)}. Observed then: {one.observed_before or 'not known'}.",
        ]
        made = self._made(result, "fail", texts, (one.subject, one.resource))
        severity = one.severity_before or result.severity
        properties = {"status": "resolved", "controlId": line(one.control_id), "resource": line(one.resource), "severity": line(severity)}
        return {**made, "level": level_of(severity), "baselineState": "absent", "properties": properties}


def _listed_of_each(report: Report) -> int:
    """How many findings per control and status the run lists, so that it has at most 25,000 results."""
    resolved = sum(one.change is Change.RESOLVED for one in report.comparison.listed) if report.comparison else 0
    return share_per_status(report, MOST_RESULTS - _COUNTS_PER_CONTROL * len(report.results) - resolved)


def _notifications(report: Report, most: int) -> list[dict[str, Any]]:
    """What went wrong while judging, and which results are not listed."""
    indexes = {result.control_id: number for number, result in enumerate(report.results)}
    found: list[dict[str, Any]] = []
    if report.outcome.verdict not in (PASSED, FAILED):
        found += [_notification("verdict", "error", reason) for reason in report.outcome.reasons]
    for result in report.results:
        found += [
            {
                **_notification("rule-error", "error", f"{result.code} {one.resource}: {one.reason or 'the rule raised an error'}"),
                "associatedRule": {"id": line(result.code), "index": indexes[result.control_id]},
            }
            for one in result.errors[:most]
        ]
    for rest in left_out(report, most):
        found.append(
            {
                **_notification("not-listed", "error" if rest.status == "error" else "warning", str(rest)),
                "associatedRule": {"id": line(rest.result.code), "index": indexes[rest.result.control_id]},
                "properties": {"status": rest.status, "count": rest.count, "file": line(rest.file)},
            }
        )
    return found


def _notification(name: str, level: str, text: str) -> dict[str, Any]:
    return {"descriptor": {"id": name}, "level": level, "message": {"text": message(text)}}


def _invocation(report: Report, most: int) -> dict[str, Any]:
    when, outcome = times_of(report), report.outcome
    notifications = _notifications(report, most)
    return {
        "startTimeUtc": zulu(when.started),
        "endTimeUtc": zulu(when.generated),
        "exitCode": outcome.exit_code,
        "exitCodeDescription": line(f"{outcome.verdict}: {words.summary(report)}"),
        "executionSuccessful": outcome.verdict in (PASSED, FAILED) and not any(one["level"] == "error" for one in notifications),
        "toolExecutionNotifications": notifications,
        "properties": {"verdict": outcome.verdict, "reasons": [line(reason) for reason in outcome.reasons]},
    }


def _properties(report: Report, most: int) -> dict[str, Any]:
    made = report.collection
    return {
        "verdict": report.outcome.verdict,
        "exitCode": report.outcome.exit_code,
        "reasons": [line(reason) for reason in report.outcome.reasons],
        "coverage": counts_of(report.counts),
        "controls": {
            "known": len(report.results),
            "run": sum(result.counts is not None for result in report.results),
            "failing": len(report.failing),
        },
        "clusterAlias": line(report.cluster),
        "clusterId": line(made.cluster_id),
        "auditId": line(report.audit_id),
        "snapshotId": line(made.snapshot_id),
        "hashes": {
            "snapshotManifest": line(made.manifest_sha256),
            "catalogue": line(report.catalogue_sha256),
            "ruleSet": line(report.rule_set_sha256),
            "policy": line(report.policy.sha256),
        },
        "findingsPerControlAndStatus": min(report.limit, most),
        "missing": [line(one) for one in report.missing],
    }


def as_sarif(report: Report) -> dict[str, Any]:
    """The SARIF log as plain JSON values: one run."""
    most = _listed_of_each(report)
    driver = {
        "name": "kafka-audit",
        "semanticVersion": __version__,
        "shortDescription": {"text": "A read-only reliability audit for Apache Kafka."},
        "fullDescription": {"text": "A read-only reliability audit for Apache Kafka: rules are judged on a sealed snapshot of a cluster."},
        "rules": rules(report),
        "notifications": [{**one, **dict.fromkeys(("fullDescription", "help"), one["shortDescription"])} for one in _NOTIFICATIONS],
    }
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "automationDetails": {
            "id": f"kafka-audit/{encoded(report.cluster)}/{encoded(report.audit_id)}",
            "guid": uuid_of("audit", report.audit_id),
            "description": {"text": message(f"Audit {report.audit_id} of the Kafka cluster {report.cluster}.")},
        },
        "invocations": [_invocation(report, most)],
        "results": _Results(report, most).all(),
        "columnKind": "unicodeCodePoints",
        "properties": _properties(report, most),
    }
    if report.comparison is not None and report.comparison.compared_with is not None:
        run["baselineGuid"] = uuid_of("audit", report.comparison.compared_with)
        run["properties"]["comparedWith"] = line(report.comparison.compared_with)
        run["properties"]["changes"] = dict(report.comparison.counts)
    elif report.comparison is not None:
        run["properties"]["notCompared"] = [line(note) for note in report.comparison.notes]
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def render(report: Report) -> str:
    """Render the SARIF text in ASCII, a result on each line.

    The same report gives the same bytes; fingerprints are the same in every audit of the cluster.
    """
    return json_text(as_sarif(report), _LEVELS)
