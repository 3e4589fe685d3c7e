"""One of the two audits that are compared: what it asked, what it covered, and its findings."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.audit.inputs import CONTROLS, POLICY
from kafka_audit.audit.previous import changed_files, was_fit
from kafka_audit.catalogue.rows import LAG, SETTINGS, SUBJECTS
from kafka_audit.catalogue.rule import Rule, read_rules
from kafka_audit.collect.scope import Scope
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.findings import Status
from kafka_audit.report.asked import policy_hashes
from kafka_audit.report.existence import Existence
from kafka_audit.report.rows import batches, exists
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot
from kafka_audit.store.manifest import MANIFEST, read_manifest
from kafka_audit.times import is_id

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy

PARTS = {SETTINGS: "topics, partitions, brokers and the cluster", LAG: "consumer groups"}
_COLUMNS = ("control_id", "resource", "status", "severity", "waiver", "tier", "reason", "topic", "partition", "group_id")

_ALWAYS = frozenset({"control_id", "resource", "status", "severity"})
"""What every finding says."""


class Row(NamedTuple):
    """What is compared of one finding."""

    control_id: str
    resource: str
    status: str
    severity: str
    waiver: str | None
    tier: str | None
    reason: str | None
    topic: str | None
    partition: int | None
    group_id: str | None


Rows = dict[str, dict[str, Row]]
"""Findings by control id and resource, which together name a finding: a control has one verdict on a resource (GAT-05)."""


@dataclass(frozen=True, kw_only=True)
class Side:
    """``rules`` is None if the audit has no copies of its controls, ``snapshot`` if it is gone or was changed."""

    audit: Audit
    rules: Mapping[str, Rule] | None
    policy: Mapping[str, str]
    snapshot: Snapshot | None
    scope: Scope
    statuses: Counter[str] = field(default_factory=Counter)
    """The number of findings by status, counted as they are read."""

    @classmethod
    def judged(cls, audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: "Policy") -> "Side":
        """An audit that is not sealed yet, by the rules that it judges with."""
        return cls(audit=audit, rules=catalogue.rules, policy=policy_hashes(policy), snapshot=snapshot, scope=_scope(audit, snapshot))

    @classmethod
    def sealed(cls, audit: Audit, root: EvidenceRoot, cluster: str) -> "Side":
        """A sealed audit, by its copies of controls and policy; IntegrityError when a file that is compared was changed."""
        manifest = read_manifest(audit.path)
        named = manifest.get("snapshot")
        if not isinstance(named, Mapping) or not is_id(str(named.get("snapshot_id"))):
            raise IntegrityError(f"{audit.path / MANIFEST}: does not say which snapshot was judged")
        if differing := changed_files(audit.path, manifest):
            more = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
            raise IntegrityError(f"{audit.path} is not as it was sealed: {', '.join(differing[:3])}{more}")
        snapshot = root.find_snapshot(cluster, str(named["snapshot_id"]))
        if snapshot and snapshot.manifest_sha256 != named.get("manifest_sha256"):
            snapshot = None
        return cls(
            audit=audit,
            rules=read_rules(audit.inputs / CONTROLS),
            policy=policy_hashes(audit.inputs / POLICY),
            snapshot=snapshot,
            scope=_scope(audit, snapshot),
        )

    @cached_property
    def fit(self) -> bool:
        """Whether the evidence was fit to be judged; what a void audit passed or failed is no result."""
        return was_fit(self.audit)

    @property
    def release(self) -> str | None:
        """The release that took the snapshot; None if that is not known."""
        versions = self.snapshot.manifest.get("versions") if self.snapshot else None
        return str(versions.get("kafka_audit")) if isinstance(versions, Mapping) else None

    @cached_property
    def existence(self) -> Existence | None:
        return Existence(self.snapshot, self.scope) if self.snapshot else None

    @cached_property
    def judged_parts(self) -> frozenset[str]:
        """The parts whose findings are there."""
        return frozenset(part for part in PARTS if exists(self._findings(part)))

    def part_missing(self, subject: str) -> str | None:
        """What the audit judged nothing about, if the findings on a subject are not there."""
        part = SUBJECTS[subject].part if subject in SUBJECTS else SETTINGS
        return None if part in self.judged_parts else PARTS[part]

    def failures(self) -> tuple[Rows, set[tuple[str, str]]]:
        """All failures, and the (control_id, resource) of those that stand there twice."""
        found: Rows = {}
        twice: set[tuple[str, str]] = set()
        for part in sorted(self.judged_parts):
            for table in self._tables(part, ("status",)):
                self.statuses.update({one["values"]: one["counts"] for one in pc.value_counts(table["status"]).to_pylist()})
            for table in self._tables(part, _COLUMNS, pc.field("status") == Status.FAIL.value):
                for row in _rows(table):
                    of_control = found.setdefault(row.control_id, {})
                    if row.resource in of_control:
                        twice.add((row.control_id, row.resource))
                    of_control[row.resource] = row
        return found, twice

    def others(self, *failing: Rows) -> Rows:
        """The findings that do not fail, of the controls and resources that fail in one of the audits."""
        found: Rows = {}
        controls = {control for one in failing for control in one}
        names = {control: {resource for one in failing for resource in one.get(control, ())} for control in controls}
        wanted = pc.field("control_id").isin(pa.array(sorted(names), pa.string())) & (pc.field("status") != Status.FAIL.value)
        for part in sorted(self.judged_parts):
            for table in self._tables(part, _COLUMNS, wanted):
                named = zip(table["control_id"].to_pylist(), table["resource"].to_pylist(), strict=True)
                places = [place for place, (control, resource) in enumerate(named) if resource in names[control]]
                if places:
                    for row in _rows(table.take(places)):
                        found.setdefault(row.control_id, {})[row.resource] = row
        return found

    def texts(self, column: str, wanted: Mapping[str, Collection[str]]) -> Iterator[tuple[str, str, str | None]]:
        """One more column of the findings in ``wanted`` (control id -> resources), as (control_id, resource, value)."""
        if not wanted:
            return
        for part in sorted(self.judged_parts):
            columns = ("control_id", "resource", column)
            for table in self._tables(part, columns, pc.field("control_id").isin(pa.array(sorted(wanted), pa.string()))):
                named = zip(table["control_id"].to_pylist(), table["resource"].to_pylist(), strict=True)
                places = [place for place, (control_id, resource) in enumerate(named) if resource in wanted[control_id]]
                if places:
                    taken = table.take(places)
                    yield from zip(*(taken[name].to_pylist() for name in columns), strict=True)

    def _tables(self, part: str, columns: Sequence[str], only: pc.Expression | None = None) -> Iterator[pa.Table]:
        """Columns of the findings, batch by batch; IntegrityError when they are not what a job writes."""
        path = self._findings(part)
        for table in batches(path, columns, only):
            try:
                table.validate(full=True)
            except pa.ArrowInvalid as problem:
                raise IntegrityError(f"{path}: cannot be read ({problem!s:.200})") from problem
            for name, column in zip(table.column_names, table.columns, strict=True):
                if column.type != (pa.int32() if name == "partition" else pa.string()):
                    raise IntegrityError(f"{path}: the column {name} is of the type {column.type!s:.80}, which no job writes")
                if name in _ALWAYS and column.null_count:
                    raise IntegrityError(f"{path}: has a finding without {name}")
            yield table

    def _findings(self, part: str) -> Path:
        return self.audit.path / part / "findings.parquet"


def _rows(table: pa.Table) -> Iterator[Row]:
    """The rows of a table; equal texts of a column are kept once."""
    return map(Row._make, zip(*(_values(table[name]) for name in _COLUMNS), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    encoded = pc.dictionary_encode(column.combine_chunks())
    values = encoded.dictionary.to_pylist()
    return [None if place is None else values[place] for place in encoded.indices.to_pylist()]


def _scope(audit: Audit, snapshot: Snapshot | None) -> Scope:
    """The topics and groups that an audit covered: as its snapshot says, else as it was asked for."""
    try:
        return _said_scope(audit, snapshot)
    except (ConfigurationError, TypeError) as problem:
        raise IntegrityError(f"{audit.path}: does not say which topics and groups were in scope ({problem!s:.200})") from problem


def _said_scope(audit: Audit, snapshot: Snapshot | None) -> Scope:
    said = snapshot.manifest.get("scope") if snapshot else None
    if isinstance(said, Mapping) and said.get("topics") and said.get("groups"):
        return Scope(topics=tuple(map(str, said["topics"])), groups=tuple(map(str, said["groups"])))
    params = audit.run().get("params")
    asked = params if isinstance(params, Mapping) else {}
    if not asked.get("topics") or not asked.get("groups"):
        raise IntegrityError(f"{audit.run_file}: does not say which topics and groups were in scope")
    return Scope.from_text(topics=str(asked["topics"]), groups=str(asked["groups"]))
