"""``review.json``: what was answered to a failed audit, who answered as Airflow says, and which seal of the audit it is about."""

from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from kafka_audit.audit.outcome import FAILED
from kafka_audit.audit.review_answer import ACCEPTED, MOST_REASON, REJECTED, UNANSWERED, Answer
from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.reviews import RECORD, SealedReview

SCHEMA_VERSION = 1
NOT_IDENTIFIED = (
    "The reviewer is not known: Airflow lets everyone in as the same user (SIMPLE_AUTH_MANAGER_ALL_ADMINS), so this answer does not show "
    "who gave it. Have a person with a login of their own accept the risk before these waivers are used."
)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _User(_Strict):
    id: str
    name: str


class _Audit(_Strict):
    audit_id: str
    sequence: int
    manifest_sha256: str


class Record(_Strict):
    """``review.json``. ``waivers``: the number of proposed ones. ``left_out``: failures without a proposed waiver, in sentences."""

    schema_version: int
    review_id: str
    cluster: str
    audit: _Audit
    verdict: str
    decision: str
    reviewer: _User | None
    reviewer_identified: bool
    reason: str
    ticket: str
    owner: str
    expires: str
    decided_at: str
    dag_id: str
    run_id: str
    task_id: str
    waivers: int
    left_out: list[str]


def record_of(answer: Answer, review_id: str, audit: Seal, **about: str) -> dict[str, Any]:
    """The content of ``review.json``, without proposed waivers; ``about``: cluster, dag_id, run_id and task_id.

    Of a rejection nothing is demanded, so its texts may be empty.
    """
    expires = answer.expires_at.isoformat() if answer.decision == ACCEPTED else ""
    return {
        "schema_version": SCHEMA_VERSION,
        "review_id": review_id,
        **about,
        "audit": asdict(audit),
        "verdict": FAILED,
        "decision": answer.decision,
        "reviewer": asdict(answer.reviewer) if answer.reviewer else None,
        "reviewer_identified": answer.reviewer is not None and answer.reviewer.is_known,
        **{name: getattr(answer, name)[:MOST_REASON] for name in ("reason", "ticket", "owner")},
        "expires": expires,
        "decided_at": answer.decided_at.astimezone(timezone.utc).isoformat(),
        "waivers": 0,
        "left_out": [],
    }


def read_record(one: SealedReview) -> Record:
    """``review.json``, which must be of the review and the audit that the manifest names; IntegrityError otherwise."""
    where = one.path / RECORD
    try:
        record = Record.model_validate(one.record())
        if record.decision == ACCEPTED and datetime.fromisoformat(record.expires).tzinfo is None:
            raise ValueError("expires has no time zone")
    except (ValidationError, ValueError) as problem:
        raise IntegrityError(f"{where}: is not the record of a review ({str(problem)!r:.200})") from problem
    same = (
        record.review_id == one.path.name
        and record.cluster == one.manifest["cluster"]
        and record.audit.model_dump() == asdict(one.reviewed)
    )
    if not same or record.decision not in (ACCEPTED, REJECTED, UNANSWERED) or record.schema_version != SCHEMA_VERSION:
        raise IntegrityError(f"{where}: is of another review or audit than its manifest, or of another release")
    return record
