"""Writes the files of one snapshot and seals them: the folder gets its final name only when all files are synced to disk."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafka_audit.store.durable_files import FOLDER_MODE, make_folder, sync_folder, sync_tree, write_failed
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import seal
from kafka_audit.store.unfinished import hold_new

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
    _sealed: bool = False
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
        """Write the manifest over what is durable by then, sign it where the installation signs, and give the folder its final name."""
        identity = {"kind": self.kind, "cluster": self.cluster, "snapshot_id": self.snapshot_id}
        try:
            sync_tree(self.folder)
            seal(self.folder, {**fields, **identity}, self._rows)
            if self.key is not None:
                self.key.sign(self.folder, self.folder / MANIFEST)
            sync_folder(self.folder)
            self.folder.rename(self.final)
            sync_folder(self.final.parent)
        except OSError as problem:
            raise write_failed(self.final, problem) from problem
        self._sealed = True
        return self.final

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        if not self._sealed:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._held)
