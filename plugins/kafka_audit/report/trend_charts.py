"""Draws how the audits that are kept developed: failing results by severity, and coverage."""

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from kafka_audit.report.chart_frame import PLOT, WIDTH, framed, plain
from kafka_audit.report.comparison import TrendPoint
from kafka_audit.report.tally import SEVERITIES
from kafka_audit.report.words import counted
from kafka_audit.safe_text import utc

SHOWN = 40
"""The newest audits that are drawn."""

_BOX = Markup('<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>')
_GAP = Markup('<rect class="gap" fill="url(#{id}-gap)" x="{x}" y="0" width="{width}" height="{height}"><title>{title}</title></rect>')
_FILLED = 0.7
_WIDEST = 60
_AXIS = 50  # room for the numbers of the scale


def failures_chart(points: Sequence[TrendPoint]) -> Markup:
    """One column per audit, oldest first: its failing results by severity, the worst at the bottom."""
    shown = points[-SHOWN:]
    known = [point.failed for point in shown if point.failed is not None]
    top = max([1, *known])
    ends = f"the first has {counted(known[0], 'failing result')}, the last {known[-1]:,}" if known else "there is none"
    other = " Some asked or covered something else than the one before." if any(point.differs for point in shown[1:]) else ""
    return framed(
        "trend-failures",
        title=f"Failing results by severity in {counted(len(shown), 'audit')}",
        words=f"Of those that are known, {ends}.{other} The table below has all figures.",
        shapes=_stacked(shown, top),
        top=top,
        unit="failing result",
        times=_times(shown),
        height=PLOT,
    )


def coverage_chart(points: Sequence[TrendPoint]) -> Markup:
    """One column per audit, oldest first: the share of what applies that was assessed; hatched where nothing applied."""
    shown = points[-SHOWN:]
    known = [point.coverage for point in shown if point.coverage is not None]
    lowest = f"Lowest {_percent(min(known))}, highest {_percent(max(known))}." if known else "It is not known in any of them."
    return framed(
        "trend-coverage",
        title=f"Coverage in {counted(len(shown), 'audit')}",
        words=f"{lowest} The table below has all figures.",
        shapes=_covered(shown),
        top=100,
        unit="%",
        times=_times(shown),
        height=PLOT,
    )


def _times(points: Sequence[TrendPoint]) -> tuple[str, ...]:
    times = [utc(point.started_at)[:16] for point in points]
    return (times[0], times[-1]) if len(times) > 1 else (times[0],)


def _percent(share: float) -> str:
    return f"{int(share * 1000) / 10:g}%"


def _columns(count: int) -> Iterator[tuple[str, str]]:
    """The left edge and the width of each column; the first begins right of the scale, the last ends at the right one."""
    room = WIDTH - _AXIS
    width = min(room / count * _FILLED, _WIDEST)
    for at in range(count):
        yield plain(_AXIS + (room - width) * at / max(1, count - 1)), plain(width)


def _stacked(points: Sequence[TrendPoint], top: int) -> Iterator[Markup]:
    for point, (x, width) in zip(points, _columns(len(points)), strict=True):
        below, at = 0, utc(point.started_at)[:16]
        if point.failed_by_severity is None:
            yield _GAP.format(id="trend-failures", x=x, width=width, height=PLOT, title=f"{at}: not known")
            continue
        for severity in SEVERITIES:
            number = point.failed_by_severity.get(severity, 0)
            if number:
                y, height = PLOT * (1 - (below + number) / top), PLOT * number / top
                title = f"{at}: {number:,} {severity}"
                yield _BOX.format(kind=f"sev-{severity}", x=x, y=plain(y), width=width, height=plain(height), title=title)
            below += number


def _covered(points: Sequence[TrendPoint]) -> Iterator[Markup]:
    for point, (x, width) in zip(points, _columns(len(points)), strict=True):
        at = utc(point.started_at)[:16]
        if point.coverage is None:
            yield _GAP.format(id="trend-coverage", x=x, width=width, height=PLOT, title=f"{at}: not known")
            continue
        height = PLOT * min(max(point.coverage, 0.0), 1.0)
        said = f"{at}: {_percent(point.coverage)} assessed"
        yield _BOX.format(kind="covered", x=x, y=plain(PLOT - height), width=width, height=plain(height), title=said)
        yield _BOX.format(kind="uncovered", x=x, y="0", width=width, height=plain(PLOT - height), title=said)
