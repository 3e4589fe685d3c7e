"""A table that fits a width: columns that matter least are left out, long names lose their middle, and no line wraps."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from kafka_audit.safe_text import visible

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_GAP, _NARROW_GAP = 2, 1
_SHORTEST, _ROOMY = 12, 24
_LONGEST_NAME = 400


@dataclass(frozen=True, kw_only=True)
class Column:
    """A heading and its cells. ``rank``: columns with a higher one are left out first, and 0 never. ``is_name``: may lose its middle.

    ``is_extra``: shown only where the names before it still have room. ``is_figure``: aligned at the right.
    """

    heading: str
    cells: Sequence[Text]
    rank: int
    is_name: bool = False
    is_extra: bool = False
    is_figure: bool = False

    @property
    def natural(self) -> int:
        """Cells that it takes without any shortening."""
        return max([cell_len(self.heading), *(cell.cell_len for cell in self.cells)])

    def floor(self, least: int) -> int:
        """Cells that it takes at least, when names may be shortened to ``least``."""
        return max(cell_len(self.heading), min(self.natural, least)) if self.is_name else self.natural


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The columns that fit, with their widths, the blanks between them, and the headings of those that do not fit."""

    columns: Sequence[tuple[Column, int]]
    gap: int
    dropped: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line for the headings and one for each row. Of 100,000 rows, rich's own Table would take half a minute."""
        bold = console.get_style("bold")
        gap = Segment(" " * self.gap)
        headings = [Segment(_aligned(column, column.heading, width), bold) for column, width in self.columns]
        cells = [[self._segment(column, cell, width, console) for cell in column.cells] for column, width in self.columns]
        for row in (headings, *zip(*cells, strict=True)):
            for at, segment in enumerate(row):
                if at:
                    yield gap
                yield segment
            yield Segment.line()

    def _segment(self, column: Column, cell: Text, width: int, console: Console) -> Segment:
        return Segment(_aligned(column, without_middle(cell.plain, width), width), console.get_style(cell.style))


def fit(columns: Sequence[Column], width: int) -> Fitted:
    """Choose columns and widths for a window of ``width`` cells; columns stand closer if one that is no extra would be left out."""
    fitted = _fit(columns, width, _GAP)
    extra = {column.heading for column in columns if column.is_extra}
    return fitted if extra.issuperset(fitted.dropped) else _fit(columns, width, _NARROW_GAP)


def _fit(columns: Sequence[Column], width: int, gap: int) -> Fitted:
    kept, dropped = list(columns), []
    while (least := max(kept, key=lambda column: column.rank)).rank > 0:
        if _taken([column.floor(_ROOMY if least.is_extra else _SHORTEST) for column in kept], gap) <= width:
            break
        kept.remove(least)
        dropped.append(least)
    widths = [column.floor(_SHORTEST) for column in kept]
    # What is left goes to the narrowest name that is still cut, those that matter first.
    for _ in range(max(0, width - _taken(widths, gap))):
        cut = [at for at, column in enumerate(kept) if widths[at] < column.natural]
        if not cut:
            break
        widths[min(cut, key=lambda at: (kept[at].is_extra, widths[at]))] += 1
    headings = [column.heading for column in columns if column in dropped]
    return Fitted(columns=list(zip(kept, widths, strict=True)), gap=gap, dropped=headings)


def name_text(name: str | None) -> str:
    """A name from outside on one line: what draws nothing is spelled out, and so are blanks at its ends; a dash if there is none."""
    if name is None:
        return "-"
    # No window has room for more.
    kept = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME // 2] + _ELLIPSIS + name[-_LONGEST_NAME // 2 :]
    text = visible(kept)
    return f'"{text}"' if text != text.strip() or not text else text


def without_middle(text: str, width: int) -> str:
    """The text in ``width`` cells, its middle replaced by an ellipsis if it is longer: names differ at their ends."""
    if cell_len(text) <= width:
        return text
    if width <= 1:
        return _ELLIPSIS[:width]
    room = width - 1
    start = set_cell_size(text, room - room // 2)
    end = chop_cells(text[::-1], room // 2)[0][::-1] if room // 2 else ""
    return start + _ELLIPSIS + end


def _aligned(column: Column, text: str, width: int) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if column.is_figure else text + blanks


def _taken(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)
