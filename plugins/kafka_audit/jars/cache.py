"""Where downloaded jars and the default sandbox live between runs, and the lock on such a folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka_audit.errors import ConfigurationError


def cache_directory() -> Path:
    """Return the cache folder: $KAFKA_AUDIT_CACHE, else kafka-audit under $XDG_CACHE_HOME or ~/.cache.

    The folder may not exist yet. The path does not depend on the working directory.
    """
    own = os.environ.get("KAFKA_AUDIT_CACHE")
    if own:
        return Path(own).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore a relative value.
    base = Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache"
    return base / "kafka-audit"


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
