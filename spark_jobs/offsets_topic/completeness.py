"""How much of the offsets topic was read, by offset arithmetic: the broker can compact history away while the log start stays 0."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from kafka_audit.errors import IntegrityError

LOST_ITS_END = (
    "the topic lost records at its end (an unclean leader election, or restored brokers). Keep this history as evidence and begin another"
)


@dataclass(frozen=True, kw_only=True)
class PartitionCoverage:
    """One partition of one batch: offsets from ``start`` up to ``end``, and where they are.

    ``rows`` were read. ``lost`` lay before the log start: gone for certain. ``skipped`` is the rest: transaction markers, aborted commits
    and compacted records, which Kafka does not let a consumer tell apart. rows + lost + skipped = end - start.
    """

    partition: int
    start: int
    end: int
    log_start: int
    rows: int
    lost: int
    skipped: int


def coverage(
    start: Mapping[int, int], end: Mapping[int, int], log_start: Mapping[int, int], rows: Mapping[int, int]
) -> list[PartitionCoverage]:
    """The partitions in which the batch has a range, by number; IntegrityError where one ends before its start."""
    found = []
    for partition in sorted(end):
        first, last, read = start.get(partition, 0), end[partition], rows.get(partition, 0)
        if last == first:
            continue
        if last < first:
            raise IntegrityError(f"partition {partition} was read up to {first}, and ends at {last}: {LOST_ITS_END}")
        gone = max(0, min(log_start[partition], last) - first)
        # A record may be deleted between the look at the log start and the reading: it counts as skipped then, as lost only if not read.
        gone = min(gone, last - first - read)
        found.append(
            PartitionCoverage(
                partition=partition,
                start=first,
                end=last,
                log_start=log_start[partition],
                rows=read,
                lost=gone,
                skipped=last - first - gone - read,
            )
        )
    return found


def totals(partitions: list[PartitionCoverage]) -> dict[str, int]:
    """Sums of expected (end - start), rows, lost and skipped."""
    rows = [asdict(each) for each in partitions]
    return {"expected": sum(each["end"] - each["start"] for each in rows)} | {
        name: sum(each[name] for each in rows) for name in ("rows", "lost", "skipped")
    }
