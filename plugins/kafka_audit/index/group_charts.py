"""Draws how a group stood in the audits that are kept: one column for each audit, against the limit of the SLA."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from markupsafe import Markup

from kafka_audit.index.group_history import PastGroup
from kafka_audit.report.chart_frame import PLOT, WIDTH, framed, plain
from kafka_audit.report.words import counted
from kafka_audit.safe_text import utc, visible

_BOX = Markup('<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"><title>{title}</title></rect>')
_GAP = Markup('<rect class="gap" fill="url(#{id}-gap)" x="{x}" y="0" width="{width}" height="{height}"><title>{title}</title></rect>')
_LIMIT = Markup('<path class="limit" d="M0 {y}H{width}"/>')
_FILLED, _WIDEST, _AXIS, _LEAST = 0.7, 40, 60, 1.5
"""Share of its room that a column fills, its largest width, room for the numbers of the scale, and the height of a 0."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a group: the column of its row, what one unit of it is called, and by what the column is divided.

    ``limit``: the SLA's, in units. ``least``: whether less than the limit breaks it. ``events``: it counts what should not happen.
    ``limit_is``: what the limit is called, where it is not one of the SLA. ``bound_by``: a column that says, if it is neither 0 nor false,
    that the true figure may be larger.
    """

    id: str
    title: str
    column: str
    unit: str
    divided_by: float = 1
    limit: float | None = None
    least: bool = False
    events: bool = False
    limit_is: str = ""
    bound_by: str = ""

    def value(self, point: PastGroup) -> float | None:
        """The figure in an audit, in units; None if it is not known."""
        found = point.known(self.column)
        return None if found is None else found / self.divided_by

    def is_bound(self, point: PastGroup) -> bool:
        """Whether the figure in an audit is only the least that it can be."""
        return bool(self.bound_by and point.known(self.bound_by))

    def said(self, value: float) -> str:
        """A value with its unit."""
        shown = f"{value:,.2f}".rstrip("0").rstrip(".")
        return f"{shown}%" if self.unit == "%" else f"{shown} {self.unit}{'' if value == 1 else 's'}"


def figures(max_lag_records: int | None, max_lag_ms: int | None, target_percent: float | None) -> tuple[Figure, ...]:
    """What is drawn of a group; the limits are those of its SLAs, or None."""
    seconds = None if max_lag_ms is None else max_lag_ms / 1000
    return (
        Figure(id="lag", title="Lag in records", column="lag", unit="record", limit=max_lag_records, bound_by="unknown"),
        Figure(
            id="time", title="Lag in seconds", column="lag_ms", unit="second", divided_by=1000, limit=seconds, bound_by="lag_ms_is_bound"
        ),
        Figure(id="availability", title="Time within the SLA", column="availability_percent", unit="%", limit=target_percent, least=True),
        Figure(
            id="budget",
            title="Error budget used",
            column="budget_used_share",
            unit="%",
            divided_by=0.01,
            limit=100,
            limit_is="the whole budget",
        ),
        Figure(id="rewinds", title="Rewinds", column="rewinds", unit="rewind", events=True),
    )


def is_drawn(figure: Figure, points: Sequence[PastGroup]) -> bool:
    """Whether there is anything to draw: something is known, and of events at least one was seen."""
    known = [value for point in points if (value := figure.value(point)) is not None]
    return any(known) if figure.events else bool(known)


def figure_chart(figure: Figure, points: Sequence[PastGroup]) -> Markup:
    """One column per audit, oldest first, hatched where the figure is not known; a column beyond the limit has another colour."""
    values = [figure.value(point) for point in points]
    top = _top(figure, values)
    said = (
        None if figure.limit is None else figure.limit_is or f"SLA: {'at least' if figure.least else 'at most'} {figure.said(figure.limit)}"
    )
    limit = None if figure.limit is None or said is None else (ceil(figure.limit), said)
    return framed(
        f"audits-{figure.id}",
        title=f"{figure.title} in {counted(len(points), 'audit')}",
        words=_in_words(figure, points, values),
        shapes=_shapes(figure, points, values, top),
        top=top,
        unit=figure.unit,
        times=_times(points),
        limit=limit,
        height=PLOT,
    )


def _top(figure: Figure, values: Sequence[float | None]) -> int:
    known = [value for value in values if value is not None]
    least = 100 if figure.unit == "%" else 1
    return max(least, ceil(max(known, default=0)), ceil(figure.limit or 0))


def _in_words(figure: Figure, points: Sequence[PastGroup], values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    said = [f"Known in {len(known):,} of {len(values):,} audits."]
    if known:
        said.append(f"Lowest {figure.said(min(known))}, highest {figure.said(max(known))}.")
        said.append("Not known in the newest." if values[-1] is None else f"In the newest {figure.said(known[-1])}.")
    if figure.limit is not None and known:
        broken = sum(_breaks(figure, value) for value in known)
        unsure = sum(
            value is not None and figure.is_bound(point) and not _breaks(figure, value) for point, value in zip(points, values, strict=True)
        )
        said.append(f"The SLA is broken in {broken:,} of {len(known) - unsure:,}.")
    if bound := sum(value is not None and figure.is_bound(point) for point, value in zip(points, values, strict=True)):
        said.append(f"In {bound:,} the true figure may be larger.")
    return " ".join([*said, "The table below has all figures."])


def _breaks(figure: Figure, value: float) -> bool:
    if figure.limit is None:
        return False
    return value < figure.limit if figure.least else value > figure.limit


def _shapes(figure: Figure, points: Sequence[PastGroup], values: Sequence[float | None], top: int) -> Iterator[Markup]:
    room = WIDTH - _AXIS
    width = min(room / len(points) * _FILLED, _WIDEST)
    for at, (point, value) in enumerate(zip(points, values, strict=True)):
        x = plain(_AXIS + (room - width) * at / max(1, len(points) - 1))
        when = visible(utc(point.started_at)[:16])
        if value is None:
            title = f"{when}: not known{f' ({point.why})' if point.why else ''}"
            yield _GAP.format(id=f"audits-{figure.id}", x=x, width=plain(width), height=PLOT, title=title)
            continue
        height = max(PLOT * value / top, _LEAST)
        kind = "column broken" if _breaks(figure, value) else "column"
        title = f"{when}: {'at least ' if figure.is_bound(point) else ''}{figure.said(value)}"
        yield _BOX.format(kind=kind, x=x, y=plain(PLOT - height), width=plain(width), height=plain(height), title=title)
    if figure.limit is not None:
        yield _LIMIT.format(y=plain(PLOT * (1 - figure.limit / top)), width=WIDTH)


def _times(points: Sequence[PastGroup]) -> tuple[str, ...]:
    times = [visible(utc(point.started_at)[:16]) for point in points]
    return (times[0], times[-1]) if len(times) > 1 else (times[0],)
