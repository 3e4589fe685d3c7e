"""Reads what a report says about the snapshot (cluster, brokers, permissions, collection errors, files) and the earlier ones compared."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.errors import IntegrityError
from kafka_audit.report.rows import all_rows, batches
from kafka_audit.store.durable_files import read_json, sha256_of
from kafka_audit.store.layout import Audit, Snapshot

ERRORS_SHOWN = 100
"""The largest number of collection errors that are listed; equal errors count as one."""

_EXAMPLES = 3


Row = Mapping[str, Any]
"""A row of one of the tables below; None: not known."""

_BROKER = ("broker_id", "host", "port", "rack", "alive", "answered", "is_controller")
_CAPABILITY = ("api", "api_key", "min_version", "max_version", "supported", "allowed", "detail")
"""One Kafka API: the versions that this cluster supports, and whether the audit's principal may use it."""


@dataclass(frozen=True, kw_only=True)
class Collection:
    """What a report needs of one snapshot. Times are ISO text from the manifest.

    ``problems``: evidence that could not be read, as {dataset, api, error, count, message, where}: how often it occurred, and examples of
    where. ``files``: as :func:`audit_files` returns them.
    """

    snapshot_id: str
    manifest_sha256: str
    cluster_id: str
    started_at: str
    finished_at: str
    scope: tuple[tuple[str, tuple[str, ...]], ...]
    versions: tuple[tuple[str, str], ...]
    controller_id: int | None
    features: tuple[tuple[str, int | None], ...]
    brokers: tuple[Row, ...]
    capabilities: tuple[Row, ...]
    problems: tuple[Row, ...]
    problem_kinds: int
    problem_count: int
    files: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class UsedHistory:
    """The snapshots that one or both parts used, oldest first, and those left out, with the reason. ``recorded``: they left a record.

    ``used``: {snapshot_id, manifest_sha256}. ``first_audit``: it was the cluster's first audit, which took the baseline.
    """

    parts: tuple[str, ...]
    recorded: bool
    used: tuple[Row, ...] = ()
    left_out: tuple[str, ...] = ()
    first_audit: bool = False


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _patterns(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else (str(value),)


def _where(row: Row) -> str:
    named = (("broker", "broker_id"), ("group", "group_id"), ("topic", "topic"), ("partition", "partition"))
    return ", ".join(f"{word} {row[column]}" for word, column in named if row[column] is not None) or "the whole dataset"


def _problems(path: Path) -> list[dict[str, Any]]:
    """Collection errors, grouped; most frequent first."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for table in batches(path, ("dataset", "api", "broker_id", "topic", "partition", "group_id", "error", "message")):
        for row in table.to_pylist():
            kind = {name: row[name] or "" for name in ("dataset", "api", "error")}
            one = found.setdefault(tuple(kind.values()), {**kind, "count": 0, "message": row["message"] or "", "where": []})
            one["count"] += 1
            if len(one["where"]) < _EXAMPLES:
                one["where"].append(_where(row))
    return sorted(found.values(), key=lambda one: (-one["count"], one["dataset"], one["api"], one["error"]))


def read_collection(snapshot: Snapshot) -> Collection:
    """Read one sealed snapshot's manifest and its small datasets; IntegrityError if a file cannot be used."""
    manifest = snapshot.manifest
    files = [
        {"path": name, "sha256": str(entry.get("sha256", "")), "bytes": entry.get("bytes"), "rows": entry.get("rows")}
        for name, entry in sorted(_mapping(manifest.get("files")).items())
    ]
    cluster = all_rows(snapshot.dataset("cluster"), ("cluster_id", "controller_id", "features"))
    row: Mapping[str, Any] = cluster[0] if cluster else {}
    brokers = all_rows(snapshot.dataset("brokers"), _BROKER)
    apis = all_rows(snapshot.dataset("capabilities"), _CAPABILITY)
    problems = _problems(snapshot.dataset("errors"))
    return Collection(
        snapshot_id=snapshot.snapshot_id,
        manifest_sha256=snapshot.manifest_sha256,
        cluster_id=str(manifest.get("cluster_id") or row.get("cluster_id") or ""),
        started_at=str(manifest.get("started_at") or ""),
        finished_at=str(manifest.get("finished_at") or ""),
        scope=tuple((key, _patterns(value)) for key, value in sorted(_mapping(manifest.get("scope")).items())),
        versions=tuple((key, str(value)) for key, value in sorted(_mapping(manifest.get("versions")).items())),
        controller_id=row.get("controller_id"),
        features=tuple(sorted((one["name"], one["finalized_max"]) for one in row.get("features") or [])),
        brokers=tuple(sorted(brokers, key=lambda one: one["broker_id"])),
        capabilities=tuple(sorted(apis, key=lambda one: (one["api"], one["api_key"] or -1))),
        problems=tuple(problems[:ERRORS_SHOWN]),
        problem_kinds=len(problems),
        problem_count=sum(one["count"] for one in problems),
        files=tuple(files),
    )


def audit_files(folder: Path) -> tuple[Row, ...]:
    """The audit's files that the report was made from, as {path, sha256, bytes, rows}: results and gate JSON.

    The gate's raw output and the report are not among them.
    """
    wanted = [folder / "run.json", *folder.glob("settings/*"), *folder.glob("lag/*"), *folder.glob("gate/*.json")]
    found = [path for one in wanted for path in (one.rglob("*.parquet") if one.is_dir() else [one])]
    hashed = sorted(path for path in found if path.is_file() and not path.name.startswith((".", "_")))
    return tuple(
        {"path": path.relative_to(folder).as_posix(), "sha256": sha256_of(path), "bytes": path.stat().st_size, "rows": None}
        for path in hashed
    )


def read_used_history(audit: Audit) -> tuple[UsedHistory, ...]:
    """Return one record if both parts used the same snapshots, else one per part; IntegrityError if a file is broken."""
    settings, lag = (_used(part, audit.path / part / "history.json") for part in (SETTINGS, LAG))
    both = replace(settings, parts=(*settings.parts, *lag.parts))
    return (both,) if replace(lag, parts=both.parts) == both else (settings, lag)


def _used(part: str, path: Path) -> UsedHistory:
    if not path.is_file():
        return UsedHistory(parts=(part,), recorded=False)
    value: Mapping[str, Any] = read_json(path)
    try:
        used = tuple({name: str(one[name]) for name in ("snapshot_id", "manifest_sha256")} for one in value["used"])
        left_out, first_audit = tuple(str(one) for one in value["left_out"]), value["first_audit"] is True
        return UsedHistory(parts=(part,), recorded=True, used=used, left_out=left_out, first_audit=first_audit)
    except (KeyError, TypeError) as problem:
        raise IntegrityError(f"{path}: is not the record of a history ({problem!r}): run the step that writes it again") from problem
