"""Writes the report as one HTML file that loads nothing, runs no scripts and shows hostile names as text."""

import base64
import hashlib
import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from kafka_audit import __version__
from kafka_audit import safe_text as text
from kafka_audit.report import charts, frameworks, front, trend_charts, words
from kafka_audit.report.causes import same_expected
from kafka_audit.report.commands import commands_of, first_and_further, no_change_for
from kafka_audit.report.control_status import is_fit
from kafka_audit.report.html_text import attribute, brief, code, finalize, grouped, name, prose, sentence
from kafka_audit.report.lag import DAY_MS
from kafka_audit.report.model import Report
from kafka_audit.report.page_lists import MOST_LISTED, listed_failures
from kafka_audit.report.results import ControlResult

LARGEST = 15_000_000
"""The largest page in bytes, which a browser opens within seconds."""

_KEY, _VALUE, _NEXT = Markup("<b>"), Markup("</b> "), Markup("; ")
_TEMPLATES = Path(__file__).parent / "templates"
_PARAMS_SHOWN = {
    "fail_on": "fails at severity",
    "fail_on_new": "fails on new failures only",
    "min_coverage": "minimum coverage",
    "max_age_seconds": "age of the snapshot in seconds, at most",
}
_STATUS_KINDS = {
    **dict.fromkeys(("LOST", "LOSING"), "fail"),
    **dict.fromkeys(("REWOUND", "STOPPED", "STALLED", "GROWING", "SLOW"), "error"),
    **dict.fromkeys(("NO_COMMIT", "ORPHAN", "ABANDONED"), "none"),
    **dict.fromkeys(("INSUFFICIENT_HISTORY", "NOT_ASSESSED"), "gap"),
    "OK": "pass",
}
_COMMANDS_SHOWN = 30
_ROWS_OPEN, _GROUPS_OPEN, _LOSSES_OPEN = 10, 12, 3
_EVIDENCE_KEYS = 12
_REASONS_SHOWN = 10
_FILTERS: tuple[Callable[..., object], ...] = (
    *(words.patterns_of, words.parameters_of, words.demands, words.beat, words.duration, words.lag_time, words.rate, words.minutes),
    *(words.assessed, words.percentage, words.several, text.utc, text.with_link, same_expected),
    *(attribute, brief, code, grouped, name, prose, sentence),
)


def _evidence(value: str | None) -> list[tuple[str, str]]:
    """Evidence JSON as pairs of key and text; anything else as one pair without a key."""
    try:
        parsed = json.loads(value or "{}")
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        return [("", str(value))]
    pairs = [(str(key), one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) for key, one in parsed.items()]
    more = len(pairs) - _EVIDENCE_KEYS
    return pairs[:_EVIDENCE_KEYS] + ([("", f"{more} more in report.json")] if more > 0 else [])


def _evidence_words(value: str | None) -> Markup:
    """Evidence in one paragraph. Values in ASCII are not isolated from each other, because nothing in them reorders the text."""
    said = []
    for key, one in _evidence(value):
        plain = one and one.isascii() and one.isprintable() and len(one) <= text.NAME_LENGTH
        shown = escape(one) if plain else name(one)
        said.append(_KEY + sentence(key) + _VALUE + shown if key else shown)
    return _NEXT.join(said) if said else Markup('<span class="muted">none kept</span>')


def _commands(result: ControlResult) -> dict[str, object]:
    if result.control is None:
        return {"first": [], "further": [], "left_out": 0, "unchanged": 0}
    remediation = result.control.remediation
    known = [finding.placeholders for finding in result.failures]
    first, further = first_and_further(commands_of(remediation, one) for one in known)
    return {
        "first": first,
        "further": further[:_COMMANDS_SHOWN],
        "left_out": max(0, len(further) - _COMMANDS_SHOWN),
        "unchanged": sum(no_change_for(remediation, one) for one in known),
    }


def _bar(report: Report) -> list[dict[str, object]]:
    """The segments of the coverage bar, in percent of the applicable results: class, label, count, start, width."""
    counts = report.counts
    parts = (
        ("pass" if is_fit(report) else "none", "passed", counts.passed),
        ("fail", "failed", counts.failed),
        ("error", "raised an error", counts.errored),
        ("gap", "not assessed", counts.not_assessed - counts.still_open),
    )
    segments: list[dict[str, object]] = []
    start = 0.0
    for kind, label, count in parts:
        width = 100 * count / counts.applicable if counts.applicable else 0.0
        segments.append({"kind": kind, "label": label, "count": count, "start": f"{start:.3f}", "width": f"{width:.3f}"})
        start += width
    return segments


def _why_nothing(result: ControlResult) -> tuple[str, str, str]:
    """Why a control judged nothing: the kind of mark, its word, and the rest of the sentence."""
    counts = result.counts
    if counts is None:
        return "gap", "did not run", ""
    if counts.applicable:
        return "gap", "nothing could be assessed", "of what it applies to"
    if counts.still_open:
        return "gap", "open", "until a person attests it in attestations.yaml"
    if counts.population:
        return "none", "not applicable", "to anything in scope"
    return "none", "not applicable", f": no {result.subject.replace('_', ' ')} in scope"


def _idle(report: Report) -> list[tuple[tuple[str, str, str], list[ControlResult]]]:
    """The controls that judged nothing, grouped by reason; unknown ones before those that do not apply."""
    reasons: dict[tuple[str, str, str], list[ControlResult]] = {}
    for result in report.judged_nothing:
        reasons.setdefault(_why_nothing(result), []).append(result)
    return sorted(reasons.items())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {one.__name__: one for one in _FILTERS},
        evidence_words=_evidence_words,
        commands=_commands,
        word=lambda value: str(getattr(value, "value", value)),
    )
    environment.globals.update(
        counted=words.counted,
        percent=text.percent,
        chart=charts.lag_chart,
        trend_chart=trend_charts.failures_chart,
        coverage_chart=trend_charts.coverage_chart,
        status_kinds=_STATUS_KINDS,
        day_ms=DAY_MS,
    )
    return environment


def style() -> str:
    """The style sheet, as embedded in the page."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8").strip()


def render(report: Report) -> str:
    """Render the page; the same report gives the same bytes. It lists fewer failures where it would have 15 MB or more."""
    most = MOST_LISTED
    page = _page(report, most)
    while most and len(page.encode("utf-8", "replace")) >= LARGEST:
        most //= 2
        page = _page(report, most)
    return page


def _page(report: Report, most: int) -> str:
    css = style()
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    asked = {**dict(report.params), **{key: value for gate in report.gates for key, value in gate.parameter_texts}}
    page = _environment().get_template("report.html.j2")
    rendered = page.render(
        report=report,
        version=__version__,
        css=Markup(css),  # the project's own file
        csp=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
        summary=words.summary(report),
        failing={result.code: position for position, result in enumerate(report.failing, 1)},
        worst=front.worst_failures(report),
        changes=front.changes(report),
        changed=partial(front.changed, report),
        coverage=words.coverage(report),
        bar=_bar(report),
        hints=words.hints(report),
        good="pass" if is_fit(report) else "none",
        support_kinds=frameworks.KINDS,
        support_verdicts=frameworks.VERDICTS,
        support_said=frameworks.SAID,
        idle=_idle(report),
        demands=[(label, str(asked[key])) for key, label in _PARAMS_SHOWN.items() if asked.get(key) is not None],
        listed=listed_failures(report, _ROWS_OPEN, most),
        rows_open=_ROWS_OPEN,
        groups_open=_GROUPS_OPEN,
        losses_open=_LOSSES_OPEN,
        reasons_shown=_REASONS_SHOWN,
    )
    return rendered.rstrip() + "\n"
