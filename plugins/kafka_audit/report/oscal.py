"""Writes the report as OSCAL 1.2.1 assessment results (NIST), which governance tools read.

- A rule of the catalogue is an objective, and has one finding. Its status is ``satisfied`` (reason ``pass``) only if the rule ran on fit
  evidence, all that applies passed, and nothing was set aside. Else it is ``not-satisfied``: reason ``fail`` for failures, ``other``
  for what is not known or did not apply, with the words in the remarks and in the prop ``status``. Nothing is satisfied because nothing
  was looked at.
- A finding is never about a framework's control: results support a requirement and do not prove it. Which requirements, its props say.
- Each failure, error and unassessed resource that the report lists is an observation; so are the counts of every rule.
- Methods follow the evidence: EXAMINE for what was read from the cluster or follows from it, INTERVIEW for what a person declared or
  attested, UNKNOWN where nobody has. The prop ``evidence-class`` has the class itself.
- A waiver in use is a risk with the status ``deviation-approved``, until it expires; its failures stay failures.
"""

import json
from collections.abc import Iterator
from typing import Any

from kafka_audit import __version__
from kafka_audit.findings import EvidenceClass
from kafka_audit.report import words
from kafka_audit.report.control_status import (
    UNFIT_EVIDENCE,
    Standing,
    counts_of,
    coverage_sentence,
    is_fit,
    judgement,
    left_out,
    left_out_sentences,
    requirements,
    standing,
)
from kafka_audit.report.inert_text import json_value, line, markdown
from kafka_audit.report.json_text import json_text
from kafka_audit.report.model import Report
from kafka_audit.report.oscal_parts import prop, props, token
from kafka_audit.report.oscal_sources import Sources
from kafka_audit.report.report_times import moment, times_of, zulu
from kafka_audit.report.resource_names import ResourceName, cluster_segment, fingerprint, resource_name, uuid_of
from kafka_audit.report.results import ControlResult, Finding
from kafka_audit.report.tally import WaiverUse

OSCAL_VERSION = "1.2.1"
_LEVELS = 5  # the document, the assessment, its results, the result, its observations: each is one line

_METHODS = {
    EvidenceClass.OBSERVED.value: "EXAMINE",
    EvidenceClass.INFERRED.value: "EXAMINE",
    EvidenceClass.DECLARED.value: "INTERVIEW",
    EvidenceClass.ATTESTED.value: "INTERVIEW",
}
_REASONS = {Standing.PASS: "pass", Standing.FAIL: "fail"}
_SAID = {
    Standing.FAIL: "It fails.",
    Standing.ERROR: "It could not be judged, because the rule raised an error.",
    Standing.NOT_ASSESSED: "It is not known, because evidence is missing.",
    Standing.DID_NOT_RUN: "It is not known, because the rule did not run.",
    Standing.UNFIT: "It is not known, because the evidence is not fit to judge.",
    Standing.IN_PART: "It passes where it could be judged. Results were set aside, so the whole is not known.",
    Standing.PASS: "It passes.",
    Standing.NOT_APPLICABLE: "It does not apply, because there was nothing to judge. This does not satisfy it.",
}


class _Result:
    """Makes the one result of a report."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._cluster = cluster_segment(report.collection.cluster_id, report.cluster)
        self.sources = Sources(report, self._cluster)
        self._collected = zulu(times_of(report).taken)
        self._requirements = requirements(report)
        self._fit = is_fit(report)
        self._left_out = left_out_sentences(report)
        self._names: list[tuple[ResourceName, str]] = []
        self._of_waiver: dict[str, list[str]] = {}
        self._waivers_of: dict[str, list[str]] = {}

    def made(self) -> dict[str, Any]:
        """The result object: what it is about, observations, risks (waivers) and findings."""
        report, when = self._report, times_of(self._report)
        observations = [one for result in report.results for one in self._observations(result)]
        risks = [self._risk(waiver) for waiver in report.waivers.listed if waiver.id in self._of_waiver]
        findings = [self._finding(result) for result in report.results]
        return {
            "uuid": uuid_of("result", report.audit_id),
            "title": markdown(f"Audit {report.audit_id} of {report.cluster}: {report.outcome.verdict}"),
            "description": markdown(words.summary(report)),
            "start": zulu(min(when.started, when.snapshot_started)),
            "end": zulu(when.generated),
            "props": self._props(),
            "links": self.sources.links,
            "local-definitions": self.sources.local_definitions(self._names),
            "reviewed-controls": self.sources.reviewed_controls(),
            **({"observations": observations} if observations else {}),
            **({"risks": risks} if risks else {}),
            **({"findings": findings} if findings else {}),
            "remarks": markdown(" ".join(report.outcome.reasons), "The gates gave no reason."),
        }

    def _props(self) -> list[dict[str, str]]:
        report = self._report
        facts = (
            ("audit-id", report.audit_id),
            ("verdict", report.outcome.verdict),
            ("exit-code", report.outcome.exit_code),
            ("snapshot-manifest-sha256", report.collection.manifest_sha256),
            ("catalogue-sha256", report.catalogue_sha256),
            ("rule-set-sha256", report.rule_set_sha256),
            ("policy-sha256", report.policy.sha256),
            ("rules-known", len(report.results)),
            ("rules-run", sum(result.counts is not None for result in report.results)),
            ("results-not-listed", sum(one.count for one in left_out(report))),
            ("compared-with-audit", report.comparison.compared_with if report.comparison else None),
        )
        return [*props(facts), *_counts(counts_of(report.counts))]

    def _observations(self, result: ControlResult) -> Iterator[dict[str, Any]]:
        method = _METHODS.get(result.evidence_class, "UNKNOWN")
        yield {
            "uuid": self._coverage_uuid(result),
            "title": markdown(f"{result.code} {result.title}: all results"),
            "description": markdown(coverage_sentence(result)),
            "props": [prop("evidence-class", result.evidence_class), *_counts(counts_of(result.counted))],
            "methods": [method],
            "types": ["control-objective"],
            "origins": self.sources.origins,
            "subjects": [{"subject-uuid": self.sources.cluster, "type": "component"}],
            "collected": self._collected,
        }
        for finding in (*result.failures, *result.errors, *result.not_assessed):
            yield self._observation(result, finding)

    def _observation(self, result: ControlResult, finding: Finding) -> dict[str, Any]:
        name = resource_name(self._cluster, finding.subject, finding.resource)
        self._names.append((name, finding.resource))
        print_, uuid = fingerprint(self._cluster, result.control_id, finding.subject, finding.resource), self._uuid(result, finding)
        waiver = self._report.waivers.find(finding.waiver)
        if waiver:
            self._of_waiver.setdefault(waiver.id, []).append(uuid)
            self._waivers_of.setdefault(result.control_id, []).append(waiver.id)
        comparison = self._report.comparison
        change = comparison.change_of(finding.control_id, finding.resource) if comparison and finding.status == "fail" else None
        facts = (
            *(("status", finding.status), ("fingerprint", print_), ("kafka-name", name.uri), ("evidence-class", finding.evidence_class)),
            *(("severity", finding.severity), ("catalogue-severity", finding.catalogue_severity), ("tier", finding.tier)),
            ("rule-sha256", finding.rule_sha256),
            *(("loosened", finding.loosened), ("waiver", waiver.id if waiver else None), ("change", change.value if change else None)),
        )
        evidence = json_value(finding.evidence)
        figures = json.dumps(evidence, sort_keys=True, ensure_ascii=True, allow_nan=False) if evidence is not None else None
        return {
            "uuid": uuid,
            "title": markdown(f"{result.code} {finding.status}: {finding.resource}"),
            "description": markdown(f"{finding.resource}: {judgement(finding)}"),
            "props": props(facts),
            "methods": [_METHODS.get(finding.evidence_class, "UNKNOWN")],
            "types": ["finding" if finding.status == "fail" else "discovery"],
            "origins": self.sources.origins,
            "subjects": [{"subject-uuid": uuid_of("item", name.uri), "type": "inventory-item", "title": markdown(finding.resource)}],
            "relevant-evidence": [{"href": f"#{self.sources.snapshot}", "description": markdown(figures, "No figures were recorded.")}],
            "collected": self._collected,
        }

    def _finding(self, result: ControlResult) -> dict[str, Any]:
        how = standing(result, fit=self._fit)
        state = "satisfied" if how is Standing.PASS else "not-satisfied"
        remarks = " ".join(
            [_SAID[how], coverage_sentence(result), *([] if self._fit else [UNFIT_EVIDENCE]), *self._left_out[result.control_id]]
        )
        findings = (*result.failures, *result.errors, *result.not_assessed)
        observed = [self._coverage_uuid(result), *(self._uuid(result, one) for one in findings)]
        waivers = dict.fromkeys(self._waivers_of.get(result.control_id, ()))
        named = [f"{framework.id}: {one.id}" for framework, one in self._requirements.get(result.code, ())]
        target = {
            "type": "objective-id",
            "target-id": token(result.control_id),
            "title": markdown(f"{result.code} {result.title}"),
            "status": {"state": state, "reason": _REASONS.get(how, "other"), "remarks": markdown(_SAID[how])},
            **({"implementation-status": {"state": "not-applicable"}} if how is Standing.NOT_APPLICABLE else {}),
        }
        facts = (
            *(("status", how.value), ("code", result.code), ("severity", result.worst), ("evidence-class", result.evidence_class)),
            ("rule-sha256", result.rule_sha256),
        )
        why = result.control.rationale if result.control else "The catalogue that was given for this report does not contain this rule."
        return {
            "uuid": uuid_of("finding", self._report.audit_id, result.control_id),
            "title": markdown(f"{result.code} {result.title}"),
            "description": markdown(why),
            "props": [*props(facts), *(prop("supports-requirement", one) for one in named)],
            "origins": self.sources.origins,
            "target": target,
            "related-observations": [{"observation-uuid": one} for one in observed],
            **({"related-risks": [{"risk-uuid": uuid_of("risk", self._report.audit_id, one)} for one in waivers]} if waivers else {}),
            "remarks": markdown(remarks),
        }

    def _risk(self, waiver: WaiverUse) -> dict[str, Any]:
        name, expires = waiver.id, moment(waiver.expires)
        kept = ("owner", "approver", "ticket", "control", "resource", "approved_on", "covered")
        return {
            "uuid": uuid_of("risk", self._report.audit_id, name),
            "title": markdown(f"Waiver {name}"),
            "description": markdown(f"Failures of {waiver.control} on {waiver.resource} were accepted: {words.waiver_sentence(waiver)}."),
            "statement": markdown(waiver.justification),
            "props": props((one.replace("_", "-"), getattr(waiver, one)) for one in kept),
            "status": "deviation-approved",
            **({"deadline": zulu(expires)} if expires else {}),
            "related-observations": [{"observation-uuid": one} for one in self._of_waiver[name]],
        }

    def _uuid(self, result: ControlResult, finding: Finding) -> str:
        print_ = fingerprint(self._cluster, result.control_id, finding.subject, finding.resource)
        return uuid_of("observation", self._report.audit_id, print_, finding.status)

    def _coverage_uuid(self, result: ControlResult) -> str:
        return uuid_of("coverage", self._report.audit_id, result.control_id)


def _counts(counts: dict[str, Any]) -> list[dict[str, str]]:
    return props((name.replace("_", "-"), "nothing applied" if value is None else value) for name, value in counts.items())


def as_oscal(report: Report) -> dict[str, Any]:
    """The assessment results as plain JSON values; every UUID is computed from the audit's id and what it identifies."""
    result = _Result(report)
    when = times_of(report)
    return {
        "assessment-results": {
            "uuid": uuid_of("assessment-results", report.audit_id),
            "metadata": {
                "title": markdown(f"Reliability audit of the Kafka cluster {report.cluster}"),
                "last-modified": zulu(when.generated),
                "version": line(report.audit_id),
                "oscal-version": OSCAL_VERSION,
                "props": [prop("written-by", f"kafka-audit {__version__}")],
            },
            "import-ap": {"href": f"#{result.sources.no_plan}", "remarks": "There is no assessment plan."},
            "results": [result.made()],
            "back-matter": result.sources.back_matter(),
        }
    }


def render(report: Report) -> str:
    """Render the OSCAL text in ASCII, an observation on each line. The same report gives the same bytes."""
    return json_text(as_oscal(report), _LEVELS)
