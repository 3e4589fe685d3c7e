"""One exclusive file lock, so that two processes never work in the same folder at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_audit.errors import ConfigurationError


@contextmanager
def exclusive(path: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock file at path for the length of the block. The kernel releases it when the holder dies.

    With wait=False, raises ConfigurationError if another process holds the lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise ConfigurationError(
                f"Another process is starting or stopping the sandbox in {path.parent}: wait for it, or choose another --dir."
            ) from None
        yield
