"""The human step after a failed audit, with ``KAFKA_AUDIT_ON_FAIL=review``: asks a person, and records the answer beside the audits.

``needs_review`` goes on only for an audit that FAILED and is intact; ``review`` waits, without a worker, for someone to approve or reject;
``record_review`` checks and seals the answer. Nothing of this is before ``gate``: the verdict and the run's colour are never changed.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.providers.standard.operators.branch import BaseBranchOperator
from airflow.providers.standard.operators.hitl import ApprovalOperator, HITLOperator
from airflow.sdk import Param, task
from airflow.sdk.execution_time.hitl import HITLUser

from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.step import checked_plan
from kafka_audit.audit.outcome import FAILED, STEPS, Outcome, audit_outcome
from kafka_audit.audit.request import AuditPlan
from kafka_audit.audit.review_answer import FIELDS, MOST_NAME, MOST_REASON
from kafka_audit.audit.review_settings import ReviewSettings, review_settings
from kafka_audit.errors import IntegrityError
from kafka_audit.safe_text import visible
from kafka_audit.store import reviews
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.mirrors import where
from kafka_audit.store.sealed import AUDIT, Sealed
from kafka_audit.store.signing_key import signing_key

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from kafka_audit.report.recorded_review import Recorded
    from kafka_audit.report.review_request import Question

log = logging.getLogger(__name__)

TASK_ID = "review"


def add_review(plan: Any, settings: ReviewSettings) -> "NeedsReview":  # noqa: ANN401  (an XComArg)
    """Add the three tasks to the DAG that is being defined; returns the first, which belongs after ``report``."""
    first = NeedsReview(task_id="needs_review", plan=plan)
    # A review that waits counts as running where the tasks of one kind are limited: it must not hold back that of the next audit.
    asked = RiskReview(task_id=TASK_ID, plan=plan, settings=settings, params=review_params(settings), max_active_tis_per_dag=None)
    recorded: Any = record_review(plan)
    first >> asked >> recorded
    return first


class NeedsReview(BaseBranchOperator):
    """Goes on to ``review`` only for an audit that FAILED, and whose sealed folder is intact; of any other it skips the review."""

    template_fields: Sequence[str] = ("plan",)

    def __init__(self, *, plan: Any, **kwargs: Any) -> None:  # noqa: ANN401  (an XComArg until it is rendered)
        super().__init__(trigger_rule="all_done", **kwargs)
        self.plan = plan

    def choose_branch(self, context: "Context") -> str | None:
        """The task that follows; None skips it. AirflowFailException when the sealed audit was changed."""
        if not self.plan:
            log.info("there is nothing to review: the run was refused before it began")
            return None
        plan = checked_plan(self.plan, context)
        states = context["ti"].get_task_states(dag_id=plan.dag_id, task_ids=list(STEPS), run_ids=[plan.run_id])
        with final_errors():
            outcome = audit_outcome(plan.audit, plan.snapshot, states.get(plan.run_id, {}))
            if not is_reviewed(outcome):
                log.info("there is nothing to review: the audit ended %s, and only one that FAILED is reviewed", outcome.verdict)
                return None
            intact_seal(plan)
        return TASK_ID


def is_reviewed(outcome: Outcome) -> bool:
    """Whether a person can accept what the audit says: a void, incomplete or broken audit says nothing that could be accepted."""
    return outcome.verdict == FAILED


def intact_seal(plan: AuditPlan) -> Seal:
    """How the audit is sealed, after a check of its files, and of its signature where the installation signs; IntegrityError otherwise."""
    folder, key = plan.audit.path, signing_key()
    Sealed.verified(folder, plan.evidence_root.place(plan.cluster, AUDIT))
    if key is not None and (problems := key.problems(folder)):
        raise IntegrityError(f"{folder} is not signed by this installation ({problems[0]}): it is not reviewed")
    seal = sealed_as(folder)
    if seal is None:
        raise IntegrityError(f"{folder} is not sealed: clear the task report and run it again")
    return seal


def review_params(settings: ReviewSettings) -> dict[str, Param]:
    """The fields of the form. Nothing is required by Airflow, because whoever rejects fills in nothing: record_review checks the rest."""
    return {
        "reason": Param("", type="string", maxLength=MOST_REASON, title="Reason", description_md="Why the risk can be accepted for now."),
        "ticket": Param("", type="string", maxLength=MOST_NAME, title="Ticket", description_md="The ticket that repairs or tracks it."),
        "expires": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Expires",
            description_md=f"The acceptance ends at 00:00 UTC of this day: tomorrow or later, at most {settings.max_days} days away.",
        ),
        "owner": Param("", type="string", maxLength=MOST_NAME, title="Owner", description_md="Who owns the risk: not you, who approve it."),
    }


class RiskReview(ApprovalOperator):
    """Asks a person to accept the risk of a failed audit, and keeps the answer for ``record_review``.

    A rejection skips nothing here, other than in ApprovalOperator: it is recorded, too. What the person is asked is read from the audit
    when the task runs; the texts are no templates, so that names from the cluster cannot be evaluated.
    """

    template_fields: Sequence[str] = ("plan",)

    def __init__(self, *, plan: Any, settings: ReviewSettings, **kwargs: Any) -> None:  # noqa: ANN401  (an XComArg until it is rendered)
        super().__init__(
            subject="Accept the risk of this audit?",
            body="The question is written when the task runs.",
            defaults=self.REJECT,
            response_timeout=timedelta(hours=settings.hours),
            assigned_users=[HITLUser(id=user_id, name=name) for user_id, name in settings.reviewers] or None,
            retries=0,  # nobody is asked twice unless somebody clears the task
            **kwargs,
        )
        self.plan = plan

    def execute(self, context: "Context") -> Any:  # noqa: ANN401  (Airflow's)
        """Write the question, keep which seal it is about, and wait."""
        plan = checked_plan(self.plan, context)
        with final_errors():
            seal = intact_seal(plan)
            question = _review().ask(plan.audit, plan.cluster, seal, review_settings() or ReviewSettings())
            reviews.keep_question(plan.evidence_root, plan.cluster, seal)
        self.subject, self.body = question.subject, question.body
        return super().execute(context)

    def validate_params_input(self, params_input: Mapping[str, Any]) -> None:
        """Checks nothing: an answer that cannot be used must fail in record_review, with words that say how to correct it."""

    def execute_complete(self, context: "Context", event: dict[str, Any]) -> Any:  # noqa: ANN401  (Airflow's)
        """Keep the answer as Airflow's server hands it over: a user can edit the XCom, and so what others seem to have answered."""
        answer = HITLOperator.execute_complete(self, context, event)
        plan = checked_plan(self.plan, context)
        kept = {
            "chosen_options": event["chosen_options"],
            "params_input": {name: value for name, value in (event["params_input"] or {}).items() if name in FIELDS},
            "responded_at": event["responded_at"].isoformat(),
            "responded_by_user": event["responded_by_user"] and {name: event["responded_by_user"][name] for name in ("id", "name")},
            "timedout": event.get("timedout", False),
        }
        with final_errors():
            reviews.keep_answer(plan.evidence_root, plan.cluster, plan.audit_id, kept)
        return answer


@task(multiple_outputs=False)
def record_review(plan: dict[str, Any]) -> dict[str, Any]:
    """Check the answer and seal its record; an answer that cannot be used fails here and says how to answer again.

    The log and the XCom get the sha256 of the record's manifest: a witness outside of the folder.
    """
    made = checked_plan(plan)
    about = {"dag_id": made.dag_id, "run_id": made.run_id, "task_id": TASK_ID}
    with final_errors():
        max_days = (review_settings() or ReviewSettings()).max_days
        done = _review().record_answer(made.evidence_root, made.cluster, made.audit_id, max_days=max_days, about=about)
    who, sealed = done.answer.reviewer.text if done.answer.reviewer else "nobody", done.sealed
    log.info("%s by %s: %s%s", done.answer.decision, visible(who), sealed.path, "" if done.new else ", which was recorded before")
    log.info("sealed: review %s, number %s of its cluster, manifest sha256 %s", sealed.path.name, sealed.sequence, sealed.manifest_sha256)
    log.info("the verdict of the audit stays FAILED")
    place = {"review_id": sealed.path.name, "sequence": sealed.sequence, "manifest_sha256": sealed.manifest_sha256}
    return {"decision": done.answer.decision, "folder": where(sealed.path), "waivers": done.waivers, **place}


class _Review(NamedTuple):
    """The functions that write the question and record the answer."""

    ask: "Callable[..., Question]"
    record_answer: "Callable[..., Recorded]"


def _review() -> _Review:
    from kafka_audit.report import recorded_review, review_request  # noqa: PLC0415 - pyarrow: not at DAG parse

    return _Review(review_request.ask, recorded_review.record_answer)
