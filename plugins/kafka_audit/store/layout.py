"""Where snapshots, histories and audits lie below a root, and how each is opened.

Layout below a root::

    evidence/<cluster>/<snapshot_id>/<dataset>.parquet + manifest.json     one snapshot, never changed again
    evidence/<cluster>/.<snapshot_id>.parts/<part>/...                     what several tasks read of one snapshot, until it is joined
    offsets/<cluster>/<snapshot_id>/<dataset>.parquet + manifest.json      one offsets snapshot: groups, commits and log ends only
    history/<cluster>/lag/<day>/...parquet + manifest.json                 offsets snapshots of one UTC day rolled up; can be made again
    audits/<cluster>/<audit_id>/{settings,lag,gate,report}/... + run.json + manifest.json
    told/<cluster>/told.json                                               what notifications told; mutable, and no evidence
    audits/<cluster>/<audit_id>/inputs/...                                 what the audit used and retention may delete, at the same paths
    reviews/<cluster>/<review_id>/review.json + manifest.json              what a person answered to a failed audit (store/reviews.py)

A manifest is written last and holds the sha256 of every other file, so a folder with a manifest is whole and a folder
without one does not count. Audits are numbered and chained: each names the sha256 of the previous audit's manifest (store/chain.py).
"""

import hashlib
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.store import chain
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.manifest import MANIFEST, FileHashes
from kafka_audit.store.mirrors import bring, bring_manifest, remote_at, root_folder, root_name, where
from kafka_audit.store.sealed import AUDIT, LAG_DAY, OFFSETS, REVIEW, SCHEMA_VERSION, SNAPSHOT, Place, Sealed, SnapshotWriter
from kafka_audit.store.signing_key import signing_key
from kafka_audit.store.unfinished import hidden_name
from kafka_audit.times import is_id, parse_time, stamp

if TYPE_CHECKING:
    from kafka_audit.store.remote_root import RemoteRoot

log = logging.getLogger(__name__)

_CLUSTER = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_FIRST_YEAR, _LAST_YEAR = 1970, 9998
"""The years that a snapshot may be of: a day can be added to such a time, and taken from it, in every time zone."""


def new_id(when: datetime, seed: str) -> str:
    """The id of a snapshot or audit, like ``20261120T231500Z-ab12cd34ef56ab78``: UTC second plus 64 bits of a hash of ``seed``.

    The same time and seed give the same id, so a cleared and repeated task finds its own folder again.
    """
    return f"{stamp(when)}-{hashlib.sha256(seed.encode()).hexdigest()[:16]}"


def check_cluster_name(cluster: str) -> str:
    """Return ``cluster`` if it can be a folder name; else raise ConfigurationError (exit 2)."""
    if not _CLUSTER.fullmatch(cluster):
        raise ConfigurationError(
            f"cluster name {cluster!r} is not usable as a folder name: write 1-63 of a-z 0-9 . _ -, starting with a letter or a digit"
        )
    return cluster


def _check_id(value: str) -> str:
    if not is_id(value):
        raise ConfigurationError(f"{value!r} is not a snapshot or audit id; ids look like 20261120T231500Z-ab12cd34ef56ab78")
    return value


@dataclass(frozen=True, kw_only=True)
class Snapshot(Sealed):
    """One sealed snapshot: a whole one, or one of groups, commits and log ends only (OFFSETS)."""

    kinds = (SNAPSHOT, OFFSETS)

    @property
    def snapshot_id(self) -> str:
        return str(self.manifest["snapshot_id"])

    def dataset(self, name: str) -> Path:
        """Path of one dataset's Parquet file. In the mirror of a store, the snapshot is copied there."""
        bring(self.path)
        return self.path / f"{name}.parquet"

    @property
    def root(self) -> "EvidenceRoot":
        """The root that it lies below: ``<root>/evidence/<cluster>/<snapshot_id>``."""
        return EvidenceRoot(path=self.path.parents[2])

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def taken_ms(self) -> int:
        """When it was begun, in milliseconds since the epoch; IntegrityError when the manifest does not say."""
        try:
            began = parse_time(self.manifest["started_at"]).astimezone(timezone.utc)
        except (KeyError, ValueError, OverflowError) as problem:
            raise IntegrityError(f"{self.path / MANIFEST}: started_at is not a time ({problem})") from problem
        if not _FIRST_YEAR <= began.year <= _LAST_YEAR:
            raise IntegrityError(f"{self.path / MANIFEST}: started_at is of the year {began.year}, so it is not when it was begun")
        return round(began.timestamp() * 1000)


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The folder of one audit and the names of what its steps write there."""

    path: Path

    @property
    def run_file(self) -> Path:
        return self.path / "run.json"

    @property
    def settings(self) -> Path:
        return self.path / "settings"

    @property
    def lag(self) -> Path:
        return self.path / "lag"

    @property
    def inputs(self) -> Path:
        """Copies of what the audit used and retention may delete (kafka_audit.audit.inputs)."""
        return self.path / "inputs"

    @property
    def gate(self) -> Path:
        return self.path / "gate"

    @property
    def report(self) -> Path:
        return self.path / "report"

    def run(self) -> dict[str, Any]:
        """What was asked for: audit_id, cluster, snapshot_id, started_at, parameters."""
        return read_json(self.run_file)


@dataclass(frozen=True, kw_only=True)
class EvidenceRoot:
    """The folder below which all evidence and audits are kept; of a root in an object store, its mirror (kafka_audit.store.mirrors).

    ConfigurationError when Spark would take its name for a pattern and read other files than those whose hashes were checked.
    """

    path: Path

    def __post_init__(self) -> None:
        if found := sorted({*str(self.path)} & {*"*?[]{}\\"}):
            raise ConfigurationError(
                f"{self.path}: the path of the root holds {' '.join(found)}, which Spark reads as a pattern; rename the folder"
            )

    @staticmethod
    def at(place: str | Path, named: str = "the root") -> "EvidenceRoot":
        """The root at a folder or a URL. ``named``: what ConfigurationError (exit 2) is to name when it cannot be used."""
        return EvidenceRoot(path=root_folder(place, named))

    @property
    def name(self) -> str:
        """What the root is called on every machine: its URL, or the path of its folder."""
        return root_name(self.path)

    @property
    def remote(self) -> "RemoteRoot | None":
        """The store that the root lies in; None for a local folder."""
        return remote_at(self.path)

    def bring_audit(self, cluster: str, audit_id: str) -> Audit:
        """An audit whose folder is as the root has it; of a root in a store, it is copied here. IntegrityError when a file was changed."""
        audit = self.audit(cluster, audit_id)
        if remote := self.remote:
            remote.bring_audit(audit.path)
        return audit

    def place(self, cluster: str, kind: str) -> Place:
        """Where the sealed folders of a kind lie. ConfigurationError when the cluster's name is not usable."""
        return Place(kind=kind, cluster=check_cluster_name(cluster), root=self.path)

    def snapshot_dir(self, cluster: str, snapshot_id: str, kind: str = SNAPSHOT) -> Path:
        return self.place(cluster, kind).parent / _check_id(snapshot_id)

    def snapshot_writer(self, cluster: str, snapshot_id: str, kind: str = SNAPSHOT) -> SnapshotWriter:
        """A writer for a new snapshot; use it as a context manager and call ``seal`` at the end.

        ConfigurationError when the installation signs and its key cannot be used: before anything is read or written.
        """
        final, key = self.snapshot_dir(cluster, snapshot_id, kind), signing_key()
        return SnapshotWriter(cluster=cluster, snapshot_id=snapshot_id, final=final, folder=hidden_name(final), kind=kind, key=key)

    def find_snapshot(self, cluster: str, snapshot_id: str, kind: str = SNAPSHOT) -> Snapshot | None:
        """The sealed snapshot of that id, or None; hashes are not checked. IntegrityError when the folder holds another one."""
        folder = self.snapshot_dir(cluster, snapshot_id, kind)
        bring_manifest(folder)
        return Snapshot.open(folder, self.place(cluster, kind)) if (folder / MANIFEST).is_file() else None

    def snapshot(self, cluster: str, snapshot_id: str, kind: str = SNAPSHOT) -> Snapshot:
        """The sealed snapshot of that id; IntegrityError when there is none."""
        found = self.find_snapshot(cluster, snapshot_id, kind)
        if found is None:
            folder = where(self.place(cluster, kind).parent)
            raise IntegrityError(f"no sealed snapshot {snapshot_id} of cluster {cluster} below {folder}: take one first")
        return found

    def sealed_ids(self, cluster: str, kind: str = SNAPSHOT) -> list[str]:
        """Ids of the sealed snapshots or audits of a cluster, oldest first; their manifests may still turn out unreadable."""
        folder = self.place(cluster, kind).parent
        if remote := self.remote:
            return remote.ids(folder)
        return sorted(path.parent.name for path in folder.glob(f"*/{MANIFEST}") if is_id(path.parent.name))

    def ids(self, cluster: str, kind: str = SNAPSHOT) -> tuple[str, ...]:
        """Ids of all snapshots, audits or reviews of a cluster, newest first, sealed or not; none if there is no folder of them.

        The folder is listed again only when it has changed: pages and metrics ask again and again, and it may hold ten thousand names.
        """
        folder = self.place(cluster, kind).parent
        if remote := self.remote:
            return remote.all_ids(folder, with_open=kind == AUDIT)
        try:
            return _names_in(folder, folder.stat().st_mtime_ns)
        except FileNotFoundError:
            return ()
        except OSError as problem:
            log.warning("nothing is listed below %s, because it cannot be read: %s", folder, problem)
            return ()

    def newest_sealed(self, cluster: str, kind: str = SNAPSHOT) -> str | None:
        """The newest of the ids that :meth:`sealed_ids` lists; None if there is none. It looks for no more manifests than it needs."""
        folder = self.place(cluster, kind).parent
        if remote := self.remote:
            return remote.newest_name(folder)
        return next((one for one in self.ids(cluster, kind) if (folder / one / MANIFEST).is_file()), None)

    def newest_evidence(self, cluster: str) -> str | None:
        """The id of the newest snapshot of a cluster, whole or of offsets only, by the time for which it was taken; None without one."""
        if self.remote:
            return max(filter(None, (self.newest_sealed(cluster, kind) for kind in (SNAPSHOT, OFFSETS))), default=None)
        found = (self.ids(cluster, kind) for kind in (SNAPSHOT, OFFSETS))
        return max((ids[0] for ids in found if ids), default=None)

    def lag_days(self, cluster: str) -> Path:
        """The folder of a cluster's rolled-up days, each named like 2026-11-20."""
        folder = self.place(cluster, LAG_DAY).parent
        if remote := self.remote:
            remote.days(folder)
        return folder

    def audit(self, cluster: str, audit_id: str) -> Audit:
        return Audit(path=self.place(cluster, AUDIT).parent / _check_id(audit_id))

    def commit_history(self, cluster: str) -> Path:
        """Where the records of the cluster's offsets topic are kept; it may not exist."""
        return self.path / "history" / check_cluster_name(cluster) / "commits"

    def told(self, cluster: str) -> Path:
        """The folder of what was told of a cluster, with its lock: it changes with every message and nothing seals it."""
        return self.path / "told" / check_cluster_name(cluster)

    def audits(self, cluster: str) -> Path:
        """The folder of a cluster's audits, with the state and the lock of their chain."""
        folder = self.place(cluster, AUDIT).parent
        if remote := self.remote:
            remote.refresh_audits(folder)
        return folder

    def reviews(self, cluster: str) -> Path:
        """The folder of what people answered to a cluster's failed audits."""
        folder = self.place(cluster, REVIEW).parent
        if remote := self.remote:
            remote.manifests(folder)
        return folder


@lru_cache(maxsize=1_024)
def _names_in(folder: Path, _changed_ns: int) -> tuple[str, ...]:
    """The ids in a folder, newest first; the time of a folder changes whenever a name is added to it or removed."""
    return tuple(sorted(filter(is_id, os.listdir(folder)), reverse=True))  # noqa: PTH208  (a tenth of the time of Path.iterdir)


def seal_audit(root: EvidenceRoot, cluster: str, audit_id: str, fields: Mapping[str, Any], hashes: FileHashes | None = None) -> Seal:
    """Write an audit's manifest over all its files, chained to the newest sealed audit of the cluster; returns its place and sha256."""
    identity = {"schema_version": SCHEMA_VERSION, "kind": AUDIT, "cluster": cluster}
    return chain.seal(root.audit(cluster, audit_id).path, {**fields, **identity}, hashes)


def unseal_audit(audit: Audit) -> bool:
    """Remove an audit's manifest before one of its steps runs again: a folder being rewritten must not look sealed.

    False, and nothing is done, when a later audit is chained to it.
    """
    return chain.reopen(audit.path)
