"""The inputs of an audit: lists the evidence that it used, and copies those inputs that may be deleted or edited later.

``<audit>/inputs/`` mirrors the layout below the root: ``offsets/``, ``history/``; with ``policy/`` and ``controls/`` for the rules as
they were loaded. Retention deletes offsets snapshots, rolled-up days and behaviour tables, and people edit policies: without a copy an
audit would name evidence that nobody has. Whole snapshots are never deleted, so their hashes are enough.

Evidence is copied by hard link where the file system allows it: sealed files are never written again, a link takes no space while the
original is there, and it keeps the content when retention removes the original. Both names share one content, so whoever edits the
original in place edits the copy: the manifest's hashes show it, but the content is lost. Where no link can be made the bytes are copied.
Rules are always copied as bytes, because people do edit them in place.
"""

import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from kafka_audit.audit.policy_fit import refuse_secrets
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.input_files.read import MOST_BYTES, copy_input
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.load import shipped_policy_folder
from kafka_audit.store.behaviour_tables import RECORD
from kafka_audit.store.durable_files import replaced_folder, write_failed
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.manifest import MANIFEST, FileHashes, bytes_of, list_files, manifest_sha256, parse_object
from kafka_audit.store.mirrors import bring
from kafka_audit.store.sealed import OFFSETS, Sealed, shown

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue

POLICY, CONTROLS, FRAMEWORKS = "policy", "controls", "frameworks"
RULES = "rules.json"
_RULES = frozenset({POLICY, CONTROLS})
_BEHAVIOUR = re.compile(r"behaviour/[0-9]{8}T[0-9]{6}Z")


@dataclass(frozen=True, kw_only=True)
class Used:
    """One sealed folder that a part of the audit used: ``place`` below the root, and its manifest's sha256 then.

    ``copied``: retention may delete it, so the audit keeps a copy. ``remade``: it may be made again in its place, from more evidence.
    """

    what: str
    place: PurePosixPath
    manifest_sha256: str
    copied: bool
    remade: bool = False

    def __str__(self) -> str:
        return f"{self.what} {self.place.name}"


def used_by(audit: Audit, root: EvidenceRoot, cluster: str) -> list[Used]:
    """All earlier evidence that the audit's parts recorded, in order; IntegrityError when a record cannot be understood."""
    found: dict[PurePosixPath, Used] = {}
    for folder in (audit.settings, audit.lag):
        for path, read in ((folder / "history.json", _history), (folder / "lag_history.json", _window), (folder / RECORD, _behaviour)):
            if not path.is_file():
                continue
            try:
                for used in read(_record(path), root, cluster):
                    if found.setdefault(used.place, used) != used:
                        raise IntegrityError(f"{path}: {used} is named with two manifests by the audit's parts: run verify again")
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ConfigurationError) as problem:
                raise IntegrityError(
                    f"{path}: is not a record of what was used ({problem!r}): run the step that writes it again"
                ) from problem
    return [found[place] for place in sorted(found)]


def _record(path: Path) -> dict[str, Any]:
    """What a part wrote; IntegrityError when it is no regular file, too long or no JSON object. Nothing is waited for."""
    return parse_object(path, bytes_of(path))


def _history(record: Mapping[str, Any], root: EvidenceRoot, cluster: str) -> Iterator[Used]:
    for one in record["used"]:
        folder = root.snapshot_dir(cluster, str(one["snapshot_id"]))
        yield _used("snapshot", folder, root, one, copied=False)
    for one in record.get("used_offsets", ()):
        yield _used("offsets snapshot", root.snapshot_dir(cluster, str(one["snapshot_id"]), OFFSETS), root, one)


def _window(record: Mapping[str, Any], root: EvidenceRoot, cluster: str) -> Iterator[Used]:
    for one in record["days"]:
        folder = root.lag_days(cluster) / date.fromisoformat(one["day"]).isoformat()
        yield _used("rolled-up day", folder, root, one, remade=True)
    for one in record["offsets_snapshots"]:
        yield _used("offsets snapshot", root.snapshot_dir(cluster, str(one["snapshot_id"]), OFFSETS), root, one)


def _behaviour(record: Mapping[str, Any], root: EvidenceRoot, cluster: str) -> Iterator[Used]:
    if record["folder"] is None:
        return
    if not _BEHAVIOUR.fullmatch(record["folder"]):
        raise ValueError(record["folder"])
    yield _used("behaviour tables", root.commit_history(cluster) / record["folder"], root, record, remade=True)


def _used(what: str, folder: Path, root: EvidenceRoot, record: Mapping[str, Any], *, copied: bool = True, remade: bool = False) -> Used:
    place = PurePosixPath(folder.relative_to(root.path).as_posix())
    return Used(what=what, place=place, manifest_sha256=str(record["manifest_sha256"]), copied=copied, remade=remade)


def keep_used(audit: Audit, root: EvidenceRoot, cluster: str, hashes: FileHashes | None = None) -> None:
    """Copy what the audit's parts used and retention may delete into the audit; copies that nothing names any more are removed.

    A copy that is there already is kept, so a step may run again after the original was deleted. IntegrityError (exit 5) when an original
    is gone, or is not what the part used, before it was copied.
    """
    known = hashes or FileHashes()
    wanted = {one.place: one for one in used_by(audit, root, cluster) if one.copied}
    for place, one in wanted.items():
        copy = audit.inputs / place
        if manifest_sha256(copy, known) != one.manifest_sha256:
            original = root.path / place
            if manifest_sha256(original, known) != one.manifest_sha256:
                raise IntegrityError(f"{original} is not there as {audit.path.name} used it, so it cannot be kept: run verify again")
            bring(original)
            _keep(original, copy)
        if problems := Sealed.open(copy).problems(known):
            raise IntegrityError(f"{copy} does not match its manifest: {shown(problems)}. Remove it and run verify again")
    _remove_others(audit.inputs, set(wanted))


def _keep(original: Path, copy: Path) -> None:
    """Put a copy in its place when it is whole. It is made durable by the seal: syncing each of hundreds here would take seconds."""
    fresh = copy.with_name(f".{copy.name}.{uuid.uuid4().hex[:8]}")
    try:
        fresh.mkdir(mode=0o750, parents=True)
        _link_tree(original, fresh)
        if copy.exists():
            shutil.rmtree(copy)
        fresh.rename(copy)
    except OSError as problem:
        raise write_failed(copy, problem) from problem
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _link_tree(source: Path, target: Path) -> None:
    names, refused = list_files(source)
    if refused:
        raise IntegrityError(f"{source}: {refused[0]}")
    for name in (*names, *(path.name for path in source.glob("manifest*.json"))):
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source / name, place, follow_symlinks=False)
        except OSError:  # another file system, too many links, or a system that forbids links to other owners' files
            shutil.copyfile(source / name, place, follow_symlinks=False)


def _remove_others(inputs: Path, wanted: set[PurePosixPath]) -> None:
    for manifest in sorted(inputs.glob(f"**/{MANIFEST}")):
        place = PurePosixPath(manifest.parent.relative_to(inputs).as_posix())
        if place not in wanted and place.parts[0] not in _RULES:
            shutil.rmtree(manifest.parent)


def keep_rules(audit: Audit, policy: Policy, catalogue: "Catalogue", controls: Sequence[Path]) -> None:
    """Copy the files of the policy and of all controls into the audit, so that their hashes can be computed again.

    ConfigurationError (exit 2) when they are not those that a part judged with, or changed while they were copied, when settings of a
    client hold a secret, or when a policy file lies outside of the policy's folder.
    """
    refuse_secrets(policy)
    for part in (audit.settings, audit.lag):
        if (part / RULES).is_file() and _record(part / RULES) != rules_record(policy, catalogue):
            raise ConfigurationError(
                f"{part.name} was judged with another policy or other controls than those in {policy.folder} now: "
                "clear the run's tasks from plan on, or start a new run"
            )
    _copy_files(policy_files(policy), audit.inputs / POLICY)
    _copy_files({path.name: path for folder in controls for path in _controls(folder)}, audit.inputs / CONTROLS)
    try:
        if rule_hashes(audit) != (policy.sha256, catalogue.sha256):
            raise ConfigurationError("the copies have other hashes than the files that were loaded")
    except ConfigurationError as problem:
        for name in _RULES:  # the author of a policy does not get files into an audit that the audit did not use
            shutil.rmtree(audit.inputs / name)
        raise ConfigurationError(
            f"a file of the policy {policy.folder} or of the controls was changed during the audit: clear the run's tasks from plan on"
        ) from problem


def rules_record(policy: Policy, catalogue: "Catalogue") -> dict[str, str]:
    """What a part writes as rules.json, and the audit's manifest says: the hashes of the rules that it judged with."""
    return {"policy_sha256": policy.sha256, "catalogue_sha256": catalogue.sha256, "rule_set_sha256": catalogue.rule_set_sha256}


def _copy_files(files: Mapping[str, Path], target: Path) -> None:
    with replaced_folder(target) as folder:
        if target.name == POLICY:  # without this folder a policy has the shipped frameworks, with an empty one it has none
            (folder / FRAMEWORKS).mkdir()
        for name, source in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            copy_input(source, folder / name, source.parents[len(PurePosixPath(name).parts) - 1])


def rule_hashes(audit: Audit) -> tuple[str, str]:
    """policy_sha256 and catalogue_sha256 of the copies; ConfigurationError when this release cannot read the policy.

    Those of the controls are their files' alone, as kafka_audit.catalogue.load computes it: checking sixty rules takes most of a second.
    """
    controls = hashlib.sha256()
    for path in _controls(audit.inputs / CONTROLS):
        controls.update(path.name.encode() + b"\0" + hashlib.sha256(bytes_of(path, MOST_BYTES)).digest())
    return load_policy(audit.inputs / POLICY).sha256, controls.hexdigest()


def policy_files(policy: Policy) -> dict[str, Path]:
    """The files of a policy by their names in its folder; shipped frameworks where it has none of its own.

    ConfigurationError (exit 2) when a settings file of a client lies elsewhere.
    """
    own = policy.folder / FRAMEWORKS
    frameworks = own if own.is_dir() else shipped_policy_folder() / FRAMEWORKS
    names = ("tiers", "slas", "clients", "waivers", "attestations")
    found = {path.name: path for name in names if (path := policy.folder / f"{name}.yaml").exists()}
    found |= {one.file: policy.folder / one.file for one in policy.attestations}  # load_policy refused those outside of the folder
    found |= {f"{FRAMEWORKS}/{path.name}": path for path in sorted(frameworks.glob("*.yaml"))}
    for client in policy.clients:
        name = client.settings_file
        if name is None:
            continue
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigurationError(
                f"{policy.folder / 'clients.yaml'}: clients.{client.name}.settings_file: {name!r} lies outside of the policy's folder, "
                "so no audit could keep it: put the file beside clients.yaml"
            )
        found[name] = policy.folder / name
    return found


def _controls(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.yaml") if not path.name.startswith((".", "__")))
