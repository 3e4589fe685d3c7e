"""One item of news of a cluster, and what it is found from."""

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime

from kafka_audit.findings import Severity
from kafka_audit.index.overview import Overview
from kafka_audit.safe_text import grouped

NEW_FAILURES, LOSS, BUDGET_BURN, IS_VOID, STALE, RECOVERED = "new_failures", "loss", "budget_burn", "void", "stale", "recovered"
UNFINISHED = "unfinished"
"""The kinds of news; UNFINISHED: an audit that ended without a result, or did not end in time."""

LINES = 3
"""The largest number of lines of a news item."""


@dataclass(frozen=True, kw_only=True)
class News:
    """One thing to tell, in at most three lines of inert text; ``key`` is the same as long as it is the same thing."""

    kind: str
    severity: Severity
    key: str
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """How a cluster stands at ``now``.

    ``overview``: of the newest sealed audit; None if there is none or, ``unusable`` says why, its index cannot be used. ``waived``:
    the (control_id, resource) of its waived failures. ``audit_at``: when the newest sealed audit began, or the oldest one if none is
    sealed; ``evidence_at``: the time of the newest snapshot; None: there is none. ``unfinished``: what happened to a newer audit that
    is not sealed and should be; ``running``: whether there is a newer audit that is not sealed, be it in time.
    """

    cluster: str
    now: datetime
    overview: Overview | None = None
    unusable: str = ""
    waived: Set[tuple[str, str]] = frozenset()
    audit_at: datetime | None = None
    evidence_at: datetime | None = None
    unfinished: str = ""
    running: bool = False


def key_of(*names: str) -> str:
    """A short key for names of any length."""
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]


def counted(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"
