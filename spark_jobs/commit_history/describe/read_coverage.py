"""For which time each partition of the offsets topic was read without missing records, and which partition holds a group.

Only within that time does the absence of a record mean that something did not happen.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.store.commit_batches import batches_in, raw_manifest, read_at
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.times import parse_time
from spark_jobs.commit_history.describe.skipped_offsets import may_be_compacted
from spark_jobs.engine.tables import parts_of

_CLOCKS_APART = timedelta(hours=1)
"""A record may be this much younger than the run that read it, by the broker's clock and by what the run waited for."""
_NEVER = datetime(1970, 1, 1, tzinfo=timezone.utc)
# Java hashes UTF-16 code units. The empty id is a case of its own because Spark's sequence(0, -1) counts backwards.
_UNITS = "hex(encode(group_id, 'UTF-16BE'))"
_HASH = f"""case when group_id = '' then 0L else aggregate(sequence(0, cast(length({_UNITS}) / 4 as int) - 1), 0L,
    (h, i) -> (h * 31 + cast(conv(substring({_UNITS}, i * 4 + 1, 4), 16, 10) as bigint)) & 4294967295L) end"""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How far one partition of the offsets topic was read; times in UTC.

    ``complete_since``: every record written since then was read; None: every record since the partition was created. ``lost_until``: before
    then even the newest record of a key may be missing; None: none is. (Compaction removes older records of a key, never the newest.)
    ``read_to``: records up to then were read: the end of the window, or less where an open transaction holds records back.
    """

    partition: int
    next_offset: int
    complete_since: datetime | None = None
    lost_until: datetime | None = None
    read_to: datetime

    def as_json(self) -> dict[str, Any]:
        return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(self).items()}

    @staticmethod
    def from_json(said: Mapping[str, Any]) -> "Reading":
        times = {name: parse_time(said[name]) if said[name] else None for name in ("complete_since", "lost_until")}
        return Reading(partition=said["partition"], next_offset=said["next_offset"], read_to=parse_time(said["read_to"]), **times)


def recent_batches(history: Path, since: datetime, before: Iterable[Reading]) -> list[Path]:
    """The decoded batches that may hold records from ``since`` on, or have offsets beyond those of ``before``, in order.

    They are the newest ones: no manifest is read of those before them, of which a store may hold thousands.
    """
    found: list[Path] = []
    for name in reversed(batches_in(history / "decoded")):
        batch = history / "decoded" / name
        if read_at(history, name) < since - _CLOCKS_APART and not new_batches(history, [batch], before):
            break
        found.append(batch)
    return found[::-1]


def new_batches(history: Path, batches: Iterable[Path], before: Iterable[Reading]) -> list[Path]:
    """The decoded batches with offsets beyond those of ``before``."""
    reached = {each.partition: each.next_offset for each in before}
    return [batch for batch in batches if any(one["end"] > reached.get(one["partition"], 0) for one in _ranges(history, batch))]


def _ranges(history: Path, batch: Path) -> list[dict[str, Any]]:
    ranges: list[dict[str, Any]] = raw_manifest(history, batch.name)["partitions"]
    return ranges


def readings(
    history: Path,
    batches: Iterable[Path],
    before: Iterable[Reading],
    *,
    end: datetime,
    partitions: int,
    held: Mapping[int, datetime | None],
) -> list[Reading]:
    """The coverage of each partition after the decoded ``batches``, by partition number; ``before``: the coverage until then.

    Missing records that are found now count as missing until ``end``. ``held``: partitions in which an open transaction holds records
    back, with the time of the newest record that was read.
    """
    known = {each.partition: each for each in before}
    ranges: dict[int, list[dict[str, Any]]] = {number: [] for number in {*range(partitions), *known}}
    for batch in batches:
        of_batch = _ranges(history, batch)
        undecoded = _undecoded(batch) if read_json(batch / MANIFEST)["rows"]["undecoded"] else Counter()
        for said in of_batch:
            number = said["partition"]
            ranges.setdefault(number, []).append({**said, "batch": batch, "undecoded": undecoded[number]})
    found = []
    for number, new in sorted(ranges.items()):
        prior = known.get(number)
        reached, complete, whole = _follow(prior, new)
        read_to = end
        if number in held:
            newest = [time for time in (held[number], prior.read_to if prior else None) if time]
            read_to = max(newest, default=_NEVER)
        found.append(
            Reading(
                partition=number,
                next_offset=reached,
                complete_since=(prior.complete_since if prior else None) if complete else end,
                lost_until=(prior.lost_until if prior else None) if whole else end,
                read_to=read_to,
            )
        )
    return found


def _follow(prior: Reading | None, ranges: Iterable[Mapping[str, Any]]) -> tuple[int, bool, bool]:
    """The next offset to read, whether every record before it was read, and whether the newest record of every key was."""
    reached, complete, whole = prior.next_offset if prior else None, True, True
    for one in sorted(ranges, key=lambda each: each["start"]):
        if reached is None:
            # Records that were removed before the history began are not on the brokers either: no newest record is missing.
            complete = one["start"] == 0
        elif one["end"] <= reached:
            continue
        elif one["start"] > reached:
            whole = False
        whole = whole and not one["lost"] and not one["undecoded"]
        complete = complete and whole
        if complete and one["skipped"]:
            complete = not may_be_compacted(one["batch"], one["partition"], one["start"], one["end"])
        reached = one["end"]
    return reached or 0, complete, whole


def _undecoded(batch: Path) -> Counter[int]:
    """Undecoded rows of each log_partition, counted a batch of rows at a time."""
    counts: Counter[int] = Counter()
    for rows in ds.dataset([str(part) for part in parts_of([batch / "undecoded.parquet"])]).to_batches(columns=["log_partition"]):
        for count in pc.value_counts(rows["log_partition"]).to_pylist():
            counts[count["values"]] += count["counts"]
    return counts


def with_home_partition(groups: DataFrame, partitions: int | None) -> DataFrame:
    """Add ``home_partition`` (int): the partition of the offsets topic that holds a group, Utils.abs(groupId.hashCode()) % ``partitions``.

    NULL where the partition count is None, not known. Kafka's Utils.abs is 0 for Integer.MIN_VALUE. Pass distinct groups: the hash is
    computed character by character.
    """
    if partitions is None:
        return groups.withColumn("home_partition", F.lit(None).cast("int"))
    hashed = groups.withColumn("_hash", F.expr(_HASH))
    positive = F.expr("case when _hash = 2147483648L then 0L when _hash > 2147483648L then 4294967296L - _hash else _hash end")
    return hashed.withColumn("home_partition", (positive % partitions).cast("int")).drop("_hash")
