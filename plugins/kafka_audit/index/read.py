"""Reads the indexes of sealed audits, each checked against the manifest that sealed it: a page reads a few small files and no findings."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ValidationError

from kafka_audit.errors import IntegrityError
from kafka_audit.index.group_tables import BEHAVIOUR, BEHAVIOUR_ROW, PARTITION_ROW, PARTITIONS, READER_ROW, READERS, SLA_ROW, SLAS
from kafka_audit.index.overview import FAILURES, GROUPS, OVERVIEW, SCHEMA_VERSION, Overview
from kafka_audit.index.tables import FAILURE_ROW, GROUP_ROW
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.manifest import bytes_of, parse_object
from kafka_audit.store.mirrors import bring
from kafka_audit.store.sealed import AUDIT
from kafka_audit.store.sealed_files import Version, checked_file, files_and_number, manifest_version

_KEPT = 256
_LARGE = 1 << 20
"""Overviews of more bytes are read for each request: hundreds of them would fill the memory of the web server."""
_SCHEMAS: Mapping[str, pa.Schema] = {
    GROUPS: GROUP_ROW,
    FAILURES: FAILURE_ROW,
    PARTITIONS: PARTITION_ROW,
    READERS: READER_ROW,
    SLAS: SLA_ROW,
    BEHAVIOUR: BEHAVIOUR_ROW,
}
_ALWAYS_KNOWN: Mapping[str, Sequence[str]] = {
    GROUPS: ("group_id", "place", "status", "targets", "targets_missed"),
    FAILURES: ("control_id", "resource"),
    PARTITIONS: ("group_id", "place"),
    READERS: ("topic", "group_id", "place", "readers"),
    SLAS: ("group_id", "sla"),
    BEHAVIOUR: ("group_id",),
}
"""The columns in which every row has a value."""
_BATCH_ROWS = 1_024
_MOST_TEXT = 256 << 20
"""Text of one part: that of 1,024 rows with eight names of the longest kind."""
_LARGEST = 1e18
"""A share or a percentage beyond this, or one that is no number, is none that a step writes, and cannot be drawn."""


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
        return self.rows(GROUPS, columns=columns)

    def group(self, group_id: str) -> dict[str, Any] | None:
        """The row of one group; None if the audit saw no such group."""
        return group_row(self.audit.path, self.files, group_id)

    def failures(self, control_id: str | None = None) -> pa.Table:
        """The rows of tables.FAILURE_ROW, of one control or of all. IntegrityError if the file is not as it was sealed."""
        return self.rows(FAILURES, ("control_id", control_id) if control_id is not None else None)

    def rows(self, name: str, where: tuple[str, str] | None = None, columns: list[str] | None = None) -> pa.Table:
        """A table of the index, or its rows in which a column has a value. IntegrityError if it is not as it was sealed."""
        return checked_rows(self.audit.path, self.files, name, where, columns)

    def parts(self, name: str, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """A table of the index in parts of a limited number of rows. IntegrityError as of :meth:`rows`."""
        return checked_batches(self.audit.path, self.files, name, columns=columns)


def group_row(folder: Path, files: Mapping[str, str], group_id: str, most: int | None = None) -> dict[str, Any] | None:
    """The row of one group in the index of a sealed audit; None if the audit saw no such group.

    IntegrityError if more than ``most`` bytes would have to be looked through: Parquet keeps no statistics of long ids.
    """
    found = (row for part in checked_batches(folder, files, GROUPS, where=("group_id", group_id), most=most) for row in part.to_pylist())
    return next(found, None)


def checked_rows(
    folder: Path, files: Mapping[str, str], name: str, where: tuple[str, str] | None = None, columns: list[str] | None = None
) -> pa.Table:
    """A Parquet file of a sealed folder; with ``where``, a column and a value, its rows with that value.

    IntegrityError if it is not as it was sealed, cannot be read, or has not the columns; a table of an index has those of this release.
    """
    tables = list(checked_batches(folder, files, name, where=where, columns=columns))
    return pa.concat_tables(tables[1:] or tables)


def checked_batches(
    folder: Path,
    files: Mapping[str, str],
    name: str,
    *,
    where: tuple[str, str] | None = None,
    columns: list[str] | None = None,
    most: int | None = None,
) -> Iterator[pa.Table]:
    """The same in parts of at most _BATCH_ROWS rows, after a first part without rows: names may have 32,767 bytes, so all could be GiB.

    IntegrityError if more than ``most`` bytes would be read.
    """
    path = checked_file(folder, files, name)
    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if not schema.equals(_SCHEMAS.get(name, schema)):
                raise IntegrityError(f"{path}: has other columns than this release reads: audit the cluster again")
            empty = schema.empty_table()
            yield empty if columns is None else empty.select(columns)
            groups = list(range(file.num_row_groups)) if where is None else list(_row_groups(file, *where))
            size = sum(file.metadata.row_group(number).total_byte_size for number in groups)
            if most is not None and size > most:
                raise IntegrityError(f"{path}: names are so long that {size >> 20:,} MiB would have to be looked through")
            needed = columns if columns is None or where is None else list(dict.fromkeys([*columns, where[0]]))
            texts = [field.name for field in schema if field.type == pa.string()]
        with pq.ParquetFile(path, read_dictionary=texts) as file:  # each text once, however often it is repeated
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=needed, use_threads=False):
                table = _decoded(path, batch, schema)
                table = table if where is None else table.filter(pc.equal(table[where[0]], where[1]))
                if table.num_rows:
                    yield _usable(path, table if columns is None else table.select(columns))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError, IndexError) as problem:
        raise IntegrityError(f"{path}: cannot be read as Parquet ({problem!s:.200})") from problem


def _decoded(path: Path, batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """The batch with its texts written out; IntegrityError if these would be longer than names are: a small file can repeat a long one."""
    coded = [column for column in batch.columns if pa.types.is_dictionary(column.type)]
    size = sum(pc.sum(pc.take(pc.cast(pc.binary_length(one.dictionary), pa.int64()), one.indices)).as_py() or 0 for one in coded)
    if size > _MOST_TEXT:
        raise IntegrityError(f"{path}: {batch.num_rows:,} rows have {size >> 20:,} MiB of text, which no step writes")
    return pa.Table.from_batches([batch]).cast(pa.schema([schema.field(name) for name in batch.schema.names]))


def _usable(path: Path, table: pa.Table) -> pa.Table:
    """The table; IntegrityError if it holds what no step writes: numbers that are none, text that is no UTF-8, rows without a name."""
    table.validate(full=True)
    for field in table.schema:
        if pa.types.is_floating(field.type) and pc.all(pc.less(pc.abs(table[field.name]), _LARGEST)).as_py() is False:
            raise IntegrityError(f"{path}: {field.name} holds numbers that are none")
        if field.name in _ALWAYS_KNOWN.get(f"{path.parent.name}/{path.name}", ()) and table[field.name].null_count:
            raise IntegrityError(f"{path}: a row has no {field.name}")
    return table


def _row_groups(file: pq.ParquetFile, column: str, value: str) -> Iterator[int]:
    position = file.schema_arrow.get_field_index(column)
    for number in range(file.num_row_groups):
        known = file.metadata.row_group(number).column(position).statistics
        if known is None or not known.has_min_max or known.min <= value <= known.max:
            yield number


def open_index(audit: Audit) -> IndexedAudit:
    """The index of a sealed audit; IntegrityError if it is not sealed, has no index that this release reads, or was changed."""
    try:
        is_large = (audit.path / OVERVIEW).lstat().st_size > _LARGE
    except OSError:
        is_large = False
    opened = _opened.__wrapped__ if is_large else _opened
    bring(audit.path, ("index/",))
    return opened(audit.path, manifest_version(audit.path))


@lru_cache(maxsize=_KEPT)
def _opened(folder: Path, version: Version) -> IndexedAudit:
    files, sequence = files_and_number(folder, version)
    path = checked_file(folder, files, OVERVIEW)
    overview = _overview_of(path, files[OVERVIEW])
    if isinstance(overview, str):
        raise IntegrityError(overview)
    if overview.audit_id != folder.name or overview.cluster != folder.parent.name:
        raise IntegrityError(f"{path}: is of audit {overview.audit_id!r:.80} of cluster {overview.cluster!r:.80}")
    return IndexedAudit(audit=Audit(path=folder), overview=overview, files=files, sequence=sequence)


@lru_cache(maxsize=_KEPT)
def _unusable(path: Path, sha256: str) -> list[str]:
    """Why a file of these bytes cannot be used, once that is known: pages ask for the same broken audits again and again."""
    return []


def _overview_of(path: Path, sha256: str) -> Overview | str:
    """The overview, or why it cannot be used; IntegrityError if the bytes that are read are not those that were sealed."""
    known = _unusable(path, sha256)
    if known:
        return known[0]
    content = bytes_of(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise IntegrityError(f"{path}: was changed after the audit was sealed")
    try:
        return _read_overview(path, content)
    except IntegrityError as problem:
        known.append(str(problem))
        return known[0]


def _read_overview(path: Path, content: bytes) -> Overview:
    record = parse_object(path, content)
    if record.get("schema_version") != SCHEMA_VERSION:
        version = f"{record.get('schema_version')!r:.40}"
        raise IntegrityError(f"{path}: has schema version {version}, and this release reads {SCHEMA_VERSION}: audit the cluster again")
    try:
        return Overview.model_validate(record)
    except ValidationError as problem:
        first = problem.errors(include_input=False)[0]
        where = ".".join(f"{part!s:.80}" for part in first["loc"])
        raise IntegrityError(f"{path}: has no form that this release reads ({where}: {first['msg']}): audit the cluster again") from problem


def newest_index(root: EvidenceRoot, cluster: str) -> IndexedAudit | None:
    """The index of the newest sealed audit of a cluster; None if none is sealed. IntegrityError if it cannot be used.

    An older audit that was done again, and so was sealed last, is not the newest. That the one sealed last is gone is a broken index.
    """
    state = read_state(root.audits(cluster))
    last = state.head.audit_id if state is not None and state.head is not None else ""
    newest = max(last, root.newest_sealed(cluster, AUDIT) or "")
    return open_index(root.audit(cluster, newest)) if newest else None
