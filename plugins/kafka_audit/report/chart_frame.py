"""The frame of every chart: a plot that stretches with the page, and axes whose text does not."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from markupsafe import Markup

from kafka_audit.report.words import counted

WIDTH, PLOT, HEIGHT = 720, 88, 112
"""The size of the plot in its own units: x from 0 to WIDTH, values from PLOT (0) up to 0 (the top of the scale), a strip down to HEIGHT."""

_ABOVE, _BELOW = 18, 20

_SVG = Markup(
    '<svg class="chart" role="img" aria-labelledby="{id}-title {id}-words" width="100%" height="{height}" focusable="false">'
    '<title id="{id}-title">{title}</title><desc id="{id}-words">{words}</desc>'
    '<svg class="plot" x="0" y="{above}" width="100%" height="{plot}" viewBox="0 0 {width} {plot}" preserveAspectRatio="none">'
    '<defs><pattern id="{id}-gap" width="8" height="8" patternUnits="userSpaceOnUse">'
    '<rect class="ground" width="8" height="8"/><path class="hatch" d="M-2 2L2 -2M0 8L8 0M6 10L10 6"/></pattern></defs>{shapes}</svg>'
    "{labels}</svg>"
)
_PATH = Markup('<path class="{kind}" d="{d}"/>')
_TEXT = Markup('<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>')
_PLACES = (("0", "start"), ("50%", "middle"), ("100%", "end"))

Run = tuple[str, int, int]


def plain(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def runs(kinds: Iterable[str]) -> Iterator[Run]:
    """Runs of neighbouring columns of the same kind, as (kind, first column, column after the last)."""
    start = 0
    for kind, run in groupby(kinds):
        end = start + len(list(run))
        yield kind, start, end
        start = end


def between(top: int) -> int | None:
    """A round number near the middle of a scale from 0 to ``top``: 1, 2 or 5 and zeros; None below 2."""
    if top < 2:
        return None
    power: int = 10 ** (len(str(top // 2)) - 1)
    return max(power * factor for factor in (1, 2, 5) if power * factor <= top // 2 or factor == 1)


def framed(
    chart_id: str,
    *,
    title: str,
    words: str,
    shapes: Iterable[Markup],
    top: int,
    unit: str,
    times: tuple[str, ...],
    limit: tuple[int, str] | None = None,
    height: int = HEIGHT,
) -> Markup:
    """A chart with its axes: 0, a value between, ``top`` with its unit; ``times`` in UTC from left to right; ``limit``: (value, label)."""
    middle = between(top)
    grid = [0, *([middle] if middle else []), top]
    lines = [_PATH.format(kind="grid", d=f"M0 {plain(_y(value, top))}H{WIDTH}") for value in grid]
    said = [(top, f"{top}%" if unit == "%" else counted(top, unit)), (0, "0"), *([(middle, f"{middle:,}")] if middle else [])]
    labels = [_TEXT.format(kind="tick", x="0", y=plain(_ABOVE + _y(value, top) - 4), anchor="start", text=text) for value, text in said]
    if limit is not None:
        y = plain(_ABOVE + _y(limit[0], top) - 4)
        labels.append(_TEXT.format(kind="tick over", x="100%", y=y, anchor="end", text=limit[1]))
    places = _PLACES if len(times) == 3 else (_PLACES[0], _PLACES[2])[: len(times)]
    for (x, anchor), time in zip(places, times, strict=True):
        words_of_time = f"{time} UTC" if anchor == "end" or len(times) == 1 else time
        labels.append(_TEXT.format(kind="tick", x=x, y=_ABOVE + height + 15, anchor=anchor, text=words_of_time))
    return _SVG.format(
        id=chart_id,
        title=title,
        words=words,
        above=_ABOVE,
        plot=height,
        width=WIDTH,
        height=_ABOVE + height + _BELOW,
        shapes=Markup("").join([*lines, *shapes]),
        labels=Markup("").join(labels),
    )


def _y(value: int, top: int) -> float:
    return PLOT * (1 - value / top)
