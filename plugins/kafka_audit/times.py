"""Times as evidence writes them."""

from datetime import datetime, timezone


def parse_time(text: object) -> datetime:
    """An ISO 8601 time, as manifests and run files have it; ValueError when it is none. Without a zone it stays without one."""
    return datetime.fromisoformat(str(text).replace("Z", "+00:00"))  # Python 3.10 does not read the Z


def stamp(when: datetime) -> str:
    """The beginning of an id, like ``20261120T231500Z``: stamps sort by time."""
    return when.astimezone(timezone.utc).strftime("%Y%m%dT%H%M%SZ")
