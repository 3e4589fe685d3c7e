"""Checks one sealed review: its files, signature, record and proposed waivers, the audit that it is of, and the reviews around it."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic import ValidationError

from kafka_audit.audit.check import check_signature
from kafka_audit.audit.review_answer import ACCEPTED
from kafka_audit.audit.review_record import NOT_IDENTIFIED, read_record
from kafka_audit.audit.unpacked import is_package_of
from kafka_audit.errors import IntegrityError
from kafka_audit.input_files.strict_yaml import parse_yaml
from kafka_audit.policy.waivers import WaiverFile
from kafka_audit.store.chain_check import CHANGED, GONE, Checked
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import bytes_of, file_problems, manifest_sha256
from kafka_audit.store.reviews import RECORD, WAIVERS, SealedReview, audit_state, review_ids, sealed_review
from kafka_audit.store.sealed import REVIEW, identity_problems

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def check_review(folder: Path, root: EvidenceRoot, keys: Sequence["Ed25519PublicKey"] = ()) -> Checked:
    """Check a review in its place below ``root``: its files, its signature, the audit that it is of, the reviews around it, its waivers."""
    checked, cluster = Checked(), folder.parent.name
    place = root.place(cluster, REVIEW)
    one = SealedReview.open(folder)
    problems = [*file_problems(folder, one.manifest), *identity_problems(one.manifest, folder.name, place)]
    for problem in problems:
        checked.problem(f"review {folder.name}: {problem}")
    check_signature(folder, keys, checked)
    if problems:
        checked.note(f"review {folder.name}: what it names was not looked at, because it is not what was sealed there")
        return checked
    checked.intact(f"review {folder.name}: {len(one.manifest['files'])} files match their sha256")
    for look in (_check_record, _check_waivers):
        try:
            look(one, checked)
        except IntegrityError as problem:
            checked.problem(f"review {folder.name}: {problem}")
    try:
        _check_audit(one, root, cluster, checked)
        _check_neighbours(one, root, cluster, checked)
    except (IntegrityError, OSError) as problem:
        checked.problem(f"review {folder.name}: {problem}")
    return checked


def _check_record(one: SealedReview, checked: Checked) -> None:
    record = read_record(one)
    checked.intact(f"{RECORD}: is of the review and the audit that the manifest names; decision: {record.decision}")
    if record.reviewer is not None and not record.reviewer_identified:
        checked.note(NOT_IDENTIFIED)


def _check_waivers(one: SealedReview, checked: Checked) -> None:
    record, path = read_record(one), one.path / WAIVERS
    if WAIVERS not in one.manifest["files"]:
        if record.waivers:
            checked.problem(f"{WAIVERS}: is missing, and {RECORD} counts {record.waivers} waivers")
        return
    try:
        waivers = WaiverFile.model_validate(parse_yaml(bytes_of(path))).waivers
    except (yaml.YAMLError, ValidationError) as problem:
        raise IntegrityError(f"{WAIVERS}: is not a policy's waivers.yaml ({str(problem)!r:.200})") from problem
    if len(waivers) != record.waivers or record.decision != ACCEPTED:
        checked.problem(f"{WAIVERS}: has {len(waivers)} waivers, and {RECORD} says {record.decision} and counts {record.waivers}")
    else:
        checked.intact(f"{WAIVERS}: {len(waivers)} proposed waivers, which a policy can hold")


def _check_audit(one: SealedReview, root: EvidenceRoot, cluster: str, checked: Checked) -> None:
    reviewed, state = one.reviewed, audit_state(root, cluster, one.reviewed)
    what = f"audit {reviewed.audit_id}"
    if state == "as reviewed":
        checked.intact(f"{what}: its manifest is the one that was reviewed")
    elif state == "sealed again":
        checked.note(f"{what}: was done and sealed again after this review, which is of the earlier seal and says nothing of the new one")
    elif state == "gone":
        checked.problem(f"{what}: is gone, and nothing of this product deletes it", GONE)
    else:
        checked.problem(f"{what}: its manifest is not the one that was reviewed, so it was changed after the review")


def _check_neighbours(one: SealedReview, root: EvidenceRoot, cluster: str, checked: Checked) -> None:
    """The review before this one must be there as it was; one that names this one must name it as it is."""
    folder, before = root.reviews(cluster), one.before
    if before is not None:
        found = manifest_sha256(folder / before[0]) if (folder / before[0]).is_dir() else None
        if found is None and not os.path.lexists(folder / before[0]) and is_package_of(root, one.reviewed):
            checked.not_packed(f"review {before[0]}, the one before: is of another audit and not in this package, so it was not checked")
        elif found == before[1]:
            checked.intact(f"review {before[0]}, the one before: its manifest has the sha256 that this one names")
        else:
            why = "is gone" if found is None else "its manifest was changed"
            checked.problem(f"review {before[0]}, the one before: {why} since this one was sealed", GONE if found is None else CHANGED)
    after = []
    for review_id in review_ids(root, cluster):
        if review_id != one.path.name:
            try:
                said = sealed_review(root, cluster, review_id).before
            except IntegrityError as problem:
                checked.note(f"review {review_id}: was passed over ({problem})")
                continue
            if said is not None and said[0] == one.path.name:
                after.append((review_id, said[1]))
    for review_id, sha256 in after:
        if sha256 == one.manifest_sha256:
            checked.intact(f"review {one.path.name}: its manifest has the sha256 that the next one, {review_id}, names")
        else:
            checked.problem(f"review {one.path.name}: its manifest was changed after it was sealed: the next one names another sha256")
    if not after:
        checked.note(f"review {one.path.name}: no later one names its manifest; compare {one.manifest_sha256} with the run's log")
