"""Reads the indexes of sealed audits, each checked against the manifest that sealed it: a page reads a few small files and no findings."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from kafka_audit.errors import IntegrityError
from kafka_audit.index.overview import FAILURES, GROUPS, OVERVIEW, SCHEMA_VERSION, Overview
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.manifest import MANIFEST, FileHashes, bytes_of, parse_object, read_manifest
from kafka_audit.store.sealed import AUDIT, KINDS
from kafka_audit.times import is_id

_HASHES = FileHashes()
"""A file is hashed once for as long as it stays the same: its inode, size and times."""
_KEPT = 256


@dataclass(frozen=True, kw_only=True)
class IndexedAudit:
    """A sealed audit whose index is as it was sealed; ``files``: the sha256 of each of its files, by name."""

    audit: Audit
    overview: Overview
    files: Mapping[str, str]
    sequence: int | None
    """Its number in the chain of the cluster's audits."""

    def groups(self, columns: list[str] | None = None) -> pa.Table:
        """The rows of tables.GROUP_ROW. IntegrityError if the file is not as it was sealed."""
        return self._table(GROUPS, columns=columns)

    def group(self, group_id: str) -> dict[str, Any] | None:
        """The row of one group; None if the audit saw no such group."""
        rows = self._table(GROUPS, "group_id", group_id).to_pylist()
        return rows[0] if rows else None

    def failures(self, control_id: str | None = None) -> pa.Table:
        """The rows of tables.FAILURE_ROW, of one control or of all. IntegrityError if the file is not as it was sealed."""
        return self._table(FAILURES, "control_id", control_id)

    def _table(self, name: str, column: str = "", value: str | None = None, columns: list[str] | None = None) -> pa.Table:
        """A Parquet file of the index; with ``value`` its rows with that value, from the row groups that may hold it."""
        path = checked_file(self.audit.path, self.files, name)
        try:
            with pq.ParquetFile(path) as file:
                if value is None:
                    return file.read(columns=columns, use_threads=False)
                found = file.read_row_groups(list(_row_groups(file, column, value)), columns=columns, use_threads=False)
                return found.filter(pc.equal(found[column], value))
        except (OSError, pa.ArrowException, KeyError) as problem:
            raise IntegrityError(f"{path}: cannot be read as Parquet ({problem!s:.200})") from problem


def _row_groups(file: pq.ParquetFile, column: str, value: str) -> Iterator[int]:
    position = file.schema_arrow.get_field_index(column)
    for number in range(file.num_row_groups):
        known = file.metadata.row_group(number).column(position).statistics
        if known is None or not known.has_min_max or known.min <= value <= known.max:
            yield number


def checked_file(folder: Path, files: Mapping[str, str], name: str) -> Path:
    """The path of a file of a sealed folder; IntegrityError if it is missing, a link, or not as it was sealed."""
    if name not in files:
        raise IntegrityError(f"{folder / name}: is not among the files that were sealed: the audit has none")
    if _HASHES.of(folder / name)[0] != files[name]:
        raise IntegrityError(f"{folder / name}: was changed after the audit was sealed")
    return folder / name


def open_index(audit: Audit) -> IndexedAudit:
    """The index of a sealed audit; IntegrityError if it is not sealed, has no index that this release reads, or was changed."""
    try:
        about = (audit.path / MANIFEST).lstat()
    except OSError as problem:
        raise IntegrityError(f"{audit.path} is not sealed: the audit runs still, or was cut short") from problem
    return _opened(audit.path, (about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns))


@lru_cache(maxsize=_KEPT)
def _opened(folder: Path, _version: tuple[int, ...]) -> IndexedAudit:
    manifest = read_manifest(folder)
    listed = manifest.get("files")
    if manifest.get("kind") != AUDIT or manifest.get("audit_id") != folder.name or not isinstance(listed, dict):
        raise IntegrityError(f"{folder / MANIFEST}: is not the manifest of this audit")
    files = {name: str(one["sha256"]) for name, one in listed.items() if isinstance(one, dict) and "sha256" in one}
    path = checked_file(folder, files, OVERVIEW)
    overview = _read_overview(path)
    if overview.audit_id != folder.name or overview.cluster != folder.parent.name:
        raise IntegrityError(f"{path}: is of audit {overview.audit_id!r:.80} of cluster {overview.cluster!r:.80}")
    sequence = manifest.get("sequence")
    return IndexedAudit(audit=Audit(path=folder), overview=overview, files=files, sequence=sequence if isinstance(sequence, int) else None)


def _read_overview(path: Path) -> Overview:
    record = parse_object(path, bytes_of(path))
    if record.get("schema_version") != SCHEMA_VERSION:
        version = f"{record.get('schema_version')!r:.40}"
        raise IntegrityError(f"{path}: has schema version {version}, and this release reads {SCHEMA_VERSION}: audit the cluster again")
    try:
        return Overview.model_validate(record)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IntegrityError(f"{path}: has no form that this release reads ({where}: {first['msg']}): audit the cluster again") from problem


def newest_index(root: EvidenceRoot, cluster: str) -> IndexedAudit | None:
    """The index of the audit of a cluster that was sealed last; None if none is sealed. IntegrityError if it cannot be used."""
    folder = root.audits(cluster)
    state = read_state(folder)
    if state is not None and state.head is not None:
        return open_index(root.audit(cluster, state.head.audit_id))
    sealed = next((audit_id for audit_id in audit_ids(root, cluster) if (folder / audit_id / MANIFEST).is_file()), None)
    return open_index(root.audit(cluster, sealed)) if sealed else None


def audit_ids(root: EvidenceRoot, cluster: str) -> tuple[str, ...]:
    """The ids of all audits of a cluster, newest first, sealed or not."""
    return _ids_in(root.audits(cluster))


def newest_evidence(root: EvidenceRoot, cluster: str) -> str | None:
    """The id of the newest snapshot of a cluster, whole or of offsets only, by the time for which it was taken; None without one."""
    found = (_ids_in(root.place(cluster, kind).parent) for kind in KINDS if KINDS[kind].named_by == "snapshot_id")
    return max((ids[0] for ids in found if ids), default=None)


def _ids_in(folder: Path) -> tuple[str, ...]:
    try:
        return _names(folder, folder.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=4 * _KEPT)
def _names(folder: Path, _changed_ns: int) -> tuple[str, ...]:
    """The ids in a folder, newest first; a folder's time changes whenever a name is added to it or removed."""
    return tuple(sorted(filter(is_id, os.listdir(folder)), reverse=True))  # noqa: PTH208  (a tenth of the time of Path.iterdir)
