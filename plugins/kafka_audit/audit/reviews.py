"""The reviews of an audit, as the web pages show them: each checked, and those that cannot be relied on with the reasons."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_audit.audit.review_answer import ACCEPTED
from kafka_audit.audit.review_check import check_review
from kafka_audit.audit.review_record import Record, read_record
from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import SIGNATURE
from kafka_audit.store.reviews import WAIVERS, SealedReview, audit_state, review_ids, sealed_review

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True, kw_only=True)
class Review:
    """One review as it is kept. ``problems``: why it cannot be relied on; then the other fields may be empty.

    ``record`` is None when it cannot be read. ``audit_state``: what became of the audit since: ``as reviewed``, ``sealed again`` (the
    review is of an earlier try), ``changed`` or ``gone``. ``signed``: there is a signature; without ``keys`` it was not checked.
    """

    review_id: str
    folder: Path
    sequence: int
    manifest_sha256: str
    signed: bool
    audit_state: str
    record: Record | None
    problems: tuple[str, ...]

    @property
    def accepts(self) -> bool:
        """Whether it shows that a person accepted the risk of the audit as it is now; the verdict of the audit stays FAILED."""
        return not self.problems and self.record is not None and self.record.decision == ACCEPTED and self.audit_state == "as reviewed"

    def in_force(self, at: datetime) -> bool:
        """Whether the acceptance has not expired at an aware datetime."""
        return self.accepts and self.record is not None and at < datetime.fromisoformat(self.record.expires)

    @property
    def waivers_file(self) -> Path | None:
        """The proposed waivers; None if there are none, or the review cannot be relied on."""
        return self.folder / WAIVERS if not self.problems and self.record is not None and self.record.waivers else None


def reviews_of(root: EvidenceRoot, cluster: str, audit_id: str, keys: Sequence["Ed25519PublicKey"] = ()) -> list[Review]:
    """The reviews of an audit, in the order in which they were recorded; each is checked, and its problems are told.

    One whose manifest cannot be read may be of any audit: it is in the list of each, last. ``keys``: as for ``verify``.
    """
    found, broken = [], []
    for review_id in review_ids(root, cluster):
        folder = root.reviews(cluster) / review_id
        try:
            one = sealed_review(root, cluster, review_id)
            mine = one.reviewed.audit_id == audit_id
        except IntegrityError as problem:
            broken.append(_unreadable(folder, str(problem)))
            continue
        if mine:
            found.append(_read(one, root, cluster, keys))
    return [*sorted(found, key=lambda one: (one.sequence, one.review_id)), *broken]


def _unreadable(folder: Path, problem: str) -> Review:
    return Review(
        review_id=folder.name,
        folder=folder,
        sequence=0,
        manifest_sha256="",
        signed=(folder / SIGNATURE).is_file(),
        audit_state="changed",
        record=None,
        problems=(problem,),
    )


def _read(one: SealedReview, root: EvidenceRoot, cluster: str, keys: Sequence["Ed25519PublicKey"]) -> Review:
    try:
        sequence, state, record = one.sequence, audit_state(root, cluster, one.reviewed), read_record(one)
        checked = check_review(one.path, root, keys)
    except (IntegrityError, OSError) as problem:
        return _unreadable(one.path, str(problem))
    return Review(
        review_id=one.path.name,
        folder=one.path,
        sequence=sequence,
        manifest_sha256=one.manifest_sha256,
        signed=(one.path / SIGNATURE).is_file(),
        audit_state=state,
        record=record,
        problems=(*checked.problems, *checked.absent),
    )
