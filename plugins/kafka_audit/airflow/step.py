"""How one task of an audit begins and ends: the seal is broken first, and a failure is written down where the gate finds it."""

import contextlib
import logging
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kafka_audit.airflow.retries import expected_error, final_errors
from kafka_audit.audit.plan import AuditPlan
from kafka_audit.audit.steps import FAILURES, RESULTS
from kafka_audit.errors import CollectionError
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import unseal_audit

log = logging.getLogger(__name__)


@contextlib.contextmanager
def audit_step(plan: AuditPlan, name: str) -> Iterator[bool]:
    """Run one of the STEPS of ``plan``'s audit; yields False when there is nothing to do.

    There is nothing to do when a later audit is already chained to this one: its files are evidence that a later manifest
    vouches for, and doing the step again could only break that chain. Otherwise the manifest is removed, because a folder that
    is being rewritten must not look sealed. A failure is kept as ``failures/<step>.json`` with its exit code and message until
    the step succeeds.
    """
    audit = plan.audit
    with final_errors():
        may_change = unseal_audit(audit)
    if not may_change:
        log.info("%s is kept as it is: a later audit is chained to %s. For a new result, start a new run.", name, plan.audit_id)
        yield False
        return
    note = audit.path / FAILURES / f"{name}.json"
    for stale in (note, *(audit.path / result for result in RESULTS[name])):
        _remove(stale)
    with final_errors():
        try:
            yield True
        except Exception as problem:
            expected = expected_error(problem)
            message = str(expected or problem) or type(problem).__name__
            kind = type(expected or problem).__name__
            with contextlib.suppress(CollectionError):  # a full disk refuses this note too; the task's own error is what counts
                write_json(note, {"step": name, "exit_code": expected.exit_code if expected else 1, "error": kind, "message": message})
            raise
    if note.parent.is_dir() and not any(note.parent.iterdir()):
        shutil.rmtree(note.parent, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def tell_seal(plan: AuditPlan, logger: logging.Logger) -> dict[str, Any]:
    """Log the audit's number and the sha256 of its manifest, and return them for the XCom: {audit_id, sequence, manifest_sha256}.

    Kept outside of the folder, they show whether it was rewritten: ``kafka-audit verify --chain CLUSTER --head SHA256``. Empty while the
    audit is not sealed.
    """
    with final_errors():
        seal = sealed_as(plan.audit.path)
    if seal is None:
        return {}
    logger.info("sealed: %s", seal)
    return asdict(seal)


def clock_of(plan: AuditPlan) -> datetime:
    """The audit's own time (UTC): when its evidence was first judged.

    Kept in ``run.json``, so that a repeated step gives the same result.
    """
    run = plan.audit.run()
    if "judged_at" not in run:
        run["judged_at"] = datetime.now(timezone.utc).isoformat()
        write_json(plan.audit.run_file, run)
    return datetime.fromisoformat(run["judged_at"])
