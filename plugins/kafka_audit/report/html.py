"""Writes the report as one HTML file that loads nothing, runs no scripts and shows hostile names as text."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from kafka_audit import __version__
from kafka_audit import safe_text as text
from kafka_audit.report import charts, words
from kafka_audit.report.commands import commands_of, first_and_further, no_change_for
from kafka_audit.report.lag import DAY_MS
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Finding

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
_ROWS_OPEN = 10
_EVIDENCE_KEYS = 12
_LONGEST_PROSE = 4000
_LONGEST_SENTENCE = 500
_REASONS_SHOWN = 10
_FILTERS: tuple[Callable[..., object], ...] = (
    *(words.patterns_of, words.parameters_of, words.demands, words.beat, words.duration, words.lag_time, words.rate, words.minutes),
    words.percentage,
)
_OPTION = re.compile(r"--[a-z-]{1,30}")


def _marked(value: str) -> Markup:
    """Text as HTML, with each invisible character spelled out in a marked span."""
    parts = [Markup('<span class="esc">{}</span>').format(piece) if escaped else escape(piece) for escaped, piece in text.pieces(value)]
    return Markup("").join(parts)


def _finalize(value: object) -> object:
    """Jinja2 calls this for every printed value: it spells out invisible characters and cuts long text, so no template can forget to."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _cut(value, _LONGEST_PROSE)


def _cut(value: str, longest: int) -> Markup:
    kept, cut = text.shortened(value, longest)
    return _marked(kept) + _cut_note(cut)


def _cut_note(cut: int) -> Markup:
    if not cut:
        return Markup("")
    return Markup('<span class="cut">\N{HORIZONTAL ELLIPSIS} {}</span>').format(words.counted(cut, "more character"))


def name(value: object) -> Markup:
    """A name or value from the cluster: isolated from the surrounding text, at most 200 characters, a dash if it is not known."""
    if value is None:
        return Markup('<span class="muted">\N{EN DASH}</span>')
    if value == "":
        return Markup('<span class="muted">(empty)</span>')
    kept, cut = text.shortened(str(value))
    return Markup('<bdi class="name" dir="ltr">{}</bdi>{}').format(_marked(kept), _cut_note(cut))


def _grouped(number: int | None) -> Markup:
    """A whole number; with more than twelve digits it may wrap at its separators, so that no table is wider than the page."""
    digits = text.grouped(number).split(",")
    return Markup(",<wbr>" if len(digits) > 4 else ",").join(digits)


def _code(value: str) -> Markup:
    """A command or a rule, line by line; options such as ``--add-config`` do not wrap at their hyphens."""
    lines = []
    for line in value.strip().split("\n"):
        marked = (_marked(word) for word in line.split(" "))
        lines.append(Markup(" ").join(Markup("<span>{}</span>").format(word) if _OPTION.fullmatch(word) else word for word in marked))
    return Markup("\n").join(lines)


def _prose(value: str | Sequence[str] | None) -> Markup:
    """One text, or several in sequence, as paragraphs."""
    several = [value or ""] if value is None or isinstance(value, str) else value
    parts = [part for one in several for part in text.paragraphs(one)]
    return Markup("").join(Markup("<p>{}</p>").format(_finalize(part)) for part in parts)


def _evidence(value: str | None) -> list[tuple[str, str]]:
    """Evidence JSON as pairs of key and text; anything else as one pair without a key."""
    try:
        parsed = json.loads(value or "{}")
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        return [("", str(value))]
    pairs = [(str(key), one if isinstance(one, str) else json.dumps(one, ensure_ascii=False)) for key, one in parsed.items()]
    more = len(pairs) - _EVIDENCE_KEYS
    return pairs[:_EVIDENCE_KEYS] + ([("", f"{more} more in report.json")] if more > 0 else [])


def _same_expected(findings: tuple[Finding, ...]) -> str | None:
    """The expected value, if it is the same for all findings."""
    expected = {finding.expected or "" for finding in findings}
    return expected.pop() if len(expected) == 1 else None


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
        ("pass", "passed", counts.passed),
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
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {one.__name__: one for one in (*_FILTERS, name, text.utc, text.with_link)},
        code=_code,
        sentence=partial(_cut, longest=_LONGEST_SENTENCE),  # may contain names from the cluster
        prose=_prose,
        attribute=lambda value: escape(text.visible(str(value))),
        grouped=_grouped,
        evidence=_evidence,
        same_expected=_same_expected,
        commands=_commands,
        word=lambda value: str(getattr(value, "value", value)),
    )
    environment.globals.update(
        counted=words.counted,
        percent=text.percent,
        chart=charts.lag_chart,
        period=charts.period,
        top_of_scale=charts.top_of_scale,
        status_kinds=_STATUS_KINDS,
        day_ms=DAY_MS,
    )
    return environment


def style() -> str:
    """The style sheet, as embedded in the page."""
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8").strip()


def render(report: Report) -> str:
    """Render the page; the same report gives the same bytes."""
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
        loss=words.loss(report.lag.loss),
        coverage=words.coverage(report),
        bar=_bar(report),
        idle=_idle(report),
        demands=[(label, str(asked[key])) for key, label in _PARAMS_SHOWN.items() if asked.get(key) is not None],
        rows_open=_ROWS_OPEN,
        reasons_shown=_REASONS_SHOWN,
    )
    return rendered.rstrip() + "\n"
