"""Sealed folders of all kinds: where each kind lies below a root, and how one is sealed, opened and checked.

The place of a folder decides which kind, cluster and name its manifest must have. What a manifest says of itself decides nothing: whoever
forges one would choose the kind that is checked least.
"""

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import FOLDER_MODE, make_folder, sync_folder, sync_tree, write_failed, write_json
from kafka_audit.store.manifest import MANIFEST, FileHashes, file_problems, manifest_sha256, read_manifest, tree_files
from kafka_audit.store.mirrors import bring_manifest, remote_at
from kafka_audit.store.unfinished import hold_new
from kafka_audit.times import is_id, parse_time, stamp

if TYPE_CHECKING:
    from typing import Self

SCHEMA_VERSION = 1
SNAPSHOT, OFFSETS, AUDIT, LAG_DAY, BEHAVIOUR, REVIEW = "snapshot", "offsets", "audit", "lag_day", "commit_behaviour", "review"
PART = "part"
"""A part of a snapshot, until the parts are joined: nothing that stays, so it has no place among the KINDS."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """``parent``: the folder below the root, with ``*`` for the cluster. ``named_by``: the field of the manifest with the folder's name.

    ``dated``: the name is a date or a time; other names are ids.
    """

    parent: str
    named_by: str
    dated: bool = False


KINDS = {
    LAG_DAY: Kind(parent="history/*/lag", named_by="day", dated=True),
    BEHAVIOUR: Kind(parent="history/*/commits/behaviour", named_by="end", dated=True),
    AUDIT: Kind(parent="audits/*", named_by="audit_id"),
    SNAPSHOT: Kind(parent="evidence/*", named_by="snapshot_id"),
    OFFSETS: Kind(parent="offsets/*", named_by="snapshot_id"),
    REVIEW: Kind(parent="reviews/*", named_by="review_id"),
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """What belongs into a folder: a kind, of a cluster, below ``root``."""

    kind: str
    cluster: str
    root: Path

    @property
    def parent(self) -> Path:
        """The folder that holds all folders of this kind and cluster."""
        return self.root / KINDS[self.kind].parent.replace("*", self.cluster)


def place_of(folder: Path) -> Place | None:
    """The place of a folder by its absolute path; None for one that lies in no root, such as a copy."""
    for name, kind in KINDS.items():
        depth = kind.parent.count("/") + 1
        if folder.parent.match(kind.parent) and not (kind.dated and is_id(folder.name)):  # clusters may have the names of our folders, too
            return Place(kind=name, cluster=folder.parts[-depth], root=folder.parents[depth])
    return None


def placed(path: Path) -> tuple[Path, Place | None]:
    """The absolute path of a folder, and its place in a root; IntegrityError when it, or a folder of the root above it, is a link.

    Otherwise a link in the place of ``audits`` could make an audit look like a copy, of which less is checked.
    """
    named = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow the links
    place = place_of(named)
    for folder in (named, *named.parents):
        if place and folder == place.root:
            break
        if folder.is_symlink() and (place or folder == named):
            raise IntegrityError(f"{folder} is a link; name the folder itself")
    return (named, place) if place else (named.resolve(), place_of(named.resolve()))


def identity_problems(manifest: Mapping[str, Any], name: str, place: Place | None) -> list[str]:
    """Whether a manifest is of what belongs into the place, as sentences; without a place, whether it is of a kind that there is."""
    kind, cluster = manifest.get("kind"), manifest.get("cluster")
    if not isinstance(kind, str) or kind not in KINDS:
        return [f"its manifest is of the kind {kind!r:.80}, which this release does not know"]
    if place is None:
        return []
    said = _name_in(kind, manifest)
    named = said == name and (is_id(name) or KINDS[kind].dated)
    if kind == place.kind and named and (cluster == place.cluster or kind == BEHAVIOUR):  # behaviour tables name the Kafka cluster's id
        return []
    return [f"its manifest is of {kind} {said!r:.80} of cluster {cluster!r:.80}, and {place.kind} {name} of {place.cluster} belongs here"]


def _name_in(kind: str, manifest: Mapping[str, Any]) -> object:
    """The name that the folder has by its manifest."""
    said = manifest.get(KINDS[kind].named_by)
    if kind != BEHAVIOUR:
        return said
    try:
        return stamp(parse_time(said))
    except (ValueError, OverflowError):
        return said


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """A sealed folder: its path, and its manifest as it was read. A class for some kinds lists them as ``kinds``.

    ``repair``: what to do with one that does not match its manifest.
    """

    path: Path
    manifest: dict[str, Any]
    kinds: ClassVar[tuple[str, ...]] = ()
    repair: ClassVar[str] = "restore it from a copy"

    @classmethod
    def open(cls, folder: Path, place: Place | None = None) -> "Self":
        """Read the manifest of a folder; its hashes are not checked.

        IntegrityError when there is none, or it is of another kind or release than this class, or not of what belongs into ``place``.
        """
        if folder.is_symlink():
            raise IntegrityError(f"{folder} is a link; name the folder itself")
        bring_manifest(folder)
        if not (folder / MANIFEST).exists():
            raise IntegrityError(f"{folder} has no {MANIFEST}: it is not finished, or not the folder of a snapshot or an audit")
        manifest = read_manifest(folder)
        said = manifest.get("kind"), manifest.get("schema_version")
        if cls.kinds and (said[0] not in cls.kinds or said[1] != SCHEMA_VERSION or not isinstance(manifest.get("files"), dict)):
            wanted = f"{' or '.join(cls.kinds)} of schema_version {SCHEMA_VERSION}"
            raise IntegrityError(
                f"{folder / MANIFEST} is not the manifest of a {wanted}: its kind is {said[0]!r:.80}, its schema_version {said[1]!r:.80}"
            )
        if place and (problems := identity_problems(manifest, folder.name, place)):
            raise IntegrityError(f"{folder / MANIFEST}: {problems[0]}")
        return cls(path=folder, manifest=manifest)

    @classmethod
    def verified(cls, folder: Path, place: Place | None = None) -> "Self":
        """Open a folder and check the hashes of all its files; IntegrityError (exit 5) names the differences."""
        found = cls.open(folder, place)
        if problems := found.problems():
            raise IntegrityError(f"{folder} does not match its manifest: {shown(problems)}. Do not use it; {cls.repair}")
        return found

    def problems(self, hashes: FileHashes | None = None) -> list[str]:
        """Every difference between the folder and its manifest, and in its link to the audit before it; empty when it is intact."""
        return [*file_problems(self.path, self.manifest, hashes), *link_problems(self.path, self.manifest)]

    @property
    def manifest_sha256(self) -> str:
        return FileHashes().of(self.path / MANIFEST)[0]


def sealed_in(parent: Path) -> list[str]:
    """The names of the sealed folders in a folder, in order; of a root in a store those that the store has."""
    if remote := remote_at(parent):
        return list(remote.sealed_names(parent))
    return sorted(found.parent.name for found in parent.glob(f"[!.]*/{MANIFEST}"))


def shown(problems: list[str]) -> str:
    """The first three problems, and how many more there are."""
    return "; ".join(problems[:3]) + (f"; and {len(problems) - 3} more" if len(problems) > 3 else "")


def link_problems(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Whether the audit that this one is chained to is still the one it was."""
    previous = manifest.get("previous")
    if not isinstance(previous, dict):
        return []
    name = f"{previous.get('audit_id')!s:.80}"
    found = manifest_sha256(folder.parent / name) if is_id(name) else None
    if found is None:
        return [f"previous audit {name}: its manifest is missing, so the chain is broken"]
    if found != previous.get("manifest_sha256"):
        return [f"previous audit {name}: its manifest was changed after this audit was sealed"]
    return []


def sealed_above(path: Path) -> Path | None:
    """The sealed folder that a path is, or lies in; None when there is none. The path need not exist."""
    for folder in (path, *path.parents):
        try:
            if (folder / MANIFEST).is_file() and read_manifest(folder).get("kind") in KINDS:
                return folder
        except (IntegrityError, OSError, TypeError):  # another program's manifest.json, which may hold anything
            continue
    return None


def seal(folder: Path, fields: Mapping[str, Any], rows: Mapping[str, int] | None = None) -> None:
    """Write the manifest of a new folder over all its files: ``fields``, and of each file sha256, bytes and, if given, its ``rows``."""
    files = tree_files(folder)
    if rows is not None:
        files = {name: {**entry, "rows": rows.get(name)} for name, entry in files.items()}
    write_json(folder / MANIFEST, {"schema_version": SCHEMA_VERSION, **fields, "files": files})


if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_audit.store.signing import SigningKey


@dataclass(kw_only=True)
class SnapshotWriter:
    """Fills one snapshot folder; nothing is visible under its final name before :meth:`seal`."""

    cluster: str
    snapshot_id: str
    final: Path
    folder: Path
    kind: str
    key: "SigningKey | None" = None
    _rows: dict[str, int] = field(default_factory=dict)
    _held: int = -1

    def __enter__(self) -> "SnapshotWriter":
        try:
            make_folder(self.folder.parent)
            self._held = hold_new(self.folder, FOLDER_MODE)
        except OSError as problem:
            raise write_failed(self.final, problem) from problem
        return self

    def write(self, dataset: str, table: "pa.Table") -> None:
        """Write one dataset as ``<dataset>.parquet`` (zstd); CollectionError when the disk refuses it."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - most that open the layout write no Parquet file

        path = self.folder / f"{dataset}.parquet"
        try:
            pq.write_table(table, path, compression="zstd")
        except OSError as problem:
            raise write_failed(path, problem) from problem
        self._rows[path.name] = table.num_rows

    def seal(self, fields: Mapping[str, Any]) -> Path:
        """Write the manifest over what is durable by then, sign it where the installation signs, and give the folder its final name.

        In a store the first writer of a snapshot counts: of all others nothing stays, and the folder is theirs.
        """
        identity = {"kind": self.kind, "cluster": self.cluster, "snapshot_id": self.snapshot_id}
        try:
            sync_tree(self.folder)
            seal(self.folder, {**fields, **identity}, self._rows)
            if self.key is not None:
                self.key.sign(self.folder, self.folder / MANIFEST)
            sync_folder(self.folder)
            if remote := remote_at(self.final):
                if remote.publish(self.folder, self.final):
                    with contextlib.suppress(OSError):  # another process of this machine has copied it here meanwhile
                        self.folder.rename(self.final)
                remote.whole(self.final)
                return self.final
            self.folder.rename(self.final)
            sync_folder(self.final.parent)
        except OSError as problem:
            raise write_failed(self.final, problem) from problem
        return self.final

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # a sealed one has another name by now
        os.close(self._held)
