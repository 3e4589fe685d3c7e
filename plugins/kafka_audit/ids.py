"""The ids of snapshots and audits, which are also the names of their folders."""

import re

_ID = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{16}")


def is_id(value: str) -> bool:
    """Whether this is the id of a snapshot or an audit, and so the name of one folder."""
    return _ID.fullmatch(value) is not None
