"""A reading for the eye: one line for each group, folded to its worst partition, or for each partition; problems first."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf

from kafka_audit.lag.lag_table import Sort, rate_of
from kafka_audit.lag.reading import Place, Rate, Reading, rates
from kafka_audit.lag.rows import (
    ABANDONED,
    BEHIND,
    BEYOND_END,
    LOST,
    NO_COMMIT,
    NOT_ASSESSED,
    OK,
    ORPHAN,
    SLA_BROKEN,
    SLA_OK,
    LagRow,
    SlaOf,
    is_quiet,
    lag_rows,
)
from kafka_audit.lag.seconds import AT_LEAST, AT_MOST, EXACT

SLA_QUIET, SLA_UNKNOWN = "quiet", "?"
_WORST_FIRST = (LOST, BEYOND_END, SLA_BROKEN, NOT_ASSESSED, NO_COMMIT, ABANDONED, ORPHAN, BEHIND, OK)
_RANK = {word: rank for rank, word in enumerate(_WORST_FIRST)}
_SLA_WORDS = (SLA_BROKEN, SLA_UNKNOWN, SLA_OK, SLA_QUIET)
Key = tuple[str, str | None, int | None]
"""The group, topic and partition of a line; of a folded group, topic and partition are None."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number, whether it is the figure itself, its least or its most (``bound``: empty, >= or <=); ``value`` None: not known."""

    value: float | None
    bound: str = EXACT


@dataclass(frozen=True, kw_only=True)
class Line:
    """The partitions of one group, or one of them; a Figure is None where there can be none, as the lag on a topic that is gone.

    ``worst``: the partition whose state the line shows. ``partitions``: how many there are, 0 if that is not known; ``alike``: how many of
    them are in that state. ``lost`` and ``lag``: records, added up. ``margin``: the smallest. ``seconds``: the longest lag.
    ``sla``: broken, ok, quiet (hours), ? (not known), or None if there is no SLA that one reading can judge.
    ``consumed``, ``produced``: records per second, added up; None without an earlier reading.
    """

    key: Key
    worst: LagRow
    partitions: int
    alike: int
    lost: Figure | None
    margin: Figure | None
    lag: Figure | None
    seconds: Figure | None
    sla: str | None
    consumed: Figure | None = None
    produced: Figure | None = None

    @property
    def rank(self) -> int:
        """0 for the worst; groups that are merely behind, and those that are not, come last."""
        return _rank(self.worst)

    @property
    def is_gone(self) -> bool:
        """Whether there is no margin any more: records are lost already."""
        return self.lost is not None and bool(self.lost.value)


@dataclass(frozen=True, kw_only=True)
class Lines:
    """All lines of a reading in the order in which they are shown, and its rows, from which they are made."""

    rows: Sequence[LagRow]
    lines: Sequence[Line]
    folded: bool

    def counts(self, shown: int = 0) -> Counter[str]:
        """How many lines there are in each state, worst state first; without the first ``shown`` lines."""
        found = Counter(line.worst.state for line in self.lines[shown:])
        return Counter({state: found[state] for state in _WORST_FIRST if found[state]})


_FIGURE: Mapping[Sort, Callable[[Line], float | None]] = {
    Sort.LAG: lambda line: _value(line.lag),
    Sort.SECONDS: lambda line: _value(line.seconds),
    Sort.LOST: lambda line: _value(line.lost),
    Sort.MARGIN: lambda line: inf if line.is_gone else None if (value := _value(line.margin)) is None else -value,
}


def lines_of(reading: Reading, before: Reading | None, sla_of: SlaOf, sort: Sort, *, folded: bool) -> Lines:
    """The lines of a reading: problems first, then as ``sort`` says. Rates only with an earlier reading."""
    rows = lag_rows(reading, sla_of)
    found = None if before is None else rates(before, reading)
    told = _SlaWords(reading, sla_of)
    parts: Iterable[list[LagRow]] = (
        (list(of_group) for _, of_group in groupby(rows, key=lambda row: row.group_id)) if folded else ([row] for row in rows)
    )
    lines = [_line(of_line, told, found, folded=folded) for of_line in parts]
    # Stable: lines of the same figure stay in the order of their names.
    figure = _FIGURE.get(sort)
    lines.sort(key=lambda line: (line.rank, inf if figure is None or (value := figure(line)) is None else -value))
    return Lines(rows=rows, lines=lines, folded=folded)


def what_changed(before: Line | None, now: Line) -> str:
    """In a few words, the worst thing that changed on a line since the reading before; empty if nothing of these did."""
    if before is None:
        return "new"
    if before.worst.state != now.worst.state:
        return f"was {before.worst.state}"
    lost = _difference(before.lost, now.lost)
    if lost:
        return f"lost {lost:+,.0f}"
    if before.sla != now.sla:
        return f"SLA was {before.sla or 'none'}"
    lag = _difference(before.lag, now.lag)
    return f"lag {lag:+,.0f}" if lag else ""


def _difference(before: Figure | None, now: Figure | None) -> float | None:
    if before is None or now is None or before.value is None or now.value is None or before.bound or now.bound:
        return None
    return now.value - before.value


def _value(figure: Figure | None) -> float | None:
    return None if figure is None else figure.value


def _rank(row: LagRow) -> int:
    rank = _RANK[row.state]
    return min(rank, _RANK[SLA_BROKEN]) if row.sla == SLA_BROKEN else rank


def _badness(row: LagRow) -> tuple[float, ...]:
    """Smaller is worse."""
    seconds = 0 if row.lag_seconds is None else row.lag_seconds.value
    return _rank(row), -(row.lost or 0), -seconds, -(row.lag or 0)


def _line(rows: list[LagRow], told: "_SlaWords", found: Mapping[Place, Rate] | None, *, folded: bool) -> Line:
    worst = min(rows, key=_badness)
    placed = [row for row in rows if row.topic is not None]
    # A commit on a topic that is gone has no log, hence none of these figures.
    logged = [row for row in rows if row.state != ORPHAN]
    speeds = [] if found is None else [rate_of(row, found) for row in logged]
    return Line(
        key=(worst.group_id, None, None) if folded else (worst.group_id, worst.topic, worst.partition),
        worst=worst,
        partitions=len(placed),
        alike=sum(row.state == worst.state for row in placed),
        lost=_sum(row.lost for row in logged),
        margin=_smallest(row.margin for row in logged),
        lag=_sum(row.lag for row in logged),
        seconds=_longest(logged),
        sla=told.of(rows),
        consumed=None if found is None else _sum(speed.consumed for speed in speeds),
        produced=None if found is None else _sum(speed.produced for speed in speeds),
    )


def _known(values: Iterable[float | None]) -> tuple[list[float], bool]:
    """Those that are known, and whether all are."""
    given = list(values)
    known = [value for value in given if value is not None]
    return known, len(known) == len(given)


def _sum(values: Iterable[float | None]) -> Figure | None:
    known, whole = _known(values)
    if whole:
        return Figure(sum(known)) if known else None
    # "At least 0" says nothing.
    return Figure(sum(known), AT_LEAST) if any(known) else Figure(None)


def _smallest(values: Iterable[float | None]) -> Figure | None:
    known, whole = _known(values)
    if not known:
        return None if whole else Figure(None)
    return Figure(min(known), EXACT if whole else AT_MOST)


def _longest(rows: Sequence[LagRow]) -> Figure | None:
    """The longest lag in seconds, from the least and the most that it can be on each partition."""
    if not rows:
        return None
    spans = [_span(row) for row in rows]
    least, most = max(low for low, _ in spans), max(high for _, high in spans)
    if least == most:
        return Figure(least)
    if most < inf:
        return Figure(most, AT_MOST)
    at_least = least > 0 or all(row.lag_seconds is not None for row in rows)
    return Figure(least, AT_LEAST) if at_least else Figure(None)


def _span(row: LagRow) -> tuple[float, float]:
    if row.lag_seconds is None:
        return 0, inf
    value, bound = row.lag_seconds.value, row.lag_seconds.bound
    return 0 if bound == AT_MOST else value, inf if bound == AT_LEAST else value


class _SlaWords:
    """What a line says of its SLAs."""

    def __init__(self, reading: Reading, sla_of: SlaOf) -> None:
        self._at, self._sla_of = reading.taken_at, sla_of
        self._quiet: dict[int, bool] = {}

    def of(self, rows: Iterable[LagRow]) -> str | None:
        words = set(self._words(rows))
        return next((word for word in _SLA_WORDS if word in words), None)

    def _words(self, rows: Iterable[LagRow]) -> Iterator[str]:
        for row in rows:
            if row.sla is not None:
                yield row.sla
                continue
            sla = None if row.topic is None else self._sla_of(row.group_id, row.topic)
            if sla is None or row.state in {ORPHAN, ABANDONED}:
                continue
            if id(sla) not in self._quiet:
                self._quiet[id(sla)] = is_quiet(sla, self._at)
            if self._quiet[id(sla)]:
                yield SLA_QUIET
            elif sla.max_lag_records is not None or sla.max_lag_seconds is not None:
                yield SLA_UNKNOWN
