"""Reads which earlier snapshots an audit compared with, as the two parts of its verification (settings, lag) recorded them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Audit


@dataclass(frozen=True, kw_only=True)
class EarlierSnapshot:
    """One snapshot that was used, and the sha256 of its manifest."""

    snapshot_id: str
    manifest_sha256: str


@dataclass(frozen=True, kw_only=True)
class UsedHistory:
    """The snapshots that one or both parts used, oldest first, and those left out, with the reason. ``recorded``: they left a record."""

    parts: tuple[str, ...]
    recorded: bool
    used: tuple[EarlierSnapshot, ...] = ()
    left_out: tuple[str, ...] = ()


def read_used_history(audit: Audit) -> tuple[UsedHistory, ...]:
    """Return one record if both parts used the same snapshots, else one per part; IntegrityError if a file is broken."""
    settings, lag = (_read(part, audit.path / part / "history.json") for part in (SETTINGS, LAG))
    if (settings.recorded, settings.used, settings.left_out) != (lag.recorded, lag.used, lag.left_out):
        return (settings, lag)
    both = (*settings.parts, *lag.parts)
    return (UsedHistory(parts=both, recorded=settings.recorded, used=settings.used, left_out=settings.left_out),)


def _read(part: str, path: Path) -> UsedHistory:
    if not path.is_file():
        return UsedHistory(parts=(part,), recorded=False)
    value: Mapping[str, Any] = read_json(path)
    try:
        used = tuple(
            EarlierSnapshot(snapshot_id=str(one["snapshot_id"]), manifest_sha256=str(one["manifest_sha256"])) for one in value["used"]
        )
        return UsedHistory(parts=(part,), recorded=True, used=used, left_out=tuple(str(one) for one in value["left_out"]))
    except (KeyError, TypeError) as problem:
        raise IntegrityError(f"{path}: is not the record of a history ({problem!r}): run the step that writes it again") from problem
