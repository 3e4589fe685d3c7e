"""Reads the failures of an audit that no waiver covers: how many there are, the worst, and whether a glob names them alone."""

import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Severity, Status
from kafka_audit.report.rows import batches, exists
from kafka_audit.report.tally import rank
from kafka_audit.store.layout import Audit

_COLUMNS = ("code", "title", "severity", "status", "resource", "waiver")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """One failing result that no waiver covers."""

    code: str
    title: str
    severity: str
    resource: str

    @property
    def order(self) -> tuple[int, str, str]:
        """Worst first, then by control and resource."""
        return rank(self.severity), self.code, self.resource


@dataclass(kw_only=True)
class OfControl:
    """The failures of one control: how many, the worst severity, the resources if they are few, and the text that all names begin with."""

    code: str
    count: int = 0
    worst: str = Severity.INFO.value
    resources: set[str] = field(default_factory=set)
    prefix: str | None = None

    def add(self, failure: Failure, kept: int) -> None:
        self.count += 1
        self.worst = min(self.worst, failure.severity, key=rank)
        if len(self.resources) <= kept:
            self.resources.add(failure.resource)
        self.prefix = failure.resource if self.prefix is None else _common(self.prefix, failure.resource)


@dataclass(frozen=True, kw_only=True)
class Unwaived:
    """The failures without a waiver: their number by severity, the worst ones, and what each control has, by its code."""

    by_severity: Mapping[str, int]
    worst: tuple[Failure, ...]
    controls: Mapping[str, OfControl]

    @property
    def total(self) -> int:
        return sum(self.by_severity.values())


def read_unwaived(audit: Audit, *, shown: int, kept: int) -> Unwaived:
    """Read them in one pass: the ``shown`` worst, and of each control all resources if they are not more than ``kept``.

    IntegrityError when the audit has no results, or they cannot be read.
    """
    counts: Counter[str] = Counter()
    controls: dict[str, OfControl] = {}
    worst: list[Failure] = []
    for table in _tables(audit, pc.field("status") == Status.FAIL.value):
        found = [Failure(**_fields(row)) for row in table.to_pylist() if row["waiver"] is None]
        for failure in found:
            counts[failure.severity] += 1
            controls.setdefault(failure.code, OfControl(code=failure.code)).add(failure, kept)
        worst = heapq.nsmallest(shown, [*worst, *found], key=lambda one: one.order)
    by_severity = {name: counts[name] for name in sorted(counts, key=lambda name: (rank(name), name))}
    return Unwaived(by_severity=by_severity, worst=tuple(worst), controls=controls)


def wider(audit: Audit, prefixes: Mapping[str, str]) -> set[str]:
    """The codes of the controls whose prefix (by code) also begins the name of a resource that did not fail, or has a waiver already."""
    if not prefixes:
        return set()
    found: set[str] = set()
    for table in _tables(audit, pc.field("code").isin(sorted(prefixes))):
        failed = pc.fill_null(pc.equal(table["status"], Status.FAIL.value), False)
        others = table.filter(pc.invert(pc.and_(failed, pc.is_null(table["waiver"]))))
        for code in set(pc.unique(others["code"]).to_pylist()) - found:
            names = others.filter(pc.equal(others["code"], code))["resource"]
            if pc.any(pc.starts_with(names, prefixes[code])).as_py():
                found.add(code)
    return found


def _tables(audit: Audit, only: pc.Expression) -> Iterator[pa.Table]:
    paths: Collection[Path] = [path for path in (part / "findings.parquet" for part in (audit.settings, audit.lag)) if exists(path)]
    if not paths:
        raise IntegrityError(f"{audit.path} has no findings, so there is nothing to review: start a new audit")
    for path in paths:
        yield from batches(path, _COLUMNS, only)


def _common(one: str, other: str) -> str:
    """The text with which both begin."""
    same = next((index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:same]


def _fields(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(row[name]) for name in ("code", "title", "severity", "resource")}
