"""The two gates of an audit: is the evidence fit to be judged, and do the findings pass?"""

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from expectations.control_summary import summarise
from expectations.data_docs import build_docs
from expectations.snapshot_profile import profile_snapshot
from expectations.suites import SHIPPED, Suite, load_suite
from expectations.validation import Validation, validate
from kafka_audit.audit.gate_result import Coverage, GateResult, Judged, LetThrough, OldFailures, RuleResult, SuiteUsed, read_result
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.errors import AuditError, GateFailedError, IncompleteError
from kafka_audit.findings import Severity, Verdict
from kafka_audit.policy.waivers import Waiver, began, in_force
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, Snapshot

# Which failing rule decides the exit code when several fail: a known failure, then an untrustworthy audit, then a thin one.
_PRECEDENCE = (GateFailedError.exit_code, AuditError.exit_code, IncompleteError.exit_code)
EVIDENCE = "evidence"
FINDINGS = "findings"
_log = logging.getLogger(__name__)


def judge_evidence(
    snapshot: Snapshot, out: Path, *, now: datetime, max_age_seconds: int = 3600, hidden: Collection[str] = (), docs: bool = True
) -> GateResult:
    """Judge whether a snapshot is complete, fresh and typed enough; ``now`` is an aware datetime.

    ``hidden``: datasets that the managed service hides by its documentation; their failure as a whole voids nothing.

    Writes ``out/evidence.json``, ``out/raw/evidence.json`` and, with ``docs``, ``out/data_docs/``. The result's exit code is 0 (warnings
    allowed) or 4 (the audit is void); its coverage counts datasets. IntegrityError (exit 5) when the snapshot does not match
    its manifest or holds unreadable Parquet.
    """
    Snapshot.verified(snapshot.path)
    suite = load_suite(SHIPPED / "evidence_fit.json")
    profile = profile_snapshot(snapshot, now=now, hidden=hidden)
    validation = validate(suite, (profile.datasets, profile.snapshot), {"max_age_seconds": max_age_seconds})
    coverage = Coverage(assessed=profile.readable, applicable=len(DATASETS))
    parameters = {"now": now.isoformat(), "max_age_seconds": max_age_seconds, **({"hidden": sorted(hidden)} if hidden else {})}
    return _conclude(
        EVIDENCE, out, snapshot=snapshot, suite=suite, validation=validation, coverage=coverage, parameters=parameters, docs=docs
    )


def judge_findings(
    audit: Audit,
    snapshot: Snapshot,
    out: Path,
    *,
    fail_on: Severity,
    min_coverage: float,
    controls: Mapping[str, Severity],
    waivers: Sequence[Waiver] = (),
    old: OldFailures | None = None,
    docs: bool = True,
) -> GateResult:
    """Judge an audit's control summaries; ``controls`` is the catalogue that ran as id -> severity.

    ``waivers`` are the policy's; those in force when the audit began keep the failures they cover from blocking. ``old`` is given if the
    gate blocks on new failures only: those in it do not block. All other rules are the same.
    Writes ``out/findings.json``, ``out/raw/findings.json`` and, with ``docs``, ``out/data_docs/`` (both gates). Exit code: 3 when a finding
    fails at or above ``fail_on`` without a waiver; else 1 when the audit contradicts itself or a rule could not be computed; else 4 when
    coverage is below ``min_coverage``, a critical finding was not assessed, or the evidence gate in ``out`` did not pass this
    snapshot; else 0. IntegrityError (exit 5) when a table cannot be read.
    """
    suite = load_suite(SHIPPED / "findings_pass.json")
    summary = summarise(
        audit,
        snapshot_id=snapshot.snapshot_id,
        controls=controls,
        waivers=in_force(waivers, began(audit.run())) if waivers else (),
        fail_on=fail_on,
        evidence_verdict=_evidence_verdict(snapshot, out),
        old=old,
    )
    validation = validate(suite, (summary.controls, summary.totals), {"min_coverage": min_coverage})
    parameters = {"fail_on": fail_on.value, "min_coverage": min_coverage, **({"fail_on_new": True} if old else {})}
    let_through = LetThrough(**old.model_dump(exclude={"counts"}), failures=summary.old_failures) if old else None
    return _conclude(
        FINDINGS,
        out,
        snapshot=snapshot,
        suite=suite,
        validation=validation,
        coverage=summary.coverage,
        parameters=parameters,
        let_through=let_through,
        docs=docs,
    )


def _evidence_verdict(snapshot: Snapshot, out: Path) -> str:
    """``PASS`` only when the evidence gate passed exactly this snapshot; else what stands in the way."""
    path = out / f"{EVIDENCE}.json"
    if not path.is_file():
        return "not judged"
    judged = read_result(path)
    if not judged.is_about(snapshot):
        return f"given to another snapshot, {judged.snapshot.snapshot_id if judged.snapshot else 'which it does not name'}"
    return "PASS" if judged.passed else f"{judged.verdict.value if judged.verdict else 'none'} (void)"


def _conclude(
    gate: str,
    out: Path,
    *,
    snapshot: Snapshot,
    suite: Suite,
    validation: Validation,
    coverage: Coverage,
    parameters: Mapping[str, Any],
    let_through: LetThrough | None = None,
    docs: bool,
) -> GateResult:
    verdict, exit_code = decide(validation.results)
    result = GateResult(
        gate=gate,
        verdict=verdict,
        exit_code=exit_code,
        reasons=_reasons(validation.results),
        coverage=coverage,
        results=validation.results,
        suite=SuiteUsed(name=suite.name, sha256=suite.sha256, expectations=len(validation.results)),
        snapshot=Judged(snapshot_id=snapshot.snapshot_id, manifest_sha256=snapshot.manifest_sha256),
        parameters=dict(parameters),
        let_through=let_through,
    )
    write_json(out / "raw" / f"{gate}.json", {"schema_version": result.schema_version, "suite": suite.name, "tables": validation.raw})
    write_json(out / f"{gate}.json", result.model_dump(mode="json"))
    if docs:
        build_docs(out)
    _log.info("gate %s: %s, exit code %d, %d reasons", gate, verdict.value, exit_code, len(result.reasons))
    return result


def _reasons(results: tuple[RuleResult, ...]) -> tuple[str, ...]:
    """What did not pass, blocking rules first, each group in the order of the suite."""
    found = [result for result in results if result.status.value != "PASS"]
    return tuple(result.reason for result in sorted(found, key=lambda result: not result.blocks))


def decide(results: Sequence[RuleResult]) -> tuple[Verdict, int]:
    """The verdict and exit code over all rules: 0 only when no rule blocks.

    Exit 3 (a known failure) outranks 1 (the audit cannot be trusted), which outranks 4 (too little is known).
    """
    blocking = [result for result in results if result.blocks]
    if not results:
        return Verdict.VACUOUS, IncompleteError.exit_code
    if not blocking:
        return Verdict.PASS, 0
    codes = {result.exit_code for result in blocking}
    code = next(code for code in _PRECEDENCE if code in codes)
    statuses = {result.status for result in blocking}
    if code == GateFailedError.exit_code:
        return Verdict.FAIL, code
    return next(status for status in (Verdict.ERROR, Verdict.FAIL, Verdict.VACUOUS) if status in statuses), code
