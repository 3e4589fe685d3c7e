"""Draws lag and SLA compliance over time as inline SVG, without scripts, styles or external resources, and describes it in words."""

from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup

from kafka_audit import safe_text as text
from kafka_audit.report.lag_history import LagHistory
from kafka_audit.report.words import counted, duration, minute

_WIDTH, _PLOT, _STRIP, _HEIGHT = 720, 88, 98, 112
_HALF, _FULL = (_HEIGHT - _STRIP) // 2, _HEIGHT - _STRIP
_LOST = 12

_SVG = Markup(
    '<svg class="chart" role="img" aria-labelledby="chart-{number}-title chart-{number}-words" viewBox="0 0 {width} {height}"'
    ' preserveAspectRatio="none" focusable="false">'
    '<title id="chart-{number}-title">{title}</title><desc id="chart-{number}-words">{words}</desc>'
    '<defs><pattern id="chart-{number}-gap" width="8" height="8" patternUnits="userSpaceOnUse">'
    '<rect class="ground" width="8" height="8"/><path class="hatch" d="M-2 2L2 -2M0 8L8 0M6 10L10 6"/></pattern></defs>{shapes}</svg>'
)
_BOX = Markup('<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>')
_GAP = Markup('<rect class="gap" fill="url(#chart-{number}-gap)" x="{x}" y="{y}" width="{width}" height="{height}"/>')
_PATH = Markup('<path class="{kind}" d="{d}"/>')

_Run = tuple[str, int, int]


def top_of_scale(history: LagHistory, limit: int | None = None) -> int:
    """The number of records at the upper edge of the plot: the largest lag or the limit, at least 1. The lower edge is 0."""
    return max(1, limit or 0, *(lag for lag in history.lag if lag is not None))


def period(history: LagHistory) -> str:
    """The time span of the history, in words."""
    end = history.start_ms + len(history.lag) * history.step_ms
    return f"{minute(history.start_ms)} to {minute(end)} UTC"


def in_words(history: LagHistory, limit: int | None = None) -> str:
    """The figures of the chart as words."""
    known = [(lag, at) for at, lag in enumerate(history.lag) if lag is not None]
    count = len(history.lag)
    length = f" of {duration(history.step_ms)}" if count > 1 else ""
    said = [f"{counted(count, 'interval')}{length}; the lag is known in {len(known):,} of {count:,}."]
    if known:
        largest, at = max(known, key=lambda one: (one[0], -one[1]))
        said.append(f"Largest lag {counted(largest, 'record')} from {minute(history.start_ms + at * history.step_ms)} UTC.")
        last = history.lag[-1]
        said.append("At the end the lag is not known." if last is None else f"At the end {counted(last, 'record')}.")
    if limit is not None and known:
        said.append(f"The SLA allows {counted(limit, 'record')}: more in {sum(lag > limit for lag, _ in known):,} of {len(known):,}.")
    judged = [share for share in history.in_sla_share if share is not None]
    if judged:
        outside = sum(share < 1 for share in judged)
        said.append(f"Inside the SLA throughout in {len(judged) - outside:,}, outside for a part at least in {outside:,}.")
    lost = sum(bool(records) for records in history.lost)
    return " ".join([*said, f"Records had been lost in {lost:,}."] if lost else said)


def lag_chart(number: int, group_id: str, history: LagHistory, limit: int | None = None) -> Markup:
    """The chart of one group's history; ``number`` makes its ids unique on the page, ``limit`` is the SLA's in records.

    The line is the lag from 0 to ``top_of_scale``. Where the lag is not known, the line is interrupted and the gap hatched. Blocks at
    the top mark lost records. The strip below shows each interval: low if the group was inside the SLA, high if it was outside for at
    least a part, hatched if samples are missing (above the low part if only some are), empty if nothing was judged.
    """
    top = top_of_scale(history, limit)
    parts = [*_lag(number, history, top), *_limit(limit, top), *_losses(history), *_strip(number, history)]
    return _SVG.format(
        number=number,
        width=_WIDTH,
        height=_HEIGHT,
        title=f"Lag of {text.visible(text.shortened(group_id)[0])}, {period(history)}",
        words=in_words(history, limit),
        shapes=Markup("").join(parts),
    )


def _plain(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _x(history: LagHistory, column: int) -> str:
    return _plain(_WIDTH * column / len(history.lag))


def _runs(kinds: list[str]) -> Iterator[_Run]:
    """Runs of neighbouring columns of the same kind, as (kind, first column, column after the last)."""
    start = 0
    for kind, run in groupby(kinds):
        end = start + len(list(run))
        yield kind, start, end
        start = end


def _place(history: LagHistory, start: int, end: int, y: int, height: int) -> dict[str, str | int]:
    width = _plain(_WIDTH * (end - start) / len(history.lag))
    return {"x": _x(history, start), "y": y, "width": width, "height": height}


def _lag(number: int, history: LagHistory, top: int) -> Iterator[Markup]:
    """The gaps, and for each run of known values a filled area whose upper edge is a step line."""
    for kind, start, end in _runs(["gap" if lag is None else "lag" for lag in history.lag]):
        if kind == "gap":
            yield _GAP.format(number=number, **_place(history, start, end, 0, _PLOT))
            continue
        heights = [_plain(_PLOT * (1 - (lag or 0) / top)) for lag in history.lag[start:end]]
        steps, column = [], start
        for height, same in groupby(heights):
            column += len(list(same))
            steps.append(f"V{height}H{_x(history, column)}")
        edge = f"M{_x(history, start)} {heights[0]}" + "".join(steps)
        yield _PATH.format(kind="area", d=f"{edge}V{_PLOT}H{_x(history, start)}Z")
        yield _PATH.format(kind="line", d=edge)


def _limit(limit: int | None, top: int) -> Iterator[Markup]:
    if limit is not None:
        yield _PATH.format(kind="limit", d=f"M0 {_plain(_PLOT * (1 - limit / top))}H{_WIDTH}")


def _losses(history: LagHistory) -> Iterator[Markup]:
    for kind, start, end in _runs(["lost" if records else "" for records in history.lost]):
        if kind:
            yield _BOX.format(kind=kind, **_place(history, start, end, 0, _LOST))


def _strip(number: int, history: LagHistory) -> Iterator[Markup]:
    shares = list(zip(history.in_sla_share, history.known_share, strict=True))
    judged = ["" if share is None else "inside" if share >= 1 else "outside" for share, _ in shares]
    for kind, start, end in _runs(judged):
        if kind:
            height = _HALF if kind == "inside" else _FULL
            yield _BOX.format(kind=kind, **_place(history, start, end, _HEIGHT - height, height))
    missing = [
        "" if known >= 1 or kind == "outside" else "part" if known else "gap" for kind, (_, known) in zip(judged, shares, strict=True)
    ]
    for kind, start, end in _runs(missing):
        if kind == "part":
            yield _BOX.format(kind=kind, **_place(history, start, end, _STRIP, _HALF))
        elif kind:
            yield _GAP.format(number=number, **_place(history, start, end, _STRIP, _FULL))
