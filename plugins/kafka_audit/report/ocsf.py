"""Writes the report as OCSF 1.8.0 Compliance Findings (class 2003), the events that security lakes and SIEMs ingest.

The file is a JSON array with one event on each line: OCSF defines events and no file, an array is what readers of ``.json`` files accept
(DuckDB, Spark, jq, importers of scanner results), and without the brackets and commas each line is an event for a stream. Security Lake
itself takes Parquet, which is made of either.

There are three kinds of events, told apart by ``metadata.event_code``:

- ``result``: one control on one resource that failed, raised an error or was not assessed.
- ``coverage``: one control over all of its resources, with the number of results in each status; so this file alone shows coverage.
- ``verdict``: the audit as a whole, first in the file.

``compliance.status_id`` is 1 Pass, 3 Fail, 2 Warning where OCSF says so ("did not yield a result due to missing information": not assessed,
did not run), and 99 Other with the words ``Error`` and ``Not Applicable``. On evidence that is not fit to judge nothing passes: 0 Unknown.
``status_id`` is the state of the finding: a waived failure is 3 Suppressed, and still fails.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from kafka_audit import __version__
from kafka_audit.report import ocsf_ids as ids
from kafka_audit.report import words
from kafka_audit.report.comparison import Change
from kafka_audit.report.control_status import (
    UNFIT_EVIDENCE,
    Standing,
    counts_of,
    coverage_sentence,
    is_fit,
    left_out_sentences,
    no_longer,
    requirements,
    standing,
)
from kafka_audit.report.inert_text import json_value, line
from kafka_audit.report.model import Report
from kafka_audit.report.ocsf_facts import details_of, facts_of_finding, facts_of_report
from kafka_audit.report.report_times import epoch_ms, times_of
from kafka_audit.report.resource_names import cluster_segment, fingerprint, resource_name, uuid_of
from kafka_audit.report.results import ControlResult, Finding
from kafka_audit.safe_text import visible

OCSF_VERSION = "1.8.0"
_CLASS = 2003


class _Events:
    """Makes the events of one report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._cluster = cluster_segment(report.collection.cluster_id, report.cluster)
        self._times = times_of(report)
        self._requirements = requirements(report)
        self._fit = is_fit(report)
        self._left_out = left_out_sentences(report)

    def all(self) -> Iterator[dict[str, Any]]:
        """The verdict, then each control's coverage and its results, then the failures that are resolved."""
        yield self._verdict()
        for result in self._report.results:
            yield self._coverage(result)
            for finding in (*result.failures, *result.errors, *result.not_assessed):
                yield self._result(result, finding)
        yield from self._resolved()

    def _event(
        self,
        code: str,
        uid: str,
        *,
        state: ids.Id,
        activity: ids.Id,
        severity: ids.Id,
        compliance: dict[str, Any],
        finding: dict[str, Any],
        **more: object,
    ) -> dict[str, Any]:
        """An event with what all have; times in milliseconds. ``uid``: the finding's, which is the same in every audit of the cluster."""
        return {
            "activity_id": activity[0],
            "activity_name": activity[1],
            "category_name": "Findings",
            "category_uid": 2,
            "class_name": "Compliance Finding",
            "class_uid": _CLASS,
            "compliance": compliance,
            "finding_info": {
                "uid": uid,
                "product": {"name": "kafka-audit", "uid": "kafka-audit", "version": __version__},
                "data_sources": [f"snapshot {line(self._report.collection.snapshot_id)}"],
                **finding,
            },
            "metadata": {
                "correlation_uid": line(self._report.audit_id),
                "event_code": code,
                "logged_time": epoch_ms(self._times.generated),
                "product": {"name": "kafka-audit", "vendor_name": "kafka-audit", "version": __version__},
                "uid": uuid_of("event", self._report.audit_id, code, uid),
                "version": OCSF_VERSION,
            },
            "severity": severity[1],
            "severity_id": severity[0],
            "start_time": epoch_ms(self._times.snapshot_started),
            "end_time": epoch_ms(self._times.taken),
            "status": state[1],
            "status_id": state[0],
            "time": epoch_ms(self._times.taken),
            "type_name": f"Compliance Finding: {activity[1]}",
            "type_uid": _CLASS * 100 + activity[0],
            **more,
        }

    def _compliance(self, result: ControlResult, status: ids.Id, details: list[str]) -> dict[str, Any]:
        named = self._requirements.get(result.code, [])
        standards = [line(f"{framework.title} {framework.edition}") for framework, _ in named]
        return {
            "control": line(f"{result.code} {result.title}"),
            **({"desc": line(result.control.rationale)} if result.control else {}),
            "category": line(result.subject),
            "checks": [{"uid": line(result.control_id), "name": line(result.title), "status": status[1], "status_id": status[0]}],
            "standards": list(dict.fromkeys(standards)) or ["Catalogue of kafka-audit"],
            "requirements": [line(f"{framework.title} {framework.edition} {one.id}: {one.title}") for framework, one in named],
            "status": status[1],
            "status_id": status[0],
            "status_details": [line(detail) for detail in (*details, *([] if self._fit else [UNFIT_EVIDENCE]))],
        }

    def _resource(self, subject: str, resource: str) -> dict[str, Any]:
        name = resource_name(self._cluster, subject, resource)
        return {"uid": name.uri, "name": visible(resource), "type": name.kind, "namespace": f"kafka://{self._cluster}/"}

    def _result(self, result: ControlResult, finding: Finding) -> dict[str, Any]:
        waiver = self._report.waivers.find(finding.waiver)
        comparison = self._report.comparison
        failed = finding.status == "fail"
        change = comparison.change_of(finding.control_id, finding.resource) if comparison and failed else None
        state, activity = ids.OF_CHANGE[change]
        status, details = ids.OF_STATUS.get(finding.status, ids.UNKNOWN), details_of(finding, waiver)
        evidence = json_value(finding.evidence)
        remediation = (
            {"desc": line(result.control.remediation.text), "references": [line(one) for one in result.control.references]}
            if result.control
            else {}
        )
        return self._event(
            "result",
            fingerprint(self._cluster, result.control_id, finding.subject, finding.resource),
            state=ids.SUPPRESSED if waiver else state,
            activity=activity,
            severity=ids.SEVERITIES.get(finding.severity, (0, "Unknown")),
            compliance=self._compliance(result, status, details),
            finding={
                "title": line(f"{result.code} {result.title}: {finding.resource}"),
                "desc": line(" ".join(details)),
                "types": ["Reliability of Apache Kafka"],
            },
            message=line(f"{result.code} {status[1]}: {finding.resource}: {' '.join(details)}"),
            resources=[self._resource(finding.subject, finding.resource)],
            status_detail=line(" ".join(details)),
            unmapped={
                **facts_of_finding(finding, change),
                **({"waiver": {name: line(value) for name, value in sorted(asdict(waiver).items())}} if waiver else {}),
            },
            **({"evidences": [{"name": "figures", "data": _as_text(evidence)}]} if evidence is not None else {}),
            **({"remediation": remediation} if remediation and failed else {}),
        )

    def _coverage(self, result: ControlResult) -> dict[str, Any]:
        how = standing(result, fit=self._fit)
        status, details = ids.OF_STANDING[how], [coverage_sentence(result)]
        rest = self._left_out[result.control_id]
        counted = counts_of(result.counted)
        return self._event(
            "coverage",
            fingerprint(self._cluster, result.control_id, "cluster", "all results"),
            state=ids.NEW if status in (ids.FAIL, ids.ERROR, ids.WARNING, ids.UNKNOWN) else ids.NO_ACTION,
            activity=ids.CREATE,
            severity=ids.SEVERITIES.get(result.worst, (0, "Unknown")) if how is Standing.FAIL else ids.SEVERITIES["info"],
            compliance=self._compliance(result, status, [*details, *rest]),
            finding={
                "title": line(f"{result.code} {result.title}: coverage"),
                "desc": line(details[0]),
                "types": ["Coverage of a control"],
            },
            count=1,
            message=line(f"{result.code} {status[1]}: {details[0]}"),
            resources=[self._resource("cluster", "cluster")],
            status_detail=line(" ".join([*details, *rest])),
            unmapped={
                "standing": how.value,
                "ran": result.counts is not None,
                "counts": counted,
                "evidence_class": line(result.evidence_class),
                "sha256_of_rule": line(result.rule_sha256),
            },
        )

    def _verdict(self) -> dict[str, Any]:
        report, outcome = self._report, self._report.outcome
        status = ids.OF_VERDICT.get(outcome.verdict, ids.ERROR)
        failing = report.failing
        severity = (
            ids.SEVERITIES["info"] if status == ids.PASS else ids.SEVERITIES.get(failing[0].worst if failing else "high", (4, "High"))
        )
        summary = words.summary(report)
        return self._event(
            "verdict",
            fingerprint(self._cluster, "verdict", "cluster", "cluster"),
            state=ids.NO_ACTION if status == ids.PASS else ids.NEW,
            activity=ids.CREATE,
            severity=severity,
            compliance={
                "control": "The policy of the cluster is met",
                "standards": [line(f"{one.title} {one.edition}") for one in report.frameworks] or ["Catalogue of kafka-audit"],
                "status": status[1],
                "status_id": status[0],
                "status_code": outcome.verdict,
                "status_details": [line(one) for one in (summary, *outcome.reasons)],
            },
            finding={
                "title": line(f"Audit of {report.cluster}: {outcome.verdict}"),
                "desc": line(summary),
                "types": ["Verdict of an audit"],
            },
            message=line(f"{outcome.verdict} (exit code {outcome.exit_code}): {summary}"),
            resources=[self._resource("cluster", "cluster")],
            status_code=outcome.verdict,
            status_detail=line(" ".join((summary, *outcome.reasons))),
            unmapped=facts_of_report(report),
        )

    def _resolved(self) -> Iterator[dict[str, Any]]:
        by_id = {result.control_id: result for result in self._report.results}
        comparison = self._report.comparison
        for one in comparison.listed if comparison else ():
            if one.change is Change.RESOLVED and one.control_id in by_id:
                result, text = by_id[one.control_id], f"{one.resource}: failed in the previous audit, and {no_longer(one)}."
                status = ids.NOT_APPLICABLE if one.why else ids.PASS
                severity = ids.SEVERITIES.get(one.severity_before or result.severity, (0, "Unknown"))
                yield self._event(
                    "resolved",
                    fingerprint(self._cluster, one.control_id, one.subject, one.resource),
                    state=ids.RESOLVED,
                    activity=ids.CLOSE,
                    severity=severity,
                    compliance=self._compliance(result, status if self._fit else ids.UNKNOWN, [text]),
                    finding={"title": line(f"{result.code} {result.title}: {one.resource}"), "desc": line(text)},
                    message=line(f"{result.code} resolved: {text}"),
                    resources=[self._resource(one.subject, one.resource)],
                    unmapped={"status": "resolved", "observed_before": line(one.observed_before)},
                )


def _as_text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def as_ocsf(report: Report) -> list[dict[str, Any]]:
    """The events as plain JSON values."""
    return list(_Events(report).all())


def render(report: Report) -> str:
    """Render the events in ASCII, one on each line. The same report gives the same bytes."""
    return "[\n" + ",\n".join(map(_as_text, _Events(report).all())) + "\n]\n"  # without a list of all events, which takes 100 MB
