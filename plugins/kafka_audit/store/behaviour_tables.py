"""The behaviour tables of a commit history: finds and verifies the folder that an audit uses, and makes the audit's record of it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import sha256_of
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.manifest import MANIFEST, manifest_sha256
from kafka_audit.store.mirrors import remote_at
from kafka_audit.store.sealed import BEHAVIOUR, Sealed, sealed_in
from kafka_audit.times import parse_time, stamp

GROUPS, GROUP_PARTITIONS = "groups.parquet", "group_partitions.parquet"
RECORD = "commit_history.json"
"""The file in the audit in which a job records the folder that it used."""

KEPT = 200
"""How many behaviour folders a history keeps, the newest."""
MOST_HOURS_OLD = 2
"""A history that ends earlier than this before the snapshot is not used."""

_FOLDER = re.compile(r"behaviour/[0-9]{8}T[0-9]{6}Z")
_SHOWN = ("observed_from", "start", "offsets_retention_ms", "totals", "gaps", "gap_count", "rows")


class BehaviourFolder(Sealed):
    """One behaviour folder."""

    kinds = (BEHAVIOUR,)
    repair = "restore it from a copy, or remove it"


@dataclass(frozen=True, kw_only=True)
class Behaviour:
    """The behaviour folder that an audit uses, with its manifest; without one, ``reason`` says why.

    ``changed``: how the choice differs from an earlier run of the same audit; empty if it does not.
    """

    path: Path | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    changed: str = ""

    def table(self, name: str) -> Path:
        """Path of one of its tables; IntegrityError without a folder."""
        if self.path is None:
            raise IntegrityError(f"no {name} was read: {self.reason}")
        return self.path / name

    @property
    def end(self) -> datetime:
        return parse_time(self.manifest["end"])

    @property
    def start(self) -> datetime:
        return parse_time(self.manifest["start"])

    @property
    def window_hours(self) -> float:
        """How long the window is that was described."""
        return (self.end - self.start).total_seconds() / 3600

    @property
    def observed_from(self) -> datetime:
        """When the oldest record of the window was written; its end when the window has none."""
        return parse_time(self.manifest.get("observed_from") or self.manifest["end"])

    @property
    def hours(self) -> float:
        """Hours between the oldest record of the window and its end. Missing records in between are not subtracted."""
        return (self.end - self.observed_from).total_seconds() / 3600

    def record(self) -> dict[str, Any]:
        """The audit's record: folder, manifest_sha256, end, hours, and how complete it is; or the reason why none was used."""
        said = {"changed_since": self.changed or None}
        if self.path is None:
            return {**said, "folder": None, "reason": self.reason}
        named = {"folder": f"behaviour/{self.path.name}", "manifest_sha256": sha256_of(self.path / MANIFEST), "reason": None}
        figures = {name: self.manifest.get(name) for name in _SHOWN}
        return {**said, **named, "end": self.end.isoformat(), "hours": round(self.hours, 3), **figures}


def open_behaviour(folder: Path) -> Behaviour:
    """Open a behaviour folder; IntegrityError (exit 5) when its files differ from its manifest."""
    found = Behaviour(path=folder, manifest=BehaviourFolder.verified(folder).manifest)
    try:
        found.hours, found.window_hours  # noqa: B018 - its times are needed
    except (KeyError, ValueError) as problem:
        raise IntegrityError(f"{folder / MANIFEST}: its times cannot be read ({problem}); remove the folder") from problem
    return found


def folders_until(history: Path, latest: datetime) -> Iterator[Path]:
    """The behaviour folders of a history that end at ``latest`` or before by their names, newest first. They are not verified."""
    for name in reversed(sealed_in(history / "behaviour")):
        if name <= stamp(latest):
            yield history / "behaviour" / name


def find_behaviour(snapshot: Snapshot, recorded: Mapping[str, Any] | None = None) -> Behaviour:
    """The newest behaviour folder that ends before the snapshot began, where it is of the same cluster and not too old.

    ``recorded``: the record of an earlier run of the same audit, whose folder is used again if it still exists. IntegrityError when that
    folder, or the newest one, differs from its manifest.
    """
    history = snapshot.root.commit_history(str(snapshot.manifest["cluster"]))
    taken = datetime.fromtimestamp(snapshot.taken_ms / 1000, timezone.utc)
    said = recorded or {}
    before, changed = str(said.get("folder") or ""), str(said.get("changed_since") or "")
    if _FOLDER.fullmatch(before) and (found := manifest_sha256(history / before)):
        if found != said.get("manifest_sha256"):
            raise IntegrityError(f"{history / before}: its manifest is not the one that this audit used before; restore it from a copy")
        return replace(open_behaviour(history / before), changed=changed)
    if before:
        changed = f"an earlier run of this audit used {before}, which has been deleted since"
    return replace(_newest(history, taken, snapshot.manifest.get("cluster_id")), changed=changed)


def _newest(history: Path, taken: datetime, cluster_id: object) -> Behaviour:
    for folder in folders_until(history, taken):
        found = open_behaviour(folder)
        age = (taken - found.end).total_seconds() / 3600
        if age < 0:  # the name has no fractions of a second
            continue
        if found.manifest.get("cluster_id") != cluster_id:
            return Behaviour(reason=f"the commit history is of cluster {found.manifest.get('cluster_id')}, not of this one")
        if age > MOST_HOURS_OLD:
            ends = f"{found.end:%Y-%m-%d %H:%M}Z, {age:.1f} h before the snapshot"
            return Behaviour(reason=f"the commit history ends {ends}; at most {MOST_HOURS_OLD} h are allowed")
        return found
    names = sealed_in(history / "behaviour")
    if not names:
        return Behaviour(reason="no commit history was read for this cluster")
    kept = "" if remote_at(history) else f" (the newest {KEPT} of them are kept)"
    return Behaviour(reason=f"the commit history has no tables from before the snapshot, the oldest end at {names[0]}{kept}")
