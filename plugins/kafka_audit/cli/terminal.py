"""Whether a command prints to a person at a terminal. Commands that never do so do not load rich."""

from typing import TextIO

from rich.console import Console


def terminal_of(stream: TextIO) -> Console | None:
    """A terminal whose cursor can be moved; None if the stream is a file, a pipe or a dumb terminal."""
    console = Console(file=stream, highlight=False)
    return console if stream.isatty() and not console.is_dumb_terminal else None
