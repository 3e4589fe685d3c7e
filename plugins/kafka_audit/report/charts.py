"""Draws lag and SLA compliance over time as inline SVG with axes, without scripts or external resources, and describes it in words."""

from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup

from kafka_audit import safe_text as text
from kafka_audit.report.chart_frame import HEIGHT, PLOT, WIDTH, framed, plain, runs
from kafka_audit.report.lag_history import LagHistory
from kafka_audit.report.words import counted, duration, minute

_STRIP = 98
_HALF, _FULL = (HEIGHT - _STRIP) // 2, HEIGHT - _STRIP
_LOST = 12

_BOX = Markup('<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>')
_GAP = Markup('<rect class="gap" fill="url(#chart-{number}-gap)" x="{x}" y="{y}" width="{width}" height="{height}"/>')
_PATH = Markup('<path class="{kind}" d="{d}"/>')


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
    end = history.start_ms + len(history.lag) * history.step_ms
    return framed(
        f"chart-{number}",
        title=f"Lag of {text.visible(text.shortened(group_id)[0])}, {period(history)}",
        words=in_words(history, limit),
        shapes=parts,
        top=top,
        unit="record",
        times=(minute(history.start_ms), minute((history.start_ms + end) // 2).partition("-")[2], minute(end)),
        limit=(limit, f"SLA: at most {counted(limit, 'record')}") if limit is not None else None,
    )


def _x(history: LagHistory, column: int) -> str:
    return plain(WIDTH * column / len(history.lag))


def _place(history: LagHistory, start: int, end: int, y: int, height: int) -> dict[str, str | int]:
    width = plain(WIDTH * (end - start) / len(history.lag))
    return {"x": _x(history, start), "y": y, "width": width, "height": height}


def _lag(number: int, history: LagHistory, top: int) -> Iterator[Markup]:
    """The gaps, and for each run of known values a filled area whose upper edge is a step line."""
    for kind, start, end in runs(["gap" if lag is None else "lag" for lag in history.lag]):
        if kind == "gap":
            yield _GAP.format(number=number, **_place(history, start, end, 0, PLOT))
            continue
        heights = [plain(PLOT * (1 - (lag or 0) / top)) for lag in history.lag[start:end]]
        steps, column = [], start
        for height, same in groupby(heights):
            column += len(list(same))
            steps.append(f"V{height}H{_x(history, column)}")
        edge = f"M{_x(history, start)} {heights[0]}" + "".join(steps)
        yield _PATH.format(kind="area", d=f"{edge}V{PLOT}H{_x(history, start)}Z")
        yield _PATH.format(kind="line", d=edge)


def _limit(limit: int | None, top: int) -> Iterator[Markup]:
    if limit is not None:
        yield _PATH.format(kind="limit", d=f"M0 {plain(PLOT * (1 - limit / top))}H{WIDTH}")


def _losses(history: LagHistory) -> Iterator[Markup]:
    for kind, start, end in runs(["lost" if records else "" for records in history.lost]):
        if kind:
            yield _BOX.format(kind=kind, **_place(history, start, end, 0, _LOST))


def _strip(number: int, history: LagHistory) -> Iterator[Markup]:
    shares = list(zip(history.in_sla_share, history.known_share, strict=True))
    judged = ["" if share is None else "inside" if share >= 1 else "outside" for share, _ in shares]
    for kind, start, end in runs(judged):
        if kind:
            height = _HALF if kind == "inside" else _FULL
            yield _BOX.format(kind=kind, **_place(history, start, end, HEIGHT - height, height))
    missing = [
        "" if known >= 1 or kind == "outside" else "part" if known else "gap" for kind, (_, known) in zip(judged, shares, strict=True)
    ]
    for kind, start, end in runs(missing):
        if kind == "part":
            yield _BOX.format(kind=kind, **_place(history, start, end, _STRIP, _HALF))
        elif kind:
            yield _GAP.format(number=number, **_place(history, start, end, _STRIP, _FULL))
