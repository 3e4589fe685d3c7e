"""Writes the fleet as one PDF that a person hands over: the clusters, then the matrix in blocks of columns that fit a landscape page."""

from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import groupby, pairwise

from kafka_audit import __version__, safe_text
from kafka_audit.audit.outcome import PASSED, VOID
from kafka_audit.findings import Severity
from kafka_audit.report import words
from kafka_audit.report.fleet import verdicts
from kafka_audit.report.fleet.matrix import Fleet, FleetCluster, FleetControl
from kafka_audit.report.fleet.states import STATES, Shown, shown
from kafka_audit.report.pdf.letters import Wide, brief, cut, drawable, name
from kafka_audit.report.pdf.typesetter import typeset

_WITH_WORDS = 7
"""Up to so many clusters have columns that are wide enough for words; more get letters."""

_LETTERS_IN_BLOCK = 20
"""The most columns with letters beside the texts of the controls on a landscape page."""

_LONGEST_HEAD = 44
_SENTENCE = 500
_REASONS = 3
_UNITS = ((1_000_000, "M"), (1_000, "k"))
_NOTHING_KNOWN = datetime(2000, 1, 1, tzinfo=timezone.utc)
"""The creation date of a document on clusters without evidence: PDF/A wants one, and the moment of writing would change its bytes."""


def as_pdf(fleet: Fleet) -> bytes:
    """Set the document (PDF/A-2a and PDF/UA-1); the same fleet gives the same bytes. Its creation date is that of the newest evidence.

    CollectionError (exit 1) if it cannot be set.
    """
    found = verdicts.period(fleet)
    return typeset(
        "fleet.typ",
        content(fleet),
        title=f"Kafka reliability audits of {words.counted(len(fleet.clusters), 'cluster')}",
        keywords=[verdict for _, verdict, _ in verdicts.counted(fleet)],
        made_at=max(found[1], _NOTHING_KNOWN) if found else _NOTHING_KNOWN,
        file="fleet.pdf",
        source="the fleet report as CSV",
    )


def content(fleet: Fleet) -> dict[str, object]:
    """All that the template prints, as texts, numbers for widths, and lists of these."""
    found = verdicts.period(fleet)
    in_words = len(fleet.clusters) <= _WITH_WORDS
    numbered = list(enumerate(fleet.clusters, 1))
    return {
        "title": words.counted(len(fleet.clusters), "cluster"),
        "tool": f"kafka-audit {__version__}",
        "period": [safe_text.utc(moment) for moment in found] if found else None,
        "audited": sum(cluster.audited for cluster in fleet.clusters),
        "controls": len(fleet.controls),
        "verdicts": [
            {"kind": _kind(verdict), "word": verdict, "count": safe_text.grouped(number)} for _, verdict, number in verdicts.counted(fleet)
        ],
        "severities": [severity.value for severity in Severity],
        "clusters": [_cluster(number, cluster, found[1] if found else None) for number, cluster in numbered],
        "in_words": in_words,
        "legend": [{"kind": one.kind, "letter": one.letter, "words": one.words, "means": one.means} for one in STATES],
        "blocks": [_block(fleet, part, in_words=in_words) for part in _parts(numbered, in_words=in_words)] if fleet.controls else [],
    }


def _cluster(number: int, cluster: FleetCluster, newest: datetime | None) -> dict[str, object]:
    return {
        "number": str(number),
        "name": name(cluster.name),
        "cluster_id": name(cluster.cluster_id),
        "audit": name(cluster.audit_id),
        "kind": _kind(cluster.verdict),
        "verdict": cluster.verdict,
        "taken": safe_text.utc(cluster.evidence_at) if cluster.evidence_at else None,
        "behind": verdicts.behind(cluster, newest),
        "failed": [_failed(cluster, severity) for severity in Severity],
        "assessed": safe_text.percent(cluster.assessed, cluster.applicable),
        "not_run": f"{words.counted(cluster.not_run, 'control')} did not run" if cluster.not_run else None,
        "why": [Wide(cut(reason, _SENTENCE)) for reason in cluster.why[:_REASONS]],
        "why_kind": "gap" if cluster.verdict == PASSED else _kind(cluster.verdict),
        "more": max(0, len(cluster.why) - _REASONS),
    }


def _kind(verdict: str) -> str:
    return "void" if verdict == VOID else verdicts.KINDS[verdict]


def _failed(cluster: FleetCluster, severity: Severity) -> dict[str, object]:
    """The failing results at one severity, and how many of them are waived; None: nothing is known."""
    found = cluster.failed.get(severity.value)
    results = (found.results if found else 0) if cluster.audited else None
    return {"results": safe_text.grouped(results), "waived": safe_text.grouped(found.waived) if found and found.waived else None}


def _parts(numbered: Sequence[tuple[int, FleetCluster]], *, in_words: bool) -> list[Sequence[tuple[int, FleetCluster]]]:
    """The clusters in blocks of about the same size that fit a page."""
    blocks = 1 if in_words else -(-len(numbered) // _LETTERS_IN_BLOCK)
    ends = [len(numbered) * one // blocks for one in range(blocks + 1)]
    return [numbered[start:end] for start, end in pairwise(ends)]


def _block(fleet: Fleet, part: Sequence[tuple[int, FleetCluster]], *, in_words: bool) -> dict[str, object]:
    heads = [{"number": str(number), "name": brief(cluster.name or "(empty)", _LONGEST_HEAD)} for number, cluster in part]
    return {
        "title": f"Clusters {part[0][0]} to {part[-1][0]} of {len(fleet.clusters)}" if len(part) < len(fleet.clusters) else None,
        "longest": max(len(drawable(head["name"])) for head in heads),
        "clusters": heads,
        "groups": [
            {"severity": severity, "rows": [_row(control, part, in_words=in_words) for control in controls]}
            for severity, controls in groupby(fleet.controls, lambda one: one.severity)
        ],
    }


def _row(control: FleetControl, part: Sequence[tuple[int, FleetCluster]], *, in_words: bool) -> dict[str, object]:
    cells = [_cell(shown(cluster, control), in_words=in_words) for _, cluster in part]
    return {"code": name(control.code), "title": Wide(cut(control.title, _SENTENCE)), "cells": cells}


def _cell(one: Shown, *, in_words: bool) -> dict[str, object]:
    said = _in_words(one) if in_words else _in_letters(one)
    return {"kind": one.state.kind, **said}


def _in_words(one: Shown) -> dict[str, object]:
    number = None if one.number is None else safe_text.grouped(one.number)
    return {"said": one.state.words, "number": number, "waived": f"{one.waived:,} waived" if one.waived else None}


def _in_letters(one: Shown) -> dict[str, object]:
    number = None if one.number is None else _short(one.number)
    return {"said": one.state.letter, "number": number, "waived": f"{_short(one.waived)} w" if one.waived else None}


def _short(number: int) -> str:
    """A number in at most four characters, rounded down: ``999``, ``1.2k``, ``45k``, ``1.2M``."""
    for size, unit in _UNITS:
        if number >= size:
            tenths = number * 10 // size
            return f"{tenths // 10}.{tenths % 10}{unit}" if tenths < 100 else f"{number // size:,}{unit}"
    return str(number)
