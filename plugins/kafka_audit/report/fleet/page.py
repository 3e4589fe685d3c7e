"""Writes the fleet as one HTML file that loads nothing, runs no scripts and shows hostile names as text."""

import base64
import hashlib
from functools import cache
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kafka_audit import __version__
from kafka_audit import safe_text as text
from kafka_audit.findings import Severity
from kafka_audit.report import html_text, words
from kafka_audit.report.fleet import verdicts
from kafka_audit.report.fleet.matrix import Fleet, FleetCluster
from kafka_audit.report.fleet.states import STATES, shown
from kafka_audit.report.html import style

_TEMPLATES = Path(__file__).parent / "templates"
_REASONS_SHOWN = 3
_LONGEST_HEAD = 44


def _coverage(cluster: FleetCluster) -> str:
    return text.percent(cluster.assessed, cluster.applicable)


def _brief(value: str) -> Markup:
    """A name above a column of the matrix, cut without a note: its link leads to the row that has the whole name."""
    kept, cut = text.shortened(value, _LONGEST_HEAD)
    return html_text.name(f"{kept}\N{HORIZONTAL ELLIPSIS}" if cut else kept)


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
        brief=_brief,
    )
    environment.globals.update(cell=shown, behind=verdicts.behind, counted=words.counted)
    return environment


def as_html(fleet: Fleet) -> bytes:
    """Render the page as UTF-8; the same fleet gives the same bytes."""
    css = f"{style()}\n{(_TEMPLATES / 'fleet.css').read_text(encoding='utf-8').strip()}"
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    found = verdicts.period(fleet)
    rendered = (
        _environment()
        .get_template("fleet.html.j2")
        .render(
            fleet=fleet,
            version=__version__,
            css=Markup(css),  # the project's own files
            csp=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
            verdicts=verdicts.counted(fleet),
            kinds=verdicts.KINDS,
            period=found,
            newest=found[1] if found else None,
            severities=[severity.value for severity in Severity],
            legend=[(state.kind, state.words, state.means) for state in STATES],
            by_severity=[(severity, list(controls)) for severity, controls in groupby(fleet.controls, lambda one: one.severity)],
            reasons_shown=_REASONS_SHOWN,
        )
    )
    return f"{rendered.rstrip()}\n".encode("utf-8", "replace")
