"""The findings of an audit counted a second time, without Spark: what its summaries and its waivers are compared with."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Severity, Status
from kafka_audit.policy.waivers import Waiver

_SEVERITIES = {severity.value for severity in Severity}
_STATUSES = {status.value for status in Status}
_NEEDED = ("control_id", "severity", "status", "snapshot_id")
_OF_WAIVER = ("code", "resource", "waiver")


class FindingKind(NamedTuple):
    """What findings that are counted together have in common. ``waived``: a waiver that was checked covers the failure."""

    control_id: str | None
    severity: str | None
    status: str | None
    snapshot_id: str | None
    waived: bool = False


@dataclass(frozen=True, kw_only=True)
class Recount:
    """Findings by kind; ``counts`` is None when a column is missing. ``unfounded``: waivers that do not cover the findings naming them."""

    counts: Mapping[FindingKind, int] | None
    unfounded: frozenset[str] = frozenset()

    @property
    def known(self) -> bool:
        return self.counts is not None

    def of(self, control_id: object) -> Counter[FindingKind]:
        """The findings of one control."""
        return Counter({kind: number for kind, number in (self.counts or {}).items() if kind.control_id == control_id})

    @property
    def controls(self) -> set[str]:
        return {str(kind.control_id) for kind in self.counts or ()}

    def foreign(self, snapshot_id: str) -> int:
        """How many findings are about another snapshot."""
        return sum(number for kind, number in (self.counts or {}).items() if kind.snapshot_id != snapshot_id)

    @property
    def unknown_words(self) -> set[str]:
        """Severities and statuses that are not words of the set."""
        kinds = self.counts or {}
        return ({str(kind.severity) for kind in kinds} - _SEVERITIES) | ({str(kind.status) for kind in kinds} - _STATUSES)


def count_findings(findings: Sequence[pads.Dataset | None], waivers: Sequence[Waiver]) -> Recount:
    """Count the findings of all steps; IntegrityError when one cannot be read.

    A failure counts as waived only when one of ``waivers`` has the id it names and covers its control and resource. Without the
    columns to tell that, nothing is waived.
    """
    counts: Counter[FindingKind] = Counter()
    unfounded: set[str] = set()
    known = {waiver.id: waiver for waiver in waivers}
    for dataset in findings:
        if dataset is None:
            continue
        if not set(_NEEDED) <= set(dataset.schema.names):
            return Recount(counts=None)
        columns = [*_NEEDED, *(_OF_WAIVER if set(_OF_WAIVER) <= set(dataset.schema.names) else ())]
        try:
            for batch in dataset.to_batches(columns=columns):
                counts += _grouped(pa.Table.from_batches([batch.select(list(_NEEDED))]))
                if "waiver" in columns:
                    counts += _waived(pa.Table.from_batches([batch]), known, unfounded)
        except (pa.ArrowException, OSError) as problem:
            raise unreadable(dataset.files[0], problem) from problem
    return Recount(counts=counts, unfounded=frozenset(unfounded))


def _grouped(findings: pa.Table) -> Counter[FindingKind]:
    rows = findings.group_by(list(_NEEDED)).aggregate([([], "count_all")]).to_pylist()
    return Counter({FindingKind(*(row[name] for name in _NEEDED)): row["count_all"] for row in rows})


def _waived(findings: pa.Table, known: Mapping[str, Waiver], unfounded: set[str]) -> Counter[FindingKind]:
    """What moves from counted to counted as waived: the same findings once less, and once more."""
    moved: Counter[FindingKind] = Counter()
    rows: list[dict[str, Any]] = findings.filter(pc.is_valid(findings["waiver"])).to_pylist()
    for row in rows:
        waiver = known.get(row["waiver"])
        if waiver is None or row["status"] != Status.FAIL.value or not waiver.covers(row["code"], row["resource"]):
            unfounded.add(f"{row['waiver']} on {row['code']}")
            continue
        kind = FindingKind(*(row[name] for name in _NEEDED))
        moved[kind] -= 1
        moved[kind._replace(waived=True)] += 1
    return moved


def unreadable(what: str, problem: Exception) -> IntegrityError:
    """The error for a table of the audit that is no Parquet."""
    return IntegrityError(f"{what} is not readable Parquet ({problem}): run the verification job again")
