"""What ``kafka-audit lag`` draws on a terminal: heading, lines and what a reader must know of them, as much as the window has room for."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from kafka_audit.cli.fitted_table import Fitted, fit, name_text
from kafka_audit.cli.lag_columns import Before, columns_of, state_style
from kafka_audit.errors import CollectionError
from kafka_audit.lag.folded import Key, Line, Lines, lines_of
from kafka_audit.lag.lag_table import Sort, notes
from kafka_audit.lag.reading import Reading
from kafka_audit.lag.rows import SlaOf
from kafka_audit.safe_text import utc, visible

_INDENT = 2
_FEWEST = 2
"""So many lines of the table stay in the smallest window, whatever notes there are."""
_NAMED = 3
_REDRAWN_PER_SECOND = 4
"""How often the window's size is looked at."""


@dataclass(frozen=True, kw_only=True)
class LagScreen:
    """One reading on a terminal. ``before``: the lines of the reading before, with which these are compared.

    ``fits_height``: lines are left out so that all of it fits into the window. ``is_watched``: the heading says how it ends.
    ``problem``: why there is no newer reading.
    """

    cluster: str
    taken_at: datetime
    lines: Lines
    notes: Sequence[str]
    before: Before = None
    fits_height: bool = True
    is_watched: bool = False
    problem: str | None = None

    def by_key(self) -> Mapping[Key, Line]:
        """The lines, to be compared with those of the next reading."""
        return {line.key: line for line in self.lines.lines}

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """All of it; where the height is limited, without the last lines and notes. A prompt needs one line of a terminal."""
        height = (options.height or console.size.height - 1) if self.fits_height else None
        heading = list(self._heading())
        count = len(self.lines.lines)
        shown = count if height is None else min(count, height)
        while True:
            table = fit(columns_of(self.lines.lines[:shown], self.before, folded=self.lines.folded), options.max_width)
            footer = list(self._footer(table, shown))
            if height is None:
                break
            free = height - _height(heading, console, options.max_width) - 1
            footer = _shortened(footer, free - min(shown, _FEWEST), console, options.max_width - _INDENT)
            room = max(1, free - _height(footer, console, options.max_width - _INDENT))
            # The line that says how many are left out takes room, too.
            if shown <= room:
                break
            shown = room
        yield from heading
        yield table if count else Text("no group in scope has a commit or an assigned partition")
        yield from (Padding(text, (0, 0, 0, _INDENT)) for text in footer)

    def _heading(self) -> Iterator[Text]:
        text = Text(f"{visible(self.cluster)}  {utc(self.taken_at)}", style="bold")
        count = len(self.lines.lines)
        text.append(f"  {count:,} {self._what(count)}", style="not bold")
        for at, (state, number) in enumerate(self.lines.counts().items()):
            text.append(", " if at else ": ", style="not bold")
            text.append(f"{number:,} {state}", style=state_style(state))
        if self.is_watched:
            text.append("  (Ctrl-C ends it)", style="not bold dim")
        yield text
        if self.problem is not None:
            yield Text(f"Not read again, so this is not the present state: {visible(self.problem)}", style="bold red")

    def _what(self, count: int) -> str:
        return ("group" if self.lines.folded else "partition") + ("" if count == 1 else "s")

    def _footer(self, table: Fitted, shown: int) -> Iterator[Text]:
        """What is left out and how to see it, notes on the figures, and what the figures of a folded line are; most important first."""
        folded = self.lines.folded
        left_out = len(self.lines.lines) - shown
        if left_out:
            states = ", ".join(f"{number:,} {state}" for state, number in self.lines.counts(shown).items())
            everything = "--partitions or --json" if folded and not self.is_watched else "--json"
            how = f"enlarge the window, choose with --groups, or list all with {everything}"
            yield Text(f"{left_out:,} more {self._what(left_out)} not shown ({states}): {how}", style="bold")
        now = self.by_key() if self.before else {}
        gone = [key for key in self.before or () if key not in now]
        if gone:
            more = f" and {len(gone) - _NAMED:,} more" if len(gone) > _NAMED else ""
            yield Text(f"Gone since the reading before: {', '.join(map(_name, gone[:_NAMED]))}{more}", style="bold")
        yield from (Text(visible(note)) for note in self.notes)
        if table.dropped:
            yield Text(f"Too narrow for {', '.join(table.dropped)}: use a wider window or --json", style="dim")
        if folded and self.lines.lines:
            yield Text(
                "A line is a group with the WORST OF its partitions; LOST and LAG are sums, MARGIN the smallest, TIME the longest",
                style="dim",
            )


def screen_of(
    reading: Reading, before: Reading | None, sla_of: SlaOf, sort: Sort, *, cluster: str, folded: bool, is_watched: bool
) -> LagScreen:
    """The screen of a reading. A list of partitions that is not watched has all of them and may scroll."""
    lines = lines_of(reading, before, sla_of, sort, folded=folded)
    return LagScreen(
        cluster=cluster,
        taken_at=reading.taken_at,
        lines=lines,
        notes=notes(reading, lines.rows, seconds="TIME"),
        fits_height=folded or is_watched,
        is_watched=is_watched,
    )


def watch_on_screen(
    read: Callable[[], Reading],
    show: Callable[[Reading, Reading | None], LagScreen],
    console: Console,
    *,
    every_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Redraw a terminal in place with each reading, and with each change of its size, until KeyboardInterrupt; the last table stays.

    A cluster that cannot be read at first is a CollectionError; later the screen says so, and it is asked again the next time.
    """
    shown: LagScreen | None = None
    with suppress(KeyboardInterrupt):
        began = time.monotonic()
        before = read()
        shown = show(before, None)
        # In the terminal's second screen, as top and less use it. Rich draws it again several times a second, in the size of then.
        with Live(get_renderable=lambda: shown or "", console=console, screen=True, refresh_per_second=_REDRAWN_PER_SECOND) as live:
            while True:
                live.refresh()
                sleep(max(0.0, every_seconds - (time.monotonic() - began)))
                began = time.monotonic()
                try:
                    reading = read()
                except CollectionError as problem:
                    shown = replace(shown, problem=str(problem))
                else:
                    shown = replace(show(reading, before), before=shown.by_key())
                    before = reading
    if shown is not None:
        console.print(replace(shown, is_watched=False))


def _name(key: Key) -> str:
    group, topic, partition = key
    return name_text(group) + ("" if topic is None else f":{name_text(topic)}-{partition}")


def _height(texts: Sequence[Text], console: Console, width: int) -> int:
    return sum(len(text.wrap(console, max(1, width))) for text in texts)


def _shortened(texts: Sequence[Text], height: int, console: Console, width: int) -> list[Text]:
    """The first texts, as many as fit into ``height`` lines; if not all do, the last line says that there are more."""
    if _height(texts, console, width) <= height:
        return list(texts)
    more = Text("More notes: --json", style="dim")
    kept = list(texts)
    while kept and _height([*kept, more], console, width) > height:
        kept.pop()
    return [*kept, more] if height > 0 else []
