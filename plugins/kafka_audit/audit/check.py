"""Checks every hash in one sealed audit: its own files, its snapshot, earlier evidence, policy and controls, neighbouring audits."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.audit.baseline import BASELINE, read_baseline
from kafka_audit.audit.formats import not_written
from kafka_audit.audit.inputs import CONTROLS, Used, rule_hashes, used_by
from kafka_audit.audit.judged_rules import other_rules, result_tables
from kafka_audit.audit.previous import PREVIOUS, changed, read_choice
from kafka_audit.audit.unpacked import is_package_of
from kafka_audit.catalogue.rule import read_rules, rule_set_sha256
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.chain_check import CHANGED, GONE, Checked
from kafka_audit.store.chain_state import STATE, number_in, read_state
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.locks import held_to_read
from kafka_audit.store.manifest import MANIFEST, SIGNATURE, FileHashes, file_problems, manifest_sha256, read_manifest
from kafka_audit.store.sealed import AUDIT, Place, Sealed, identity_problems, link_problems, shown
from kafka_audit.store.signing import signature_problems
from kafka_audit.times import is_id

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_UNUSABLE = (OSError, AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""What reading a record that anybody may have written raises."""


def check_audit(folder: Path, root: EvidenceRoot, keys: Sequence["Ed25519PublicKey"] = (), hashes: FileHashes | None = None) -> Checked:
    """Check the audit in ``folder``, which is named as its place says, and what it names below ``root``.

    What retention deleted is told and is no problem while the audit's own copy is intact; so is a day or table that was made again since.
    With ``keys`` a seal without a valid signature of one of them is a problem. Nothing is read from an audit whose own files are not as
    they were sealed, or that is another audit.
    """
    checked, known, cluster = Checked(), hashes or FileHashes(), folder.parent.name
    root.audits(cluster)
    manifest = read_manifest(folder)
    place = Place(kind=AUDIT, cluster=cluster, root=root.path)
    problems = [*file_problems(folder, manifest, known), *identity_problems(manifest, folder.name, place)]
    for problem in problems:
        checked.problem(f"audit {folder.name}: {problem}")
    check_signature(folder, keys, checked)
    if problems:
        checked.note(f"audit {folder.name}: what it names was not looked at, because it is not what was sealed there")
        return checked
    checked.intact(f"audit {folder.name}: {len(manifest['files'])} files match their sha256")
    for missing in not_written(manifest.get("not_written")):
        checked.note(f"audit {folder.name}: was sealed without one format: {missing}")
    for problem in link_problems(folder, manifest):
        checked.problem(f"audit {folder.name}: {problem}")
    _step(checked, "the chain", lambda: _neighbours(folder, manifest, checked))
    _step(checked, "the snapshot", lambda: _snapshot(root, cluster, manifest, known, checked))
    packed = (seal := sealed_as(folder)) is not None and is_package_of(root, seal)
    _step(checked, "the earlier evidence", lambda: _earlier(folder, root, cluster, known, checked, packed=packed))
    _step(checked, "the comparison", lambda: _compared(folder, manifest, checked, packed=packed))
    _step(checked, "the rules", lambda: _rules(Audit(path=folder), manifest, checked))
    _step(checked, "the results", lambda: _results(Audit(path=folder), manifest, checked))
    return checked


def check_files(folder: Path, manifest: dict[str, Any], place: Place | None, keys: Sequence["Ed25519PublicKey"] = ()) -> Checked:
    """Check the files of a sealed folder, what it says it is, and its signature; not what it names, as for a copy in no root."""
    checked = Checked()
    for problem in (*file_problems(folder, manifest), *identity_problems(manifest, folder.name, place)):
        checked.problem(f"{folder.name}: {problem}")
    if place is None:
        checked.note(
            f"{folder.name}: stands alone, outside of any root: only its own files were checked, and no place says what it must be"
        )
    check_signature(folder, keys, checked)
    return checked


def check_signature(folder: Path, keys: Sequence["Ed25519PublicKey"], checked: Checked) -> None:
    """Check a folder's signature by the keys; without a key only say that there is one."""
    if keys:
        problems = signature_problems(folder, keys)
        for problem in problems:
            checked.problem(f"{folder.name}: {problem}")
        if not problems:
            checked.intact(f"{folder.name}: the signature of its manifest is of the key given")
    elif (folder / SIGNATURE).exists():
        checked.note(f"{folder.name}: is signed; the signature was not checked, because no --key was given")


def _step(checked: Checked, what: str, look: Callable[[], None]) -> None:
    """One part of the check; a part that cannot be read is a problem and does not keep the others from being looked at."""
    try:
        look()
    except (IntegrityError, ConfigurationError, *_UNUSABLE) as problem:
        checked.problem(f"{what} cannot be checked: {problem}")


def _neighbours(folder: Path, manifest: dict[str, Any], checked: Checked) -> None:
    """What the audits beside it say about this one. The whole chain: ``verify --chain``."""
    seal = sealed_as(folder)
    if seal is None:
        raise IntegrityError(f"{folder} is not sealed")
    with held_to_read(folder.parent) as unlocked:
        if unlocked:
            checked.note(unlocked)
        state = read_state(folder.parent)
        said = []
        if state and state.head and state.head.audit_id == seal.audit_id:
            said.append((STATE, state.head.manifest_sha256))
        for path in folder.parent.glob(f"[!.]*/{MANIFEST}"):
            beside = path.parent
            previous = read_manifest(beside).get("previous") if is_id(beside.name) and beside.name != folder.name else None
            if previous and previous.get("audit_id") == seal.audit_id:
                said.append((f"audit {beside.name}", previous.get("manifest_sha256")))
    for who, sha256 in said:
        if sha256 == seal.manifest_sha256:
            checked.intact(f"audit {seal.audit_id}: its manifest has the sha256 that {who} names")
        else:
            checked.problem(f"audit {seal.audit_id}: its manifest was changed after it was sealed: {who} names another sha256")
    if not said:
        checked.note(f"audit {seal.audit_id}: nothing beside it names its manifest; compare {seal.manifest_sha256} with the run's log")
    if seal.sequence > 1 and not manifest.get("previous") and not manifest.get("reopened"):
        checked.problem(f"audit {seal.audit_id}: has number {seal.sequence} and names no audit before it: the link was removed")


def _snapshot(root: EvidenceRoot, cluster: str, manifest: dict[str, Any], known: FileHashes, checked: Checked) -> None:
    said = manifest["snapshot"]
    folder = root.snapshot_dir(cluster, str(said["snapshot_id"]))
    _sealed(f"snapshot {folder.name}", folder, str(said["manifest_sha256"]), known, checked)


def _sealed(what: str, folder: Path, sha256: str, known: FileHashes, checked: Checked) -> None:
    """A folder that nothing deletes and nothing makes again: it must be there as it was."""
    found = manifest_sha256(folder, known)
    if found is None:
        checked.problem(f"{what}: is gone: {folder} has no {MANIFEST}; nothing of this product deletes it, and the audit has no copy", GONE)
    elif found != sha256:
        checked.problem(f"{what}: its manifest is not the one that the audit names, so it was changed after the audit")
    elif problems := Sealed.open(folder).problems(known):
        checked.problem(f"{what}: {shown(problems)}")
    else:
        checked.intact(what)


def _earlier(folder: Path, root: EvidenceRoot, cluster: str, known: FileHashes, checked: Checked, *, packed: bool) -> None:
    for used in used_by(Audit(path=folder), root, cluster):
        original = root.path / used.place
        if not used.copied and packed and not os.path.lexists(original):
            checked.not_packed(f"earlier {used}: is not in this package, so it was not checked")
            continue
        if not used.copied:
            _sealed(f"earlier {used}", original, used.manifest_sha256, known, checked)
            continue
        copy = folder / "inputs" / used.place
        problem, found = _copy_problem(copy, used, known), manifest_sha256(original, known)
        if problem:
            checked.problem(f"{used}: the audit's copy {problem}")
        elif found is None:
            checked.gone(f"{used}: deleted since; the audit's copy is intact")
        elif found == used.manifest_sha256 and not Sealed.open(original).problems(known):
            checked.intact(f"{used}: as the audit used it, and so is the audit's copy")
        elif used.remade and found != used.manifest_sha256 and not Sealed.open(original).problems(known):
            checked.note(f"{used}: was made again since; the audit's copy is what was used, and is intact")
        else:
            checked.problem(f"{used}: {original} was changed; the audit's copy is intact")


def _copy_problem(copy: Path, used: Used, known: FileHashes) -> str | None:
    found = manifest_sha256(copy, known)
    if found is None:
        return "is missing"
    if found != used.manifest_sha256:
        return "is not what the audit used"
    return shown(Sealed.open(copy).problems(known)) or None


def _compared(folder: Path, manifest: dict[str, Any], checked: Checked, *, packed: bool) -> None:
    """The audits that the report and the gate compared this one with must be earlier ones, and still be as they were."""
    audit, named = Audit(path=folder), {}
    if (folder / BASELINE).is_file() and (baseline := read_baseline(audit).seal) is not None:
        named[baseline] = "whose failures count as old in the gate of this one"
    if (folder / PREVIOUS).is_file():
        chosen = read_choice(audit)
        if (previous := chosen.seal or chosen.newest) is not None:
            named[previous] = "which this one was compared with"
    for seal, role in named.items():
        what = f"audit {seal.audit_id}, {role}"
        if seal.sequence >= number_in(manifest.get("sequence")) or seal.audit_id == folder.name:
            checked.problem(f"{what}: is not an earlier audit")
        elif packed and not os.path.lexists(folder.parent / seal.audit_id):
            checked.not_packed(f"{what}: is not in this package, so it was not checked")
        elif (why := changed(seal, folder.parent / seal.audit_id)) is not None:
            checked.problem(f"{what}: {why}", CHANGED if manifest_sha256(folder.parent / seal.audit_id) else GONE)
        else:
            checked.intact(what)


def _rules(audit: Audit, manifest: dict[str, Any], checked: Checked) -> None:
    if "policy_sha256" not in manifest or "catalogue_sha256" not in manifest:
        raise IntegrityError("the manifest does not name the policy and the controls that were used")
    try:
        found = rule_hashes(audit)
    except ConfigurationError as problem:
        raise IntegrityError(
            f"the audit's copies are not a policy that this release can read; use the one that made it ({problem})"
        ) from problem
    for name, sha256, said in zip(("policy", "controls"), found, (manifest["policy_sha256"], manifest["catalogue_sha256"]), strict=True):
        if sha256 == said:
            checked.intact(f"{name}: the audit's copy has the sha256 {said} that the audit names")
        else:
            checked.problem(f"{name}: the audit's copy has the sha256 {sha256}, and the audit names {said}")


def _results(audit: Audit, manifest: dict[str, Any], checked: Checked) -> None:
    """The results must be of the rules that the audit keeps."""
    rules = read_rules(audit.inputs / CONTROLS) or {}
    sha256, said = rule_set_sha256(rules), manifest.get("rule_set_sha256")
    problems = list(other_rules(audit, rules))
    if sha256 != said:
        problems.append(f"rules: those of the audit's copies of its controls have the sha256 {sha256}, and the audit names {said}")
    for problem in problems:
        checked.problem(problem)
    if not result_tables(audit):
        checked.note("results: the audit left none, so there is no rule of any to check")
    elif not problems:
        checked.intact(f"results: each was judged by the rule in the audit's copy of its control; all rules have the sha256 {sha256}")
