"""Offsets snapshots of one UTC day, for tests of rolling it up and deleting its snapshots."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

from kafka_audit.policy.tiers import History
from kafka_audit.store.durable_files import replaced_folder
from kafka_audit.store.lag_days import day_start_ms, manifest_of
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from kafka_audit.store.retention import Decision, delete_expired
from kafka_audit.store.samples import DAY_MS, Samples, read_samples
from kafka_audit.store.sealed import OFFSETS, seal

DAY = date(2026, 7, 20)
LATER = date(2026, 8, 20)
HOUR_MS = 3_600_000


class Day:
    """Offsets snapshots of one UTC day, and the day as the roll-up makes it of them (its tables do not matter here)."""

    def __init__(self, root: Path) -> None:
        self.root = EvidenceRoot(path=root)

    def take(self, hour: float, cluster_id: str | None = "own", **fields: object) -> Snapshot:
        at = datetime(DAY.year, DAY.month, DAY.day, tzinfo=timezone.utc) + timedelta(hours=hour)
        with self.root.snapshot_writer("prod", new_id(at, f"{hour} {cluster_id}"), OFFSETS) as writer:
            writer.write("offsets", pa.table({"log_end": [hour]}))
            said = {"cluster_id": cluster_id, "started_at": at.isoformat(), "finished_at": at.isoformat(), **fields}
            return Snapshot.open(writer.seal(said))

    def samples(self, before: str | None = None) -> Samples:
        start = day_start_ms(DAY)
        found = {"first_ms": start, "last_ms": start + DAY_MS, "interval_ms": HOUR_MS}
        return read_samples(self.root, "prod", **found, cluster_id=None, before=before)

    def roll_up(self, before: str | None = None) -> Path:
        place = self.root.lag_days("prod") / DAY.isoformat()
        with replaced_folder(place) as folder:
            (folder / "groups.parquet").write_bytes(b"rows")
            seal(folder, manifest_of("prod", DAY, self.samples(before), HOUR_MS, None))
        return place

    def delete(self, today: date = LATER, **how: bool) -> dict[str, Decision]:
        return {one.name: one for one in delete_expired(self.root, "prod", History(), today, **how)}

    @property
    def kept(self) -> set[str]:
        return set(self.root.sealed_ids("prod", OFFSETS))


def names(snapshots: Sequence[Snapshot]) -> list[str]:
    return [one.snapshot_id for one in snapshots]
