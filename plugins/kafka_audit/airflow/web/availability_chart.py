"""Draws the lowest measured availability of each of the audits that are kept, on a scale that begins below the lowest of them."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from kafka_audit.report.chart_frame import PLOT, WIDTH, plain
from kafka_audit.report.comparison import TrendPoint
from kafka_audit.report.words import counted, percentage
from kafka_audit.safe_text import utc

SHOWN = 40
_FLOORS = (99.99, 99.9, 99.0, 95.0, 90.0, 50.0)
_LEFT, _ABOVE, _BELOW = 60, 18, 20

_CHART = Markup(
    '<svg class="chart" role="img" aria-label="{words}" width="100%" height="{height}" focusable="false">'
    '<svg class="plot" x="0" y="{above}" width="100%" height="{plot}" viewBox="0 0 {width} {plot}" preserveAspectRatio="none">'
    '<path class="grid" d="M0 0H{width}M0 {plot}H{width}"/>{shapes}</svg>{labels}</svg>'
)
_TEXT = Markup('<text class="tick" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
_LINE = Markup('<path class="value" d="{d}"/>')


def availability_chart(points: Sequence[TrendPoint]) -> Markup | None:
    """A line through the availability of the newest audits, which breaks where it was not measured; None if it never was."""
    shown = points[-SHOWN:]
    known = [point.availability_percent for point in shown if point.availability_percent is not None]
    if not known:
        return None
    floor = floor_of(min(known))
    missing = len(shown) - len(known)
    ends = f"lowest {percentage(min(known))}, last known {percentage(known[-1])}"
    words = f"Availability in {counted(len(shown), 'audit')}, that of the worst SLA: {ends}"
    return _CHART.format(
        words=f"{words}; not measured in {missing:,}" if missing else words,
        above=_ABOVE,
        plot=PLOT,
        width=WIDTH,
        height=_ABOVE + PLOT + _BELOW,
        shapes=_LINE.format(d="".join(_steps(shown, floor))),
        labels=Markup("").join(_labels(shown, floor)),
    )


def floor_of(lowest: float) -> float:
    """A round percentage at or below the lowest value, at which the scale begins."""
    return next((one for one in _FLOORS if one <= lowest), 0.0)


def _steps(points: Sequence[TrendPoint], floor: float) -> Iterator[str]:
    drawn = False
    for number, point in enumerate(points):
        if point.availability_percent is not None:
            x = _LEFT + (WIDTH - _LEFT - 4) * (number / (len(points) - 1) if len(points) > 1 else 1.0)
            y = PLOT * (1 - (min(point.availability_percent, 100.0) - floor) / (100.0 - floor))
            yield f"L{plain(x)} {plain(y)}" if drawn else f"M{plain(x)} {plain(y)}h6"
        drawn = point.availability_percent is not None


def _labels(points: Sequence[TrendPoint], floor: float) -> Iterator[Markup]:
    yield _TEXT.format(x="0", y=_ABOVE - 4, anchor="start", text="100%")
    yield _TEXT.format(x="0", y=_ABOVE + PLOT - 4, anchor="start", text=percentage(floor))
    first, last = utc(points[0].started_at)[:16], utc(points[-1].started_at)[:16]
    yield _TEXT.format(x="0", y=_ABOVE + PLOT + 15, anchor="start", text=first)
    if len(points) > 1:
        yield _TEXT.format(x="100%", y=_ABOVE + PLOT + 15, anchor="end", text=f"{last} UTC")
