"""Begins and ends one task of an audit: checks its plan, removes the audit's seal, and records a failure in a file that the gate reads."""

import contextlib
import logging
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from kafka_audit.airflow.retries import expected_error, final_errors
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.outcome import FAILURES, RESULTS, STEPS
from kafka_audit.audit.published import PUBLISH_TASK
from kafka_audit.audit.request import AuditPlan, AuditRequest, check_request, make_plan
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import unseal_audit

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

log = logging.getLogger(__name__)


def checked_plan(plan: Mapping[str, Any], context: "Context | None" = None) -> AuditPlan:
    """The plan of the run whose task is running; the task fails for good when ``plan``, the XCom, says anything else.

    The audit's folder is as the root has it afterwards: of a root in a store, whatever machine did the steps before, it is copied here.

    An XCom can be edited by whoever may edit runs of the DAG, and a run's defaults by a new deployment between two of its tasks.
    """
    with final_errors():
        own = own_plan(context or get_current_context())
        refuse_another_plan(plan, own.model_dump(mode="json"))
        own.evidence_root.bring_audit(own.cluster, own.audit_id)
    return own


def own_plan(context: "Context") -> AuditPlan:
    """The plan that a run's own parameters, its DAG and its time give; ConfigurationError names what cannot be run."""
    run = context["dag_run"]
    request = check_request(AuditRequest, run.dag_id, context["params"], run.conf)
    return make_plan(request, root=audit_root(), dag_id=run.dag_id, run_id=run.run_id, run_after=run.run_after)


def refuse_another_plan(said: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """ConfigurationError unless the XCom ``said`` is what the run gives: ``own``."""
    other = sorted(name for name in {*said, *own} if name not in said or name not in own or said[name] != own[name])
    if other:
        told = "; ".join(f"{name}: planned {said.get(name)!r}, the run itself gives {own.get(name)!r}" for name in other)
        raise ConfigurationError(
            f"the plan is not that of this run ({told}): the XCom of its first task was edited, or the installation's settings were "
            "changed since. Start a new run"
        )


@contextlib.contextmanager
def audit_step(plan: AuditPlan, name: str) -> Iterator[bool]:
    """Run one of the STEPS of ``plan``'s audit; yields False when there is nothing to do.

    There is nothing to do when a later audit is already chained to this one: its files are evidence that a later manifest
    vouches for, and doing the step again could only break that chain. Otherwise the manifest is removed, because a folder that
    is being rewritten must not look sealed. A failure is kept as ``failures/<step>.json`` with its exit code and message until
    the step succeeds. To a root in a store everything is sent when the step ends, however it ends.
    """
    audit, remote = plan.audit, plan.evidence_root.remote
    with final_errors():
        may_change = unseal_audit(audit)
    if not may_change:
        why = "in a store a sealed audit is final" if remote else f"a later audit is chained to {plan.audit_id}"
        log.info("%s is kept as it is: %s. For a new result, start a new run.", name, why)
        yield False
        return
    note = audit.path / FAILURES / f"{name}.json"
    for stale in (note, *(audit.path / result for result in RESULTS[name])):
        _remove(stale)
    with final_errors():
        try:
            yield True
        except Exception as problem:
            note_failure(note, name, problem)
            if remote:
                with contextlib.suppress(AuditError):  # the step's own error is what counts
                    remote.send_audit(audit.path)
            raise
        if note.parent.is_dir() and not any(note.parent.iterdir()):
            shutil.rmtree(note.parent, ignore_errors=True)
        if remote:
            remote.send_audit(audit.path)


def note_failure(note: Path, step: str, problem: Exception) -> None:
    """Write why a step failed: its exit code, the kind of error and the message."""
    expected = expected_error(problem)
    message = str(expected or problem) or type(problem).__name__
    kind = type(expected or problem).__name__
    with contextlib.suppress(CollectionError):  # a full disk refuses this note too; the task's own error is what counts
        write_json(note, {"step": step, "exit_code": expected.exit_code if expected else 1, "error": kind, "message": message})


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


def run_states(plan: AuditPlan, context: "Context") -> dict[str, str]:
    """The states of the run's steps and of its publish task, by task id."""
    found = context["ti"].get_task_states(dag_id=plan.dag_id, task_ids=[*STEPS, PUBLISH_TASK], run_ids=[plan.run_id])
    return {task_id: str(state) for task_id, state in found.get(plan.run_id, {}).items()}


def clock_of(plan: AuditPlan) -> datetime:
    """The audit's own time (UTC): when its evidence was first judged.

    Kept in ``run.json``, so that a repeated step gives the same result.
    """
    run = plan.audit.run()
    if "judged_at" not in run:
        run["judged_at"] = datetime.now(timezone.utc).isoformat()
        write_json(plan.audit.run_file, run)
    return datetime.fromisoformat(run["judged_at"])
