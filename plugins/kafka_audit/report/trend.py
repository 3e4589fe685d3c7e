"""The figures of an audit that are shown over time. Each audit keeps its own, so that a hundred of them are read at once."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from kafka_audit.audit.outcome import VERDICTS
from kafka_audit.audit.previous import FIGURES, changed, choose_previous, names_none_before, sealed_before
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import EvidenceClass, Severity, Status
from kafka_audit.report.comparison import TrendPoint
from kafka_audit.report.rows import all_rows, batches, exists
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, Snapshot
from kafka_audit.store.manifest import MANIFEST, FileHashes, bytes_of, parse_object, read_manifest
from kafka_audit.times import parse_time

LONGEST = 100
"""The largest number of audits in a trend, this one included."""

_COUNTED = ("evidence_class", "passed", "failed", "errored", "not_assessed")
_SCHEMA_VERSION = 1
_MOST = 2**53
"""The largest count that every reader of a report reads as it is written."""


class Trend(NamedTuple):
    """``points``: the audits whose figures are known, oldest first, this one last. ``gaps``: a sentence for each of the others."""

    points: tuple[TrendPoint, ...]
    gaps: tuple[str, ...]


def read_trend(audit: Audit, snapshot: Snapshot, verdict: str) -> Trend:
    """The sealed audits that an audit was chained to, and the audit itself, which ends with ``verdict``.

    An audit whose figures cannot be read, or were changed, is a gap and never a zero. So is one that was deleted, and it ends the trend,
    because only it named those before it.
    """
    chosen = choose_previous(audit, snapshot.root, audit.path.parent.name, str(snapshot.manifest.get("cluster_id") or ""))
    points, gaps = [figures_of(audit, verdict)], []
    for seal, folder in islice(sealed_before(chosen.newest, audit.path.parent), LONGEST - 1):
        found = _kept(seal, folder)
        if isinstance(found, TrendPoint):
            points.append(found)
        else:
            gaps.append(f"Audit {seal.audit_id} is missing in the trend: {found}.")
    return Trend(points=tuple(reversed(points)), gaps=tuple(gaps))


def figures_of(audit: Audit, verdict: str) -> TrendPoint:
    """The figures of one audit, from the files of its parts; IntegrityError if one cannot be read."""
    failed: Counter[str] = Counter()
    assessed = applicable = 0
    for part in (audit.settings, audit.lag):
        if not (exists(part / "summary.parquet") and exists(part / "findings.parquet")):
            continue
        for row in all_rows(part / "summary.parquet", _COUNTED):
            numbers = {name: int(row[name] or 0) for name in _COUNTED[1:]}
            open_ones = numbers["not_assessed"] if row["evidence_class"] == EvidenceClass.MANUAL.value else 0
            assessed += numbers["passed"] + numbers["failed"]
            applicable += sum(numbers.values()) - open_ones
        for table in batches(part / "findings.parquet", ("status", "severity")):
            for group in table.group_by(["status", "severity"]).aggregate([([], "count_all")]).to_pylist():
                if group["status"] == Status.FAIL.value:
                    failed[str(group["severity"])] += group["count_all"]
    return TrendPoint(
        audit_id=audit.path.name,
        started_at=str(audit.run().get("started_at") or ""),
        verdict=verdict,
        failed_by_severity={one.value: failed[one.value] for one in Severity},
        coverage=round(assessed / applicable, 6) if applicable else None,
        lost_records=_lost(audit.lag / "group_partitions.parquet"),
        availability_percent=_availability(audit.lag / "group_slas.parquet"),
    )


def keep_figures(audit: Audit, snapshot: Snapshot, own: TrendPoint) -> None:
    """Write an audit's figures to ``comparison/figures.json``, before it is sealed; a sealed audit is left as it is."""
    if (audit.path / MANIFEST).exists():
        return
    about = {"schema_version": _SCHEMA_VERSION, "cluster_id": str(snapshot.manifest.get("cluster_id") or "")}
    write_json(audit.path / FIGURES, {**asdict(own), **about})


def _kept(seal: Seal, folder: Path) -> TrendPoint | str:
    """The figures that a sealed audit kept, if they are as they were sealed; else why there are none."""
    path = folder / FIGURES
    try:
        if why := changed(seal, folder):
            return why
        if not path.is_file():
            return "it kept no figures"
        if read_manifest(folder)["files"].get(FIGURES, {}).get("sha256") != FileHashes().of(path)[0]:
            return "its figures were changed after it was sealed"
        if why := names_none_before(seal, folder):
            return why
        return _point(seal, parse_object(path, bytes_of(path)))
    except (IntegrityError, OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        return f"its figures cannot be read ({problem!s:.200})"


def _point(seal: Seal, record: Mapping[str, Any]) -> TrendPoint:
    """The figures in a record; ValueError for one that no release writes: a chart could not show it, or would show what never was."""
    if record["started_at"]:
        parse_time(record["started_at"])
    if record["verdict"] not in VERDICTS:
        raise ValueError(f"{record['verdict']!r:.80} is no verdict")
    return TrendPoint(
        audit_id=seal.audit_id,
        started_at=str(record["started_at"]),
        verdict=str(record["verdict"]),
        failed_by_severity={Severity(name).value: int(_known(number, _MOST)) for name, number in record["failed_by_severity"].items()},
        coverage=None if record["coverage"] is None else _known(record["coverage"], 1),
        lost_records=None if record["lost_records"] is None else int(_known(record["lost_records"], _MOST)),
        availability_percent=None if record["availability_percent"] is None else _known(record["availability_percent"], 100),
    )


def _known(number: object, most: int) -> float:
    """A number from 0 to ``most``; ValueError for anything else, also for what is no number (NaN)."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= most:
        raise ValueError("a figure is out of its range")
    return number


def _lost(path: Path) -> int | None:
    """Records that were deleted unread, over all group partitions; None if the lag was not read."""
    if not exists(path):
        return None
    known = (number for table in batches(path, ("lost",)) for number in table["lost"].to_pylist() if number is not None)
    return sum(max(0, int(number)) for number in known)


def _availability(path: Path) -> float | None:
    """The lowest availability of all SLAs; None if none was measured."""
    if not exists(path):
        return None
    known = (number for table in batches(path, ("availability_percent",)) for number in table["availability_percent"].to_pylist())
    return min((float(number) for number in known if number is not None), default=None)
