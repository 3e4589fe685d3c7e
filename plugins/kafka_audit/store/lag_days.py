"""The lag history of a cluster, one folder for each UTC day: which are whole, what they were made of, and which have to be made."""

from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST, read_manifest
from kafka_audit.store.samples import DAY_MS, Samples, gaps
from kafka_audit.store.sealed import LAG_DAY, OFFSETS, Sealed

GROUP_PARTITIONS, GROUPS = "group_partitions.parquet", "groups.parquet"


@dataclass(frozen=True, kw_only=True)
class LagDay(Sealed):
    """One rolled-up day."""

    kinds = (LAG_DAY,)

    @property
    def day(self) -> date:
        return date.fromisoformat(self.path.name)

    @property
    def sources(self) -> list[dict[str, Any]]:
        """snapshot_id, manifest_sha256 and taken_ms of each sample, oldest first."""
        return list(self.manifest["sources"])

    @property
    def cluster_id(self) -> str:
        return str(self.manifest["cluster_id"])


def day_start_ms(day: date) -> int:
    """When a UTC day begins, in milliseconds since the epoch."""
    return round(datetime(day.year, day.month, day.day, tzinfo=timezone.utc).timestamp() * 1000)


def days_in(root: EvidenceRoot, cluster: str) -> list[Path]:
    """The folders of all days, oldest first; some may turn out broken. Another way to write a day, as 20261120, is not the name of one."""
    return sorted(manifest.parent for manifest in root.lag_days(cluster).glob(f"*/{MANIFEST}") if _is_day(manifest.parent.name))


def _is_day(name: str) -> bool:
    try:
        return date.fromisoformat(name).isoformat() == name
    except ValueError:
        return False


def read_days(root: EvidenceRoot, cluster: str, first: date, last: date) -> tuple[list[LagDay], list[str]]:
    """The whole days from ``first`` to ``last``, oldest first, and the problems of the others."""
    days, problems = [], []
    for folder in days_in(root, cluster):
        if first <= date.fromisoformat(folder.name) <= last:
            try:
                days.append(LagDay.verified(folder))
            except IntegrityError as problem:
                problems.append(str(problem))
    return days, problems


def snapshot_days(root: EvidenceRoot, cluster: str) -> list[date]:
    """The UTC days that offsets snapshots may belong to by their ids, oldest first."""
    return sorted({day for name in root.sealed_ids(cluster, OFFSETS) if (day := day_of_id(name)) is not None})


def day_of_id(snapshot_id: str) -> date | None:
    """The UTC day that an id is stamped with; None when there is no such day."""
    try:
        return date(int(snapshot_id[:4]), int(snapshot_id[4:6]), int(snapshot_id[6:8]))
    except ValueError:
        return None


def needs_work(day: LagDay | None, samples: Samples, interval_ms: int, previous_sha256: str | None) -> bool:
    """Whether a day has to be made of these samples, for the first time or anew.

    One that was made of a snapshot that is gone or was changed since is kept as it is: nothing could make it again.
    """
    if not samples.used:
        return False
    if day is None:
        return True
    known = {source["snapshot_id"]: source["manifest_sha256"] for source in day.sources}
    now = {one.snapshot_id: one.manifest_sha256 for one in samples.used}
    if not known.items() <= {**now, **{one.snapshot_id: one.manifest_sha256 for one in samples.foreign}}.items():
        return False
    made_with = (day.manifest["interval_seconds"] * 1000, day.manifest["previous_sha256"])
    listed = {one["snapshot_id"] for one in day.manifest["left_out"]}
    return known != now or made_with != (interval_ms, previous_sha256) or not {name for name, _ in samples.left_out} <= listed


def can_be_replaced(folder: Path, samples: Samples) -> bool:
    """Whether a day that cannot be opened may be made again: its manifest can be read, and all that it was made of is among ``samples``."""
    try:
        made_of = {(one["snapshot_id"], one["manifest_sha256"]) for one in read_manifest(folder)["sources"]}
    except (IntegrityError, KeyError, TypeError):
        return False
    return bool(made_of) and made_of <= {(one.snapshot_id, one.manifest_sha256) for one in samples.used}


def manifest_of(cluster: str, day: date, samples: Samples, interval_ms: int, previous_sha256: str | None) -> dict[str, Any]:
    """What the manifest of a day says besides its files."""
    start = day_start_ms(day)
    duplicates = {one.snapshot_id: {"manifest_sha256": one.manifest_sha256} for one in samples.duplicates}
    return {
        "kind": LAG_DAY,
        "cluster": cluster,
        "cluster_id": samples.cluster_id,
        "day": day.isoformat(),
        "interval_seconds": interval_ms // 1000,
        "previous_sha256": previous_sha256,
        "sources": [
            {"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256, "taken_ms": one.taken_ms} for one in samples.used
        ],
        "gaps": gaps([one.taken_ms for one in samples.used], interval_ms, start, start + DAY_MS),
        "left_out": [{"snapshot_id": name, "reason": reason, **duplicates.get(name, {})} for name, reason in samples.left_out],
    }
