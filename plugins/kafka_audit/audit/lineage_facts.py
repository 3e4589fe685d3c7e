"""What lineage says of an audit: the topics that its snapshot describes and how each control stands; both lists are bounded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from kafka_audit.audit.outcome import VOID
from kafka_audit.audit.request import AuditPlan
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import COUNTED_AS
from kafka_audit.safe_text import visible
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Snapshot

MOST_TOPICS = 1000
MOST_CONTROLS = 500


@dataclass(frozen=True, kw_only=True)
class ControlTest:
    """One control as a test: ``status`` is ``pass``, ``fail``, or ``skip`` for what was not assessed, in whole or in part."""

    control_id: str
    code: str
    title: str
    status: str
    counts: str


@dataclass(frozen=True, kw_only=True)
class LineageFacts:
    """``topics``: at most 1,000 of ``all_topics``, by name. ``controls``: at most 500 of ``all_controls``, in order of the report."""

    topics: tuple[str, ...]
    all_topics: int
    controls: tuple[ControlTest, ...]
    all_controls: int

    @property
    def left_out(self) -> str:
        """What the bounded lists leave out, in sentences; empty if nothing."""
        pairs = (("topics", self.all_topics, len(self.topics)), ("controls", self.all_controls, len(self.controls)))
        said = [f"Of {whole:,} {noun}, {named:,} are named and {whole - named:,} are not." for noun, whole, named in pairs if named < whole]
        return " ".join(said)


def lineage_facts(plan: AuditPlan) -> LineageFacts:
    """What the files of an audit say; nothing for what does not exist. IntegrityError when they are broken."""
    topics = _topics(plan.snapshot)
    file = plan.audit.report / "report.json"
    report = read_json(file) if file.is_file() else {}
    listed = report.get("controls", [])
    fit = report.get("verdict") != VOID
    try:
        controls = tuple(_test(one, fit=fit) for one in listed[:MOST_CONTROLS])
    except (KeyError, TypeError) as problem:
        raise IntegrityError(f"{file}: controls are not those of a report ({problem!r}): write the report again") from problem
    return LineageFacts(topics=tuple(topics[:MOST_TOPICS]), all_topics=len(topics), controls=controls, all_controls=len(listed))


def _topics(snapshot: Snapshot | None) -> list[str]:
    if snapshot is None:
        return []
    return sorted(set(pq.read_table(snapshot.dataset("topics"), columns=["topic"]).column("topic").to_pylist()))


def _test(control: Mapping[str, Any], *, fit: bool) -> ControlTest:
    counts = control["counts"]
    if counts is None:
        status, text = "skip", "the control did not run"
    else:
        whole = fit and counts["passed"] and not (counts["errored"] or counts["not_assessed"] or control["set_aside"])
        status = "fail" if counts["failed"] else "pass" if whole else "skip"
        text = ", ".join(f"{counts[name]} {name.replace('_', ' ')}" for name in COUNTED_AS.values())
    control_id, code, title = (visible(control[name]) for name in ("control_id", "code", "title"))
    return ControlTest(control_id=control_id, code=code, title=title, status=status, counts=text)
