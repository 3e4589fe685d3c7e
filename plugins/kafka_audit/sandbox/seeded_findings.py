"""Compares an audit's findings with the faults of the seed: none may be missed, none may be extra."""

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow.dataset as ds

from kafka_audit.findings import Status
from kafka_audit.sandbox.definition import Verdict, load
from kafka_audit.store.layout import Audit

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """(code, resource) pairs: seeded but not found, found but not seeded, and how many agree."""

    missed: tuple[Pair, ...]
    extra: tuple[Pair, ...]
    agreed: int

    @property
    def exact(self) -> bool:
        return not self.missed and not self.extra


def found(audit: Audit, status: Status) -> set[Pair]:
    """Return (code, resource) of every finding with that status, from both parts of the verification."""
    pairs: set[Pair] = set()
    for step in (audit.settings, audit.lag):
        table = ds.dataset(step / "findings.parquet").to_table(columns=["code", "resource"], filter=ds.field("status") == status.value)
        pairs |= set(zip(table["code"].to_pylist(), table["resource"].to_pylist(), strict=True))
    return pairs


def _compare(seeded: Iterable[Verdict], seen: set[Pair]) -> Comparison:
    wanted = {(verdict.control, verdict.resource) for verdict in seeded}
    return Comparison(missed=tuple(sorted(wanted - seen)), extra=tuple(sorted(seen - wanted)), agreed=len(wanted & seen))


def compare_failures(audit: Audit, seed: str) -> Comparison:
    """Compare the audit's failures with the faults that the seed lists."""
    return _compare(load(seed).faults, found(audit, Status.FAIL))


def compare_not_assessed(audit: Audit, seed: str) -> Comparison:
    """Compare the results that the audit could not assess with those that the seed makes impossible to assess."""
    return _compare(load(seed).not_assessed, found(audit, Status.NOT_ASSESSED) | found(audit, Status.ERROR))
