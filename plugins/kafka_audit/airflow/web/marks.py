"""What the templates show in one way on every page: the colours of words, percentages, times, names that are cut, and sparklines."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import floor
from typing import TypeVar
from urllib.parse import quote

from jinja2.filters import do_urlencode
from markupsafe import Markup

from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.report.comparison import TrendPoint
from kafka_audit.report.tally import rank
from kafka_audit.report.words import counted, duration, percentage
from kafka_audit.safe_text import NAME_LENGTH, shortened, utc
from kafka_audit.times import parse_time

_GOOD = ("PASSED", "OK", "pass", "used")
_BAD = ("FAILED", "ERROR", "UNUSABLE", "LOST", "LOSING", "fail", "error", "expired")
_NONE = ("NO AUDIT", "UNFINISHED", "NO_COMMIT", "ORPHAN", "ABANDONED", "not_applicable", "not_in_audit", "unknown")
_KINDS = {**dict.fromkeys(_GOOD, "good"), **dict.fromkeys(_BAD, "bad"), **dict.fromkeys(_NONE, "none")}

DAYS = 30
_BRIEF = 60
_MOST, _LEAST = 10_000, 0.001
_Group = TypeVar("_Group")
_WIDE, _HIGH = 132, 30
_SPARK = Markup(
    '<svg class="spark" role="img" aria-label="{words}" viewBox="0 0 {width} {height}" focusable="false">'
    '<path class="floor" d="M0 {height}H{width}"/>{shapes}</svg>'
)
_LINE = Markup('<path class="line" d="{d}"/>')
_DOT = Markup('<circle class="{kind}" cx="{x}" cy="{y}" r="{r}"/>')


def kind(word: str) -> str:
    """The colour of a verdict, a group status or the state of a control or waiver: good, bad, none, or warn for all others."""
    return _KINDS.get(word, "warn")


def percent(share: float) -> str:
    """A share of 1 as a percentage with one decimal, rounded down, so that 99.97 % never reads as all, nor a little as nothing.

    Huge ones are not told apart.
    """
    if share > _MOST:
        return f"over {_MOST * 100:,}%"
    if 0 < share < _LEAST:
        return "under 0.1%"
    return f"{floor(share * 1000 + 1e-9) / 10:.1f}%"


def cut(text: str) -> str:
    """Text that is no longer than NAME_LENGTH characters, and how many are left out."""
    kept, left = shortened(text, NAME_LENGTH)
    return f"{kept}\N{HORIZONTAL ELLIPSIS} ({left:,} more characters)" if left else kept


def brief(text: str) -> str:
    """Text for a place with little room: at most 60 characters, and a sign that more are left out."""
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]}\N{HORIZONTAL ELLIPSIS}"


def addressed(text: str) -> str:
    """Text as one part of the path of an address: a run's id may have any character, a slash too."""
    return quote(_whole(text), safe="")


def urlencode(value: object) -> str:
    """As Jinja's filter, also of a name with half a character, which has no UTF-8."""
    if isinstance(value, Mapping):
        return do_urlencode({name: _whole(one) for name, one in value.items()})
    return do_urlencode(_whole(value))


def _whole(text: object) -> str:
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def thousands(number: int) -> str:
    """A whole number with thousands separators."""
    return f"{number:,}"


def worst_severity_first(groups: Iterable[tuple[str, _Group]]) -> list[tuple[str, _Group]]:
    """Groups of what has a severity, as ``groupby`` makes them, with the worst severity first."""
    return sorted(groups, key=lambda one: rank(one[0]))


def worst_status_first(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """How many groups have each status, the worst status first; a word that this release does not know comes last."""
    return sorted(counts.items(), key=lambda one: (STATUSES.index(one[0]) if one[0] in STATUSES else len(STATUSES), one[0]))


def age(since: timedelta) -> str:
    """An age in its largest unit, and in two below a week: ``3 d 4 h``, ``25 min``; ``0 min`` for a time that is still to come."""
    minutes = max(0, int(since.total_seconds() // 60))
    days, hours = minutes // 1440, minutes % 1440 // 60
    if days >= 7:
        return f"{days:,} d"
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return (f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h") if hours else f"{minutes} min"


def sparkline(points: Sequence[TrendPoint], now: datetime) -> Markup:
    """Failing results of the audits of the last DAYS days, oldest first, by time; a dot on the floor where they are not known.

    The words that stand for the picture give the number of audits, the lowest, highest and last figure, and how many are not known.
    """
    placed = [(x, point.failed) for point in points if (x := _place(point.started_at, now)) is not None]
    known = [failed for _, failed in placed if failed is not None]
    top = max([1, *known])
    shapes = [_LINE.format(d=_path(placed, top))] if known else []
    shapes += [_DOT.format(kind="unknown", x=f"{x:.1f}", y=_HIGH, r=1.5) for x, failed in placed if failed is None]
    if placed and (last := placed[-1][1]) is not None:
        shapes.append(_DOT.format(kind="last", x=f"{placed[-1][0]:.1f}", y=f"{_y(last, top):.1f}", r=2.5))
    return _SPARK.format(words=_words(placed, known), width=_WIDE, height=_HIGH, shapes=Markup("").join(shapes))


def _words(placed: Sequence[tuple[float, int | None]], known: Sequence[int]) -> str:
    if not placed:
        return f"No audit in the last {DAYS} days"
    said = f"{counted(len(placed), 'audit')} in {DAYS} days"
    if known:
        said += f": {min(known):,} to {max(known):,} failing results, the last known {known[-1]:,}"
    unknown = len(placed) - len(known)
    return f"{said}; not known in {unknown:,}" if unknown else said


def _place(started_at: str, now: datetime) -> float | None:
    """The place of a time on the line; None before it begins, or if the text is no time."""
    try:
        age_of = (now - parse_time(started_at)) / timedelta(days=DAYS)
    except (TypeError, ValueError, OverflowError):  # no time, or one without a zone
        return None
    return _WIDE * (1 - min(max(age_of, 0.0), 1.0)) if age_of <= 1 else None


def _path(placed: Sequence[tuple[float, int | None]], top: int) -> str:
    """A line through the known figures, which breaks where one is not known; a figure alone is a short stroke."""
    steps, pen_is_down = [], False
    for x, failed in placed:
        if failed is not None:
            steps.append(f"{'L' if pen_is_down else 'M'}{x:.1f} {_y(failed, top):.1f}" + ("" if pen_is_down else "h.1"))
        pen_is_down = failed is not None
    return "".join(steps)


def _y(failed: int, top: int) -> float:
    return _HIGH - (_HIGH - 3) * failed / top


FILTERS = {
    **{
        "kind": kind,
        "percent": percent,
        "cut": cut,
        "brief": brief,
        "age": age,
        "addressed": addressed,
        "thousands": thousands,
        "urlencode": urlencode,
    },
    **{
        "sort_by_severity": worst_severity_first,
        "worst_status_first": worst_status_first,
        "utc": utc,
        "urlencode": urlencode,
        "counted": counted,
        "duration": duration,
        "percentage": percentage,
    },
}
"""The filters of the templates by their names there."""
