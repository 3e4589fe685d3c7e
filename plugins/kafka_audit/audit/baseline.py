"""Which earlier audit's failures count as old for a gate that blocks on new failures only.

It is the newest audit that could be compared with and was not itself blocked for new failures: else a failure would block only once, and
running the audit again would get past the gate. ``<audit>/comparison/baseline.json`` keeps the choice; the manifest seals the file, and
``verify`` checks the audit that it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_audit.audit.gate_result import GateResult, Judged, read_result
from kafka_audit.audit.previous import PassedOver, choose_previous, chosen_in, chosen_record, first_fit, not_signed, sealed_before, unfit
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Verdict
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, Snapshot
from kafka_audit.store.manifest import MANIFEST, bytes_of, parse_object, read_manifest
from kafka_audit.store.signing_key import signing_key

BASELINE = "comparison/baseline.json"
BLOCKED = "its gate blocked it for new failures"
_FAILURES = "GAT-01"
"""The rule of the findings gate that counts the failures that block."""


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """``seal``: the audit whose failures count as old; None if there is none.

    ``passed_over``: the audits from the previous one back to it, newest first, as (audit_id, why their failures do not count as old).
    """

    seal: Seal | None
    passed_over: PassedOver = ()


def choose_baseline(audit: Audit, snapshot: Snapshot) -> Baseline:
    """The baseline of an audit that judges ``snapshot``, as it was kept; else it is chosen now and kept, unless the audit is sealed.

    The walk begins at the previous audit. It never passes over an audit that is gone or was changed: that one is chosen, and nothing can
    be taken from it.
    """
    if (audit.path / BASELINE).exists():
        return read_baseline(audit)
    newest = choose_previous(audit, snapshot).seal
    seal, passed_over = first_fit(newest, audit.path.parent, lambda folder: unfit(folder, snapshot) or _not_accepted(folder))
    if not (audit.path / MANIFEST).exists():
        write_json(audit.path / BASELINE, chosen_record(seal, passed_over))
    return Baseline(seal=seal, passed_over=passed_over)


def read_baseline(audit: Audit) -> Baseline:
    """What ``comparison/baseline.json`` says; IntegrityError (exit 5) when it cannot be understood."""
    path = audit.path / BASELINE
    record = parse_object(path, bytes_of(path))
    try:
        seal, passed_over = chosen_in(record)
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{path}: does not say whose failures count as old ({problem!r:.200}): run the gate again") from problem
    return Baseline(seal=seal, passed_over=passed_over)


def not_signed_back_to(last: Seal, newest: Seal | None, audits: Path) -> str | None:
    """Why an installation that signs cannot trust the way back from the newest audit to ``last``: an audit on it has no such signature.

    An audit without it could name any older one as the audit before it. None if all are signed, or if the installation does not sign.
    """
    if signing_key() is None:
        return None
    for seal, folder in sealed_before(newest, audits):
        if why := not_signed(seal, folder):
            return why
        if seal == last:
            return None
    return f"audit {last.audit_id} is not in the chain before this audit"


def _not_accepted(folder: Path) -> str | None:
    """Why the failures of an audit that is as it was sealed do not count as old; None if they do.

    They do if its gate blocked on every failure, because then somebody chose to begin with them, or blocked on new ones and found none.
    """
    path = Audit(path=folder).gate / "findings.json"
    if not path.is_file():
        return "its findings were not judged by a gate"
    try:
        result = read_result(path)
    except IntegrityError as problem:
        return f"the result of its gate cannot be read ({problem!s:.200})"
    named = read_manifest(folder).get("snapshot")
    if not isinstance(named, Mapping):
        return None  # no release writes this: the comparison says so
    if result.snapshot is not None and result.snapshot.model_dump() != {name: named.get(name) for name in Judged.model_fields}:
        return "its gate judged other evidence"
    if result.let_through is None and not result.parameters.get("fail_on_new"):
        return None
    return None if result.passed or _found_none(result) else BLOCKED


def _found_none(result: GateResult) -> bool:
    """Whether a gate that did not pass for another reason found no failure to block on."""
    return any(one.rule_id == _FAILURES and one.status is Verdict.PASS for one in result.results)
