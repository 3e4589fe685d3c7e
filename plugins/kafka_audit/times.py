"""Times as evidence writes them, and the ids of snapshots and audits, which begin with one and are also the names of their folders."""

import re
from datetime import datetime, timezone

_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{16}")
_STAMP = "%Y%m%dT%H%M%SZ"


def is_id(value: str) -> bool:
    """Whether this is the id of a snapshot or an audit, and so the name of one folder."""
    return _ID.fullmatch(value) is not None


def parse_time(text: object) -> datetime:
    """An ISO 8601 time, as manifests and run files have it; ValueError when it is none. Without a zone it stays without one."""
    return datetime.fromisoformat(str(text))


def stamp(when: datetime) -> str:
    """The beginning of an id, like ``20261120T231500Z``: stamps sort by time."""
    return when.astimezone(timezone.utc).strftime(_STAMP)


def time_of_id(one_id: str) -> datetime | None:
    """The time (UTC) with which the id of a snapshot or an audit begins; None if it is no id, or its digits are no time."""
    if not is_id(one_id):
        return None
    try:
        return datetime.strptime(one_id.partition("-")[0], _STAMP).replace(tzinfo=timezone.utc)
    except ValueError:
        return None
