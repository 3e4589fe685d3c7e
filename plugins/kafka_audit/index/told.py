"""What was told of a cluster, for each Airflow connection: the only mutable record below a root, and no evidence.

It decides which news are news. A message counts as told once its connection accepted it.
"""

import contextlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafka_audit.errors import IntegrityError
from kafka_audit.index.figures import Count
from kafka_audit.index.overview import LISTED
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.locks import told_held
from kafka_audit.store.mirrors import remote_at

log = logging.getLogger(__name__)

FILE = "told.json"
_VERSION: Literal[1] = 1
_MOST_BYTES = 32 << 20
_MOST_STANDING = 1_000
_MOST_CONNECTIONS = 100

Key = Annotated[str, Field(max_length=200)]
Line = Annotated[str, Field(max_length=500)]


class Told(BaseModel):
    """What one connection was told of a cluster.

    ``audit_id``: the newest audit whose failures it was told, and ``sealed_id`` the newest audit that it knows of, be it void; None: none
    yet. ``standing``: the bad states that it was told and that have
    not ended, as key -> the line that said so. ``lost_records``: the lost records it knows of; ``lost``: those of listed partitions;
    ``losing``: the partitions of which it was told that they lose records soon. Partitions are named by their keys (news_events.loss_key).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    audit_id: Key | None = None
    sealed_id: Key | None = None
    standing: Annotated[dict[Key, Line], Field(max_length=_MOST_STANDING)] = {}
    lost_records: Count = 0
    lost: Annotated[dict[Key, Count], Field(max_length=LISTED)] = {}
    losing: Annotated[tuple[Key, ...], Field(max_length=LISTED)] = ()


class _ToldFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = _VERSION
    kind: Literal["told"] = "told"
    cluster: str
    connections: Annotated[dict[Key, Told], Field(max_length=_MOST_CONNECTIONS)] = {}


@dataclass(frozen=True, kw_only=True)
class ToldRecord:
    """The record of a cluster while its lock is held."""

    path: Path
    cluster: str
    connections: dict[str, Told]

    def told(self, connection: str) -> Told:
        """What a connection was told; a connection that the record does not name was told nothing."""
        return self.connections.get(connection, Told())

    def keep(self, connection: str, told: Told) -> None:
        """Record what a connection knows now; nothing is written if that is what it was. CollectionError if it cannot be written."""
        if self.connections.get(connection) != told:
            self.connections[connection] = told
            _write(self.path, self.cluster, self.connections)
            if remote := remote_at(self.path):
                remote.send_file(self.path)


@contextlib.contextmanager
def told_record(root: EvidenceRoot, cluster: str) -> Iterator[ToldRecord]:
    """The record of what was told of a cluster, under its lock; CollectionError if the lock cannot be had.

    A record that cannot be read is logged and replaced: then every connection was told nothing, and hears once how things stand.
    """
    folder = root.told(cluster)
    with told_held(folder):
        if remote := root.remote:
            remote.bring_file(folder / FILE)
        yield ToldRecord(path=folder / FILE, cluster=cluster, connections=_read(folder / FILE, cluster))


def _read(path: Path, cluster: str) -> dict[str, Told]:
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        if path.is_symlink():
            raise IntegrityError(f"{path}: is a link")
        found = _ToldFile.model_validate(read_json(path, _MOST_BYTES))
        if found.cluster != cluster:
            raise IntegrityError(f"{path}: is of cluster {found.cluster!r:.80}")
    except (IntegrityError, ValidationError) as problem:
        log.warning("the record of what was told is replaced, so everything that stands is told once more: %.500s", problem)
        return {}
    return dict(found.connections)


def _write(path: Path, cluster: str, connections: Mapping[str, Told]) -> None:
    write_json(path, _ToldFile(cluster=cluster, connections=dict(connections)).model_dump(mode="json"))
