"""Writes the fleet as one HTML file that loads nothing, runs no scripts and shows hostile names as text."""

import base64
import hashlib
from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kafka_audit import __version__
from kafka_audit import safe_text as text
from kafka_audit.audit.outcome import ERROR, FAILED, INCOMPLETE, PASSED, VOID
from kafka_audit.findings import Severity
from kafka_audit.report import html_text, words
from kafka_audit.report.control_status import Standing
from kafka_audit.report.fleet.matrix import NO_AUDIT, UNUSABLE, Fleet, FleetCluster, FleetControl
from kafka_audit.report.fleet.states import ABSENT, STATES, UNKNOWN, WAIVED, state_of
from kafka_audit.report.html import style

_TEMPLATES = Path(__file__).parent / "templates"
_REASONS_SHOWN = 3
_VERDICTS = {PASSED: "pass", FAILED: "fail", INCOMPLETE: "gap", VOID: "gap", ERROR: "error", NO_AUDIT: "none", UNUSABLE: "error"}
"""The verdicts in the order in which the page counts them, with the kind of their mark."""

_KINDS = {
    Standing.FAIL.value: "fail",
    WAIVED: "waived",
    Standing.ERROR.value: "error",
    Standing.NOT_ASSESSED.value: "gap",
    Standing.DID_NOT_RUN.value: "idle",
    UNKNOWN: "unknown",
    ABSENT: "absent",
    Standing.PASS.value: "pass",
    Standing.NOT_APPLICABLE.value: "none",
}
_NUMBERED = frozenset({Standing.FAIL.value, WAIVED, Standing.ERROR.value, Standing.NOT_ASSESSED.value})
_WORDS = {state.id: state.words for state in STATES}


def _cell(cluster: FleetCluster, control: FleetControl) -> Mapping[str, object]:
    """Kind of mark, words for those who do not see it, the number beside it, and how many of the failures are waived."""
    state, found = state_of(cluster, control), cluster.cells.get(control.control_id)
    number = found.number if found and state in _NUMBERED else None
    waived = found.counts.waived if found and found.counts and state == Standing.FAIL.value else 0
    return {"kind": _KINDS[state], "words": _WORDS[state], "number": number, "waived": waived}


def _coverage(cluster: FleetCluster) -> str:
    return text.percent(cluster.assessed, cluster.applicable)


def _counted(fleet: Fleet) -> list[tuple[str, str, int]]:
    """How many clusters have each verdict: kind of mark, verdict, number; those that none has are left out."""
    found = Counter(cluster.verdict for cluster in fleet.clusters)
    return [(kind, verdict, found[verdict]) for verdict, kind in _VERDICTS.items() if found[verdict]]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=html_text.finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {one.__name__: one for one in (html_text.name, html_text.sentence, text.grouped, text.utc)},
        coverage=_coverage,
    )
    environment.globals.update(cell=_cell, counted=words.counted)
    return environment


def as_html(fleet: Fleet) -> bytes:
    """Render the page as UTF-8; the same fleet gives the same bytes."""
    css = f"{style()}\n{(_TEMPLATES / 'fleet.css').read_text(encoding='utf-8').strip()}"
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    rendered = (
        _environment()
        .get_template("fleet.html.j2")
        .render(
            fleet=fleet,
            version=__version__,
            css=Markup(css),  # the project's own files
            csp=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
            verdicts=_counted(fleet),
            kinds=_VERDICTS,
            severities=[severity.value for severity in Severity],
            legend=[(_KINDS[state.id], state.words, state.means) for state in STATES],
            by_severity=[(severity, list(controls)) for severity, controls in groupby(fleet.controls, lambda one: one.severity)],
            reasons_shown=_REASONS_SHOWN,
        )
    )
    return f"{rendered.rstrip()}\n".encode("utf-8", "replace")
