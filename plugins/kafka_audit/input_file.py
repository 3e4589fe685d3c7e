"""Reads a file that somebody wrote for this tool: a regular one, of a size that a person would write."""

import os
import stat
from pathlib import Path

from kafka_audit.errors import ConfigurationError

MOST_BYTES = 1_000_000
"""No policy, control, connection or client file has more bytes."""


def read_input(path: Path, advice: str) -> bytes:
    """All bytes of a file; FileNotFoundError when there is none.

    ConfigurationError when it cannot be read, is a folder, a pipe or a device, or has more than MOST_BYTES; ``advice`` says what to name.
    """
    try:
        # A pipe would be waited for until somebody writes into it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise ConfigurationError(f"{path}: is not a regular file; {advice}")
            raw = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); {advice}") from problem
    except ValueError as problem:  # a NUL in the name
        raise ConfigurationError(f"{str(path)!r}: is no name of a file; {advice}") from problem
    if len(raw) > MOST_BYTES:
        raise ConfigurationError(f"{path}: has more than {MOST_BYTES:,} bytes; {advice}")
    return raw
