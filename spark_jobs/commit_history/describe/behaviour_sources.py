"""The sources of a behaviour folder: the time of a batch's newest record, and the manifest that names the batches and their gaps."""

from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_audit.store.behaviour_tables import Behaviour
from kafka_audit.store.commit_batches import REPAIR_OF_DECODED, read_as_parquet, verify_batch
from kafka_audit.store.durable_files import read_json, sha256_of
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import BEHAVIOUR

_GAPS_LISTED = 20
_WITH_TIMES = ("offset_commits.parquet/", "group_records.parquet/")


def newest_record(batch: Path) -> datetime:
    """When the newest record of a decoded batch was appended; for a batch without records, when the batch was written.

    IntegrityError (exit 5) when files are missing, were added or cannot be read. Hashes are not compared here.
    """
    times = []
    for name in verify_batch(batch, REPAIR_OF_DECODED, names_only=True):
        if name.startswith(_WITH_TIMES):
            with read_as_parquet(batch / name, REPAIR_OF_DECODED):
                times.append(_newest_of(batch / name))
    written = datetime.fromtimestamp((batch / MANIFEST).stat().st_mtime, timezone.utc)
    return max((time for time in times if time is not None), default=written)


def _newest_of(part: Path) -> datetime | None:
    file = pq.ParquetFile(part, coerce_int96_timestamp_unit="us")
    column = file.schema_arrow.get_field_index("append_time")
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    statistics = [_statistics(group, column) for group in groups if group.num_rows]
    if all(one is not None and one.has_min_max for one in statistics):
        times = [one.max for one in statistics]
    else:
        times = [
            pc.max(file.read_row_group(number, columns=["append_time"])["append_time"]).as_py() for number in range(file.num_row_groups)
        ]
    return max((_utc(time) for time in times if time is not None), default=None)


def _statistics(group: Any, column: int) -> Any:  # noqa: ANN401  (pyarrow ships no types)
    return group.column(column).statistics


def _utc(time: datetime) -> datetime:
    return time.astimezone(timezone.utc) if time.tzinfo else time.replace(tzinfo=timezone.utc)


def manifest_of(history: Path, batches: list[Path], before: Behaviour | None, about: Mapping[str, Any]) -> dict[str, Any]:
    """What a behaviour folder's manifest says besides its files: its sources with their manifests' sha256, and the offsets they lack."""
    raw = {batch.name: history / "raw" / batch.name / MANIFEST for batch in batches}
    manifests = {name: read_json(path) for name, path in raw.items()}
    gaps = [gap for name in raw for gap in _gaps(name, manifests[name])]
    return {
        **read_json(history / "source.json"),
        **{name: value.isoformat() if isinstance(value, datetime) else value for name, value in about.items()},
        "kind": BEHAVIOUR,
        "before": {"folder": before.path.name, "manifest_sha256": sha256_of(before.path / MANIFEST)} if before and before.path else None,
        "sources": [
            {"batch": batch.name, "manifest_sha256": sha256_of(batch / MANIFEST), "raw_manifest_sha256": sha256_of(raw[batch.name])}
            for batch in batches
        ],
        "totals": {
            name: sum(manifests[batch.name]["totals"][name] for batch in batches) for name in ("expected", "rows", "lost", "skipped")
        },
        "gaps": gaps[:_GAPS_LISTED],
        "gap_count": len(gaps),
    }


def _gaps(batch: str, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Offsets that were deleted before they could be read, by partition of the offsets topic."""
    lost = [one for one in manifest.get("partitions", ()) if one["lost"]]
    return [{"batch": batch, "partition": one["partition"], "start": one["start"], "lost": one["lost"]} for one in lost]
