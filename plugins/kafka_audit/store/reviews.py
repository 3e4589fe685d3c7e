"""The records of what people answered to a cluster's failed audits: sealed folders beside the audits, numbered and chained like them.

``reviews/<cluster>/<review_id>/`` holds ``review.json``, the proposed ``waivers.yaml`` if the risk was accepted, and the manifest. An audit
is sealed before anybody looks at it, so nothing in its folder changes: the manifest of a review names the audit's seal as ``reviewed``,
and the review before it, of the same cluster, as ``review_before`` {review_id, sequence, manifest_sha256}.

``reviews/<cluster>/.answers/<audit_id>.json`` holds what was asked and answered until it is recorded. It is no evidence; it is there
because the tasks that ask and record run in different processes, and users of Airflow can edit what tasks pass to each other (XComs).
"""

import contextlib
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.chain_state import Seal, number_in, replaced_in, seal_in
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.locks import held
from kafka_audit.store.manifest import MANIFEST, bytes_of, manifest_sha256, parse_object, read_manifest
from kafka_audit.store.mirrors import bring
from kafka_audit.store.sealed import REVIEW, Sealed, seal
from kafka_audit.store.signing_key import signing_key
from kafka_audit.times import is_id

RECORD, WAIVERS = "review.json", "waivers.yaml"
_ANSWERS = ".answers"
_Read = TypeVar("_Read")

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SealedReview(Sealed):
    """The folder of one review."""

    kinds = (REVIEW,)

    @property
    def sequence(self) -> int:
        """Its number among the reviews of its cluster; IntegrityError when the manifest has none."""
        return _read(self.path, lambda: number_in(self.manifest["sequence"]))

    @property
    def reviewed(self) -> Seal:
        """The audit as it was when it was reviewed; IntegrityError when the manifest does not say."""
        return _read(self.path, lambda: seal_in(self.manifest["reviewed"]))

    @property
    def before(self) -> tuple[str, str] | None:
        """The review before it, as (review_id, sha256 of its manifest); None for the first. IntegrityError when it cannot be told."""
        said = self.manifest.get("review_before")
        if said is None and self.sequence == 1:
            return None
        if not isinstance(said, dict) or not is_id(str(said.get("review_id"))) or said.get("sequence") != self.sequence - 1:
            raise IntegrityError(f"{self.path / MANIFEST}: does not say which review came before; restore it from a copy")
        return str(said["review_id"]), str(said.get("manifest_sha256"))

    def record(self) -> dict[str, Any]:
        """The content of ``review.json``."""
        bring(self.path)
        return parse_object(self.path / RECORD, bytes_of(self.path / RECORD))


def _read(folder: Path, read: Callable[[], _Read]) -> _Read:
    try:
        return read()
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(
            f"{folder / MANIFEST}: does not say the review's place ({problem!r:.200}); restore it from a copy"
        ) from problem


def review_id_of(audit: Seal, answered_at: datetime) -> str:
    """The id of the record of one answer: the same answer always gets the same one."""
    return new_id(answered_at, f"review:{audit.audit_id}/{audit.manifest_sha256}/{answered_at.astimezone(timezone.utc).isoformat()}")


def review_ids(root: EvidenceRoot, cluster: str) -> list[str]:
    """Ids of the sealed reviews of a cluster, oldest answer first; their manifests may still turn out unreadable."""
    return root.sealed_ids(cluster, REVIEW)


def sealed_review(root: EvidenceRoot, cluster: str, review_id: str) -> SealedReview:
    """The review of that id; IntegrityError when there is none. Hashes are not checked."""
    return SealedReview.open(root.reviews(cluster) / review_id, root.place(cluster, REVIEW))


def keep_question(root: EvidenceRoot, cluster: str, asked: Seal) -> None:
    """Keep which seal of an audit a person is asked about; an earlier answer is forgotten, and its record, if there is one, stays."""
    _write_answer(root, _answer_file(root, cluster, asked.audit_id), {"asked": asdict(asked), "answer": None})


def keep_answer(root: EvidenceRoot, cluster: str, audit_id: str, answer: Mapping[str, Any]) -> None:
    """Keep the answer to the question about an audit. IntegrityError when none was asked."""
    asked, _ = read_answer(root, cluster, audit_id)
    _write_answer(root, _answer_file(root, cluster, audit_id), {"asked": asdict(asked), "answer": dict(answer)})


def read_answer(root: EvidenceRoot, cluster: str, audit_id: str) -> tuple[Seal, dict[str, Any] | None]:
    """The seal that a person was asked about, and the answer (None while there is none). IntegrityError when nothing was asked."""
    path = _answer_file(root, cluster, audit_id)
    if remote := root.remote:
        remote.bring_file(path)
    kept = parse_object(path, bytes_of(path)) if os.path.lexists(path) else {}
    try:
        answer = kept["answer"]
        return seal_in(kept["asked"]), dict(answer) if answer is not None else None
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{path}: does not hold a question about the audit: clear the task review, which asks again") from problem


def seal_review(root: EvidenceRoot, cluster: str, review_id: str, reviewed: Seal, files: Mapping[str, Mapping[str, Any] | str]) -> bool:
    """Write and seal the record of an answer, signed where the installation signs; False, and nothing is done, if it is there already.

    ``files``: contents by file name; a mapping is written as JSON. IntegrityError when ``reviewed`` is not how the audit is sealed now, or
    when the folder of that name holds something else.
    """
    key, place = signing_key(), root.place(cluster, REVIEW)
    folder = place.parent / review_id
    with held(place.parent):
        if manifest_sha256(folder) is not None or os.path.lexists(folder):
            SealedReview.verified(folder, place)
            return False
        if sealed_as(root.audit(cluster, reviewed.audit_id).path) != reviewed:
            raise IntegrityError(
                f"audit {reviewed.audit_id} is no longer sealed as when its review began: clear the task needs_review, which asks again"
            )
        before = _newest(root, cluster)
        sequence = before["sequence"] + 1 if before else 1
        identity = {
            **{"kind": REVIEW, "cluster": cluster, "review_id": review_id, "reviewed": asdict(reviewed)},
            **{"sequence": sequence, "review_before": before},
        }
        with replaced_folder(folder) as fresh:
            for name, content in files.items():
                if isinstance(content, str):
                    (fresh / name).write_text(content, encoding="utf-8")
                else:
                    write_json(fresh / name, content)
            seal(fresh, identity)
            if key is not None:
                key.sign(fresh, fresh / MANIFEST)
            if remote := root.remote:
                remote.seal_review(fresh, folder, sequence)
    return True


def _newest(root: EvidenceRoot, cluster: str) -> dict[str, Any] | None:
    """The review with the highest number, as ``review_before`` names it. One whose manifest is broken is passed over: ``verify`` tells."""
    newest: dict[str, Any] | None = None
    for review_id in review_ids(root, cluster):
        folder = root.reviews(cluster) / review_id
        with contextlib.suppress(IntegrityError):
            found = sealed_review(root, cluster, review_id)
            if newest is None or found.sequence > newest["sequence"]:
                newest = {"review_id": review_id, "sequence": found.sequence, "manifest_sha256": found.manifest_sha256}
            continue
        log.warning("%s is passed over: its manifest is not that of a review of %s", folder, cluster)
    return newest


def audit_state(root: EvidenceRoot, cluster: str, reviewed: Seal) -> str:
    """What became of the audit that was reviewed: ``as reviewed``, ``sealed again``, ``changed`` or ``gone``."""
    folder = root.audits(cluster) / reviewed.audit_id
    found = manifest_sha256(folder) if folder.is_dir() and not folder.is_symlink() else None
    if found is None:
        return "gone"
    if found == reviewed.manifest_sha256:
        return "as reviewed"
    try:
        return "sealed again" if reviewed.manifest_sha256 in replaced_in(read_manifest(folder)["replaces"]) else "changed"
    except (KeyError, TypeError, ValueError):
        return "changed"


def _write_answer(root: EvidenceRoot, path: Path, record: Mapping[str, Any]) -> None:
    write_json(path, record)
    if remote := root.remote:
        remote.send_file(path)


def _answer_file(root: EvidenceRoot, cluster: str, audit_id: str) -> Path:
    return root.reviews(cluster) / _ANSWERS / f"{root.audit(cluster, audit_id).path.name}.json"
