"""Where downloaded jars and the default sandbox live between runs."""

import os
from pathlib import Path


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
