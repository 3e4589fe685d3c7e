"""The columns of ``kafka-audit lag`` on a terminal: what each line says, in words and colours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rich.text import Text

from kafka_audit.cli.fitted_table import Column, name_text
from kafka_audit.lag.folded import SLA_UNKNOWN, Figure, Key, Line, what_changed
from kafka_audit.lag.rows import BEHIND, BEYOND_END, LOST, NOT_ASSESSED, OK, SLA_BROKEN, SLA_OK

_NONE, _UNKNOWN, _GONE = "-", "?", "gone"
_STATE_STYLES = {LOST: "bold red", BEYOND_END: "bold red", NOT_ASSESSED: "bold yellow", BEHIND: "cyan", OK: "green"}
_SLA_STYLES = {SLA_BROKEN: "bold red", SLA_UNKNOWN: "yellow", SLA_OK: "green"}
_OTHER = "yellow"
_GRAVE, _MOVED = "bold reverse", "bold"
_GROUPS, _PARTITIONS = "groups", "partitions"
_FIRST = 5
"""Behind so many columns stands what changed."""
_EXACT_BELOW = 1_000_000
_UNITS = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"))
_SPANS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))
_PRECISE_BELOW = 10
Before = Mapping[Key, Line] | None
"""The lines of the reading before, where there is one."""


Cell = tuple[str, str]
"""Text and style."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """What a column shows of a line; the other fields are those of :class:`Column`.

    ``mark``: the style that a cell gets if it changed since the reading before. ``of``: only for folded groups, or only for partitions.
    ``is_dense``: shown only if a line has something to say.
    """

    heading: str
    rank: int
    cell: Callable[[Line], Cell]
    mark: str = ""
    of: str = ""
    is_name: bool = False
    is_extra: bool = False
    is_figure: bool = False
    is_dense: bool = False


def columns_of(lines: Sequence[Line], before: Before, *, folded: bool) -> list[Column]:
    """The columns of these lines, most important first. With the lines of the reading before, cells that changed are marked."""
    kinds = [kind for kind in _KINDS if kind.of in ("", _GROUPS if folded else _PARTITIONS)]
    found = [column for kind in kinds if (column := _column(kind, lines, before)) is not None]
    if before is not None:
        changes = [Text(what_changed(before.get(line.key), line), style="bold") for line in lines]
        found.insert(_FIRST, Column(heading="CHANGED", cells=changes, rank=5))
    return found


def _column(kind: _Kind, lines: Sequence[Line], before: Before) -> Column | None:
    texts = [kind.cell(line) for line in lines]
    if kind.is_dense and all(text == _NONE for text, _ in texts):
        return None
    cells = [Text(cell[0], style=_style(kind, line, cell, before)) for line, cell in zip(lines, texts, strict=True)]
    return Column(heading=kind.heading, cells=cells, rank=kind.rank, is_name=kind.is_name, is_extra=kind.is_extra, is_figure=kind.is_figure)


def _style(kind: _Kind, line: Line, cell: Cell, before: Before) -> str:
    earlier = None if before is None or not kind.mark else before.get(line.key)
    return f"{cell[1]} {kind.mark}".strip() if earlier is not None and kind.cell(earlier)[0] != cell[0] else cell[1]


def count_text(value: float) -> str:
    """A number with separators of thousands; from a million on with one decimal and a unit, rounded down."""
    if value < _EXACT_BELOW:
        return f"{int(value):,}"
    size, unit = next(one for one in _UNITS if value >= one[0])
    tenths = int(value) * 10 // size
    return f"{tenths // 10:,}.{tenths % 10}{unit}"


def duration_text(seconds: float) -> str:
    """Like ``3.2s``, ``12s``, ``5m 3s``, ``2h 14m`` or ``3d 4h``, rounded down."""
    for size, unit, smaller, smaller_unit in _SPANS:
        if seconds >= size:
            return f"{int(seconds // size):,}{unit} {int(seconds % size // smaller)}{smaller_unit}"
    tenths = int(seconds * 10)
    return f"{tenths / 10:.1f}s" if 0 < seconds < _PRECISE_BELOW and tenths % 10 else f"{int(seconds)}s"


def _figure(figure: Figure | None, text: Callable[[float], str] = count_text) -> str:
    if figure is None:
        return _NONE
    return _UNKNOWN if figure.value is None else f"{figure.bound}{text(figure.value)}"


def _plain(figure: Figure | None, text: Callable[[float], str] = count_text) -> Cell:
    said = _figure(figure, text)
    return said, _OTHER if said == _UNKNOWN else ""


def _lost(line: Line) -> Cell:
    said, style = _plain(line.lost)
    return said, "bold red" if line.is_gone else style


def _margin(line: Line) -> Cell:
    return (_GONE, "bold red") if line.is_gone else _plain(line.margin)


def _seconds(line: Line) -> Cell:
    said, style = _plain(line.seconds, duration_text)
    return said, "bold red" if line.sla == SLA_BROKEN and said != _NONE else style


def _rate(figure: Figure | None) -> Cell:
    return _plain(figure, lambda value: f"{value:,.1f}" if value < _EXACT_BELOW else count_text(value))


def _partition(line: Line) -> Cell:
    row = line.worst
    return (_UNKNOWN, _OTHER) if row.topic is None else (f"{name_text(row.topic)}-{row.partition}", "")


def _count(number: Callable[[Line], int]) -> Callable[[Line], Cell]:
    """How many partitions; of a group whose partitions are not known nothing is counted."""
    return lambda line: (count_text(number(line)), "") if line.partitions else (_UNKNOWN, _OTHER)


def _offset(value: int | None) -> Cell:
    return _NONE if value is None else str(value), ""


def state_style(state: str) -> str:
    """The style in which a state is drawn."""
    return _STATE_STYLES.get(state, _OTHER)


def _state(line: Line) -> Cell:
    return line.worst.state, state_style(line.worst.state)


_KINDS = (
    _Kind(heading="STATE", rank=0, cell=_state, mark=_GRAVE),
    _Kind(heading="LOST", rank=2, cell=_lost, mark=_GRAVE, is_figure=True),
    _Kind(heading="MARGIN", rank=6, cell=_margin, mark=_MOVED, is_figure=True),
    _Kind(heading="LAG", rank=1, cell=lambda line: _plain(line.lag), mark=_MOVED, is_figure=True),
    _Kind(heading="TIME", rank=4, cell=_seconds, mark=_MOVED, is_figure=True),
    _Kind(heading="GROUP", rank=0, cell=lambda line: (name_text(line.worst.group_id), "bold"), is_name=True),
    _Kind(heading="WORST", rank=3, cell=_partition, is_name=True, of=_GROUPS),
    _Kind(heading="OF", rank=7, cell=_count(lambda line: line.partitions), is_figure=True, of=_GROUPS),
    _Kind(heading="PARTITION", rank=3, cell=_partition, is_name=True, of=_PARTITIONS),
    _Kind(heading="SLA", rank=8, cell=lambda line: (line.sla or _NONE, _SLA_STYLES.get(line.sla or "", "")), mark=_GRAVE, is_dense=True),
    _Kind(heading="IN STATE", rank=9, cell=_count(lambda line: line.alike), mark=_MOVED, is_figure=True, of=_GROUPS),
    _Kind(heading="CONSUMED/S", rank=10, cell=lambda line: _rate(line.consumed), is_figure=True, is_extra=True, is_dense=True),
    _Kind(heading="PRODUCED/S", rank=11, cell=lambda line: _rate(line.produced), is_figure=True, is_extra=True, is_dense=True),
    _Kind(
        heading="CURRENT-OFFSET", rank=12, cell=lambda line: _offset(line.worst.committed), of=_PARTITIONS, is_figure=True, is_extra=True
    ),
    _Kind(heading="LOG-END-OFFSET", rank=13, cell=lambda line: _offset(line.worst.log_end), of=_PARTITIONS, is_figure=True, is_extra=True),
    _Kind(
        heading="CLIENT-ID", rank=14, cell=lambda line: (name_text(line.worst.client_id), ""), is_name=True, is_extra=True, is_dense=True
    ),
    _Kind(heading="HOST", rank=15, cell=lambda line: (name_text(line.worst.host), ""), is_name=True, is_extra=True, is_dense=True),
    _Kind(
        heading="CONSUMER-ID", rank=16, cell=lambda line: (name_text(line.worst.member_id), ""), is_name=True, is_extra=True, is_dense=True
    ),
)
