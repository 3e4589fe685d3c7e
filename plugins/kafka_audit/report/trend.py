"""The figures of an audit that are shown over time. Each audit keeps its own, so that a hundred of them are read at once."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from kafka_audit.audit.gate_result import MOST_COUNTED
from kafka_audit.audit.inputs import policy_files
from kafka_audit.audit.outcome import VERDICTS, VOID
from kafka_audit.audit.previous import FIGURES, changed, choose_previous, names_none_before, sealed_before
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import EvidenceClass, Severity, Status
from kafka_audit.report.asked import changes_verdicts
from kafka_audit.report.comparison import TrendPoint
from kafka_audit.report.rows import all_rows, batches, exists
from kafka_audit.report.tally import AssessedShare
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import sha256_of, write_json
from kafka_audit.store.layout import Audit, Snapshot
from kafka_audit.store.manifest import MANIFEST, FileHashes, bytes_of, parse_object, read_manifest
from kafka_audit.store.mirrors import bring
from kafka_audit.times import parse_time

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy

LONGEST = 100
"""The largest number of audits in a trend, this one included."""

_COUNTED = ("evidence_class", "passed", "failed", "errored", "not_assessed")
_SCHEMA_VERSION = 1


class Trend(NamedTuple):
    """``points``: the audits whose figures are known, oldest first, this one last. ``gaps``: a sentence for each of the others."""

    points: tuple[TrendPoint, ...]
    gaps: tuple[str, ...]


def read_trend(audit: Audit, snapshot: Snapshot, verdict: str, asked: Mapping[str, str]) -> Trend:
    """The sealed audits that an audit was chained to, and the audit itself, which ends with ``verdict`` and ``asked`` (:func:`asked_in`).

    An audit whose figures cannot be read, or were changed, is a gap and never a zero; so is one of another Kafka cluster, or one that began
    later. So is one that was deleted, and it ends the trend, because only it named those before it.
    """
    chosen = choose_previous(audit, snapshot)
    own, gaps = figures_of(audit, verdict, asked), []
    points, cluster_id = [own], str(snapshot.manifest.get("cluster_id") or "")
    for seal, folder in islice(sealed_before(chosen.newest, audit.path.parent), LONGEST - 1):
        found = _kept(seal, folder, cluster_id)
        if isinstance(found, TrendPoint) and found.started_at > own.started_at:
            found = "it began after this audit"
        if isinstance(found, TrendPoint):
            points.append(found)
        else:
            gaps.append(f"Audit {seal.audit_id} is missing in the trend: {found}.")
    return Trend(points=tuple(_marked(points[::-1])), gaps=tuple(gaps))


def _marked(points: Sequence[TrendPoint]) -> Iterator[TrendPoint]:
    """The points, each with what it asks or covers otherwise than the one before."""
    yield points[0]
    for before, now in pairwise(points):
        names = sorted({*before.asked, *now.asked})
        yield replace(now, differs=tuple(name for name in names if before.asked.get(name) != now.asked.get(name)))


def asked_in(snapshot: Snapshot, catalogue: "Catalogue", policy: "Policy") -> dict[str, str]:
    """The sha256 of what an audit covers and asks: scope, rules, the files of the policy that change verdicts, and releases."""
    proofs = {one.file: one.sha256 for one in policy.attestations}
    files = {name: path for name, path in policy_files(policy).items() if changes_verdicts(name)}
    versions = snapshot.manifest.get("versions")
    given = {
        "controls": catalogue.rule_set_sha256,
        "policy": sorted((name, proofs.get(name) or sha256_of(path)) for name, path in files.items()),
        "release": versions.get("kafka_audit") if isinstance(versions, Mapping) else None,
        "scope": snapshot.manifest.get("scope"),
    }
    return {name: hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest() for name, value in given.items()}


def figures_of(audit: Audit, verdict: str, asked: Mapping[str, str]) -> TrendPoint:
    """The figures of one audit, from the files of its parts; IntegrityError if one cannot be read."""
    own = TrendPoint(
        audit_id=audit.path.name,
        started_at=str(audit.run().get("started_at") or ""),
        verdict=verdict,
        failed_by_severity=None,
        coverage=None,
        lost_records=None,
        availability_percent=None,
        asked=asked,
    )
    if verdict == VOID:
        return own
    lost, availability = _lost(audit.lag / "group_partitions.parquet"), _availability(audit.lag / "group_slas.parquet")
    judged = _judged(audit)
    failed, coverage = judged or (None, None)
    return replace(own, failed_by_severity=failed, coverage=coverage, lost_records=lost, availability_percent=availability)


def _judged(audit: Audit) -> tuple[dict[str, int], float | None] | None:
    """Failures by severity, and coverage; None if a part was not judged."""
    failed: Counter[str] = Counter()
    assessed = applicable = 0
    for part in (audit.settings, audit.lag):
        if not (exists(part / "summary.parquet") and exists(part / "findings.parquet")):
            return None
        for row in all_rows(part / "summary.parquet", _COUNTED):
            numbers = {name: int(row[name] or 0) for name in _COUNTED[1:]}
            open_ones = numbers["not_assessed"] if row["evidence_class"] == EvidenceClass.MANUAL.value else 0
            assessed += numbers["passed"] + numbers["failed"]
            applicable += sum(numbers.values()) - open_ones
        for table in batches(part / "findings.parquet", ("status", "severity")):
            for group in table.group_by(["status", "severity"]).aggregate([([], "count_all")]).to_pylist():
                if group["status"] == Status.FAIL.value:
                    failed[str(group["severity"])] += group["count_all"]
    return {one.value: failed[one.value] for one in Severity}, AssessedShare(assessed=assessed, applicable=applicable).ratio


def keep_figures(audit: Audit, snapshot: Snapshot, own: TrendPoint) -> None:
    """Write an audit's figures to ``comparison/figures.json``, before it is sealed; a sealed audit is left as it is."""
    if (audit.path / MANIFEST).exists():
        return
    about = {"schema_version": _SCHEMA_VERSION, "cluster_id": str(snapshot.manifest.get("cluster_id") or "")}
    write_json(audit.path / FIGURES, {**{name: value for name, value in asdict(own).items() if name != "differs"}, **about})


def _kept(seal: Seal, folder: Path, cluster_id: str) -> TrendPoint | str:
    """The figures that a sealed audit kept, if they are as they were sealed; else why there are none."""
    path = folder / FIGURES
    try:
        if why := changed(seal, folder) or names_none_before(seal, folder):
            return why
        bring(folder, (FIGURES,))
        if not path.is_file():
            return "it kept no figures"
        if read_manifest(folder)["files"].get(FIGURES, {}).get("sha256") != FileHashes().of(path)[0]:
            return "its figures were changed after it was sealed"
        record = parse_object(path, bytes_of(path))
        other = str(record["cluster_id"])
        if not other or other != cluster_id:
            return f"it is of another Kafka cluster ({other})" if other and cluster_id else "its Kafka cluster is not known to be this one"
        return _point(seal, record)
    except (IntegrityError, OSError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        return f"its figures cannot be read ({problem!s:.200})"


def _point(seal: Seal, record: Mapping[str, Any]) -> TrendPoint:
    """The figures in a record; ValueError for one that no release writes: a chart could not show it, or would show what never was."""
    if record["started_at"]:
        parse_time(record["started_at"])
    if record["verdict"] not in VERDICTS:
        raise ValueError(f"{record['verdict']!r:.80} is no verdict")
    failed = record["failed_by_severity"]
    if failed is not None:
        failed = {Severity(name).value: int(_known(number, MOST_COUNTED)) for name, number in failed.items()}
    return TrendPoint(
        audit_id=seal.audit_id,
        started_at=str(record["started_at"]),
        verdict=str(record["verdict"]),
        failed_by_severity=failed,
        coverage=None if record["coverage"] is None else _known(record["coverage"], 1),
        lost_records=None if record["lost_records"] is None else int(_known(record["lost_records"], MOST_COUNTED)),
        availability_percent=None if record["availability_percent"] is None else _known(record["availability_percent"], 100),
        asked={str(name): str(sha256) for name, sha256 in record["asked"].items()},
    )


def _known(number: object, most: int) -> float:
    """A number from 0 to ``most``; ValueError for anything else, also for what is no number (NaN)."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= most:
        raise ValueError("a figure is out of its range")
    return number


def _lost(path: Path) -> int | None:
    """Records that were deleted unread, over the group partitions of which it is known; None if there is none."""
    if not exists(path):
        return None
    known = [pc.sum(table["lost"]).as_py() for table in batches(path, ("lost",), pc.field("lost") >= 0)]
    return sum(known) if known else None


def _availability(path: Path) -> float | None:
    """The lowest availability of all SLAs; None if none was measured."""
    if not exists(path):
        return None
    known = (number for table in batches(path, ("availability_percent",)) for number in table["availability_percent"].to_pylist())
    return min((float(number) for number in known if number is not None), default=None)
