"""Reads what a report says about the snapshot (cluster, brokers, permissions, collection errors, files) and the earlier ones compared."""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainSerializer
from pydantic.dataclasses import dataclass

from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.errors import IntegrityError
from kafka_audit.report.frozen import EXACT, KnownText
from kafka_audit.report.rows import all_rows, batches
from kafka_audit.store.durable_files import read_json, sha256_of
from kafka_audit.store.layout import Audit, Snapshot

ERRORS_SHOWN = 100
"""The largest number of collection errors that are listed; equal errors count as one."""

_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Broker:
    """One broker; None: not known."""

    broker_id: int
    host: str | None
    port: int | None
    rack: str | None
    alive: bool | None
    answered: bool | None
    is_controller: bool | None


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Capability:
    """One Kafka API: the versions that this cluster supports, and whether the audit's principal may use it; None: not known."""

    api: str
    api_key: int | None
    min_version: int | None
    max_version: int | None
    supported: bool | None
    allowed: bool | None
    detail: str | None


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Problem:
    """Evidence that could not be read: how often that occurred, and examples of where."""

    dataset: str
    api: str
    error: str
    count: int
    message: str
    where: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class HashedFile:
    """A file by its path in its folder, with its size in bytes and, for a dataset, its number of rows; None: not known."""

    path: str
    sha256: str
    bytes: int | None
    rows: int | None


@dataclass(frozen=True, kw_only=True, config=EXACT)
class UsedSnapshot:
    """An earlier snapshot that this one was compared with."""

    snapshot_id: str
    manifest_sha256: str


TextByName = Annotated[tuple[tuple[str, str], ...], PlainSerializer(dict, return_type=dict[str, str])]
TextsByName = Annotated[tuple[tuple[str, tuple[str, ...]], ...], PlainSerializer(dict, return_type=dict[str, tuple[str, ...]])]
LevelByName = Annotated[tuple[tuple[str, int | None], ...], PlainSerializer(dict, return_type=dict[str, int | None])]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Collection:
    """What a report needs of one snapshot. Times are ISO text from the manifest.

    ``problems``: the first kinds of ``problem_kinds``, most frequent first; ``problem_count`` counts every single one.
    """

    snapshot_id: str
    manifest_sha256: str
    cluster_id: KnownText
    started_at: KnownText
    finished_at: KnownText
    scope: TextsByName
    versions: TextByName
    controller_id: int | None
    features: LevelByName
    brokers: tuple[Broker, ...]
    capabilities: tuple[Capability, ...]
    problems: tuple[Problem, ...]
    problem_kinds: int
    problem_count: int
    files: tuple[HashedFile, ...]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class UsedHistory:
    """The snapshots that one or both parts used, oldest first, and those left out, with the reason. ``recorded``: they left a record.

    ``first_audit``: it was the cluster's first audit, which took the baseline.
    """

    parts: tuple[str, ...]
    recorded: bool
    used: tuple[UsedSnapshot, ...] = ()
    left_out: tuple[str, ...] = ()
    first_audit: bool = False


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _patterns(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(one) for one in value) if isinstance(value, list | tuple) else (str(value),)


def _where(row: Mapping[str, Any]) -> str:
    named = (("broker", "broker_id"), ("group", "group_id"), ("topic", "topic"), ("partition", "partition"))
    return ", ".join(f"{word} {row[column]}" for word, column in named if row[column] is not None) or "the whole dataset"


def _problems(path: Path) -> list[Problem]:
    """Collection errors, grouped; most frequent first."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for table in batches(path, ("dataset", "api", "broker_id", "topic", "partition", "group_id", "error", "message")):
        for row in table.to_pylist():
            kind = {name: row[name] or "" for name in ("dataset", "api", "error")}
            one = found.setdefault(tuple(kind.values()), {**kind, "count": 0, "message": row["message"] or "", "where": []})
            one["count"] += 1
            if len(one["where"]) < _EXAMPLES:
                one["where"].append(_where(row))
    problems = [Problem(**{**one, "where": tuple(one["where"])}) for one in found.values()]
    return sorted(problems, key=lambda one: (-one.count, one.dataset, one.api, one.error))


def read_collection(snapshot: Snapshot) -> Collection:
    """Read one sealed snapshot's manifest and its small datasets; IntegrityError if a file cannot be used."""
    manifest = snapshot.manifest
    files = [
        HashedFile(path=name, sha256=str(entry.get("sha256", "")), bytes=entry.get("bytes"), rows=entry.get("rows"))
        for name, entry in sorted(_mapping(manifest.get("files")).items())
    ]
    cluster = all_rows(snapshot.dataset("cluster"), ("cluster_id", "controller_id", "features"))
    row: Mapping[str, Any] = cluster[0] if cluster else {}
    brokers = [Broker(**one) for one in all_rows(snapshot.dataset("brokers"), _columns(Broker))]
    apis = [Capability(**one) for one in all_rows(snapshot.dataset("capabilities"), _columns(Capability))]
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
        brokers=tuple(sorted(brokers, key=lambda one: one.broker_id)),
        capabilities=tuple(sorted(apis, key=lambda one: (one.api, one.api_key or -1))),
        problems=tuple(problems[:ERRORS_SHOWN]),
        problem_kinds=len(problems),
        problem_count=sum(one.count for one in problems),
        files=tuple(files),
    )


def _columns(of: type) -> tuple[str, ...]:
    return tuple(one.name for one in fields(of))


def audit_files(folder: Path) -> tuple[HashedFile, ...]:
    """The audit's files that the report was made from: results and gate JSON.

    The gate's raw output and the report are not among them.
    """
    wanted = [folder / "run.json", *folder.glob("settings/*"), *folder.glob("lag/*"), *folder.glob("gate/*.json")]
    found = [path for one in wanted for path in (one.rglob("*.parquet") if one.is_dir() else [one])]
    hashed = sorted(path for path in found if path.is_file() and not path.name.startswith((".", "_")))
    return tuple(
        HashedFile(path=path.relative_to(folder).as_posix(), sha256=sha256_of(path), bytes=path.stat().st_size, rows=None)
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
        used = tuple(UsedSnapshot(**{name: str(one[name]) for name in ("snapshot_id", "manifest_sha256")}) for one in value["used"])
        left_out, first_audit = tuple(str(one) for one in value["left_out"]), value["first_audit"] is True
        return UsedHistory(parts=(part,), recorded=True, used=used, left_out=left_out, first_audit=first_audit)
    except (KeyError, TypeError) as problem:
        raise IntegrityError(f"{path}: is not the record of a history ({problem!r}): run the step that writes it again") from problem
