"""Shows one reading after another until Ctrl-C."""

import shutil
import time
from collections.abc import Callable
from typing import TextIO

from rich.cells import cell_len, set_cell_size

from kafka_audit.errors import CollectionError
from kafka_audit.lag.reading import Reading

_CLEAR = "\x1b[H\x1b[2J"
Render = Callable[[Reading, Reading | None, int | None], str]
"""The text of a reading, given the one before and the number of lines there is room for."""


def watch(
    read: Callable[[], Reading],
    render: Render,
    *,
    every_seconds: float,
    redraw: bool,
    out: TextIO,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Show a reading every ``every_seconds``, on a cleared screen (``redraw``) or one after another, until KeyboardInterrupt ends it.

    A cluster that cannot be read at first is a CollectionError; later that is said, and it is asked again the next time.
    """
    before: Reading | None = None
    try:
        while True:
            began = time.monotonic()
            try:
                reading = read()
            except CollectionError as problem:
                if before is None:
                    raise
                say(str(problem))
            else:
                size = shutil.get_terminal_size()
                text = render(reading, before, size.lines - 1 if redraw else None)
                if redraw:
                    text = _CLEAR + "\n".join(_cut(line, size.columns) for line in text.split("\n"))
                out.write(f"{text}\n")
                before = reading
            out.flush()
            sleep(max(0.0, every_seconds - (time.monotonic() - began)))
    except KeyboardInterrupt:
        if redraw:
            out.write("\n")


def _cut(line: str, columns: int) -> str:
    """Cut the line to the terminal's width; an ellipsis shows that it was cut."""
    return line if cell_len(line) <= columns else set_cell_size(line, max(0, columns - 1)) + "\N{HORIZONTAL ELLIPSIS}"
