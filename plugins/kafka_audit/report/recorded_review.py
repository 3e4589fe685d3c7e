"""Records the answer to a failed audit: checks it, proposes waivers if the risk is accepted, and seals both beside the audits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_audit.audit.review_answer import ACCEPTED, Answer, check_acceptance, read_answer
from kafka_audit.audit.review_record import record_of
from kafka_audit.errors import IntegrityError
from kafka_audit.report.proposed_waivers import propose
from kafka_audit.store import reviews
from kafka_audit.store.layout import EvidenceRoot


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The answer and its sealed folder; ``new`` is False if it had been recorded before."""

    answer: Answer
    sealed: reviews.SealedReview
    waivers: int
    new: bool


def record_answer(root: EvidenceRoot, cluster: str, audit_id: str, *, max_days: int, about: Mapping[str, str]) -> Recorded:
    """Seal the record of the answer that is kept for an audit; ``about``: dag_id, run_id and task_id.

    The same answer is recorded once. ConfigurationError says what to correct where a risk cannot be accepted like that, and IntegrityError
    when there is no answer, or when the audit is no longer what was asked about; nothing is recorded then.
    """
    asked, kept = reviews.read_answer(root, cluster, audit_id)
    if kept is None:
        raise IntegrityError("there is no answer yet: clear the task review, which asks again")
    answer = read_answer(kept)
    review_id = reviews.review_id_of(asked, answer.decided_at)
    files: dict[str, Any] = {}
    waivers = 0
    left_out: tuple[str, ...] = ()
    if answer.decision == ACCEPTED:
        check_acceptance(answer, max_days)
        proposed = propose(root.audit(cluster, audit_id), answer, review_id, asked)
        waivers, left_out = proposed.count, proposed.left_out
        files[reviews.WAIVERS] = proposed.text
    record = record_of(answer, review_id, asked, cluster=cluster, **about)
    files[reviews.RECORD] = {**record, "waivers": waivers, "left_out": list(left_out)}
    new = reviews.seal_review(root, cluster, review_id, asked, files)
    return Recorded(answer=answer, sealed=reviews.sealed_review(root, cluster, review_id), waivers=waivers, new=new)
