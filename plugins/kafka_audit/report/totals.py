"""What a report says of all controls together, and how it lists reasons, times and the program that wrote it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import PlainSerializer, WithJsonSchema
from pydantic.dataclasses import dataclass

from kafka_audit import __version__
from kafka_audit.report.frozen import EXACT
from kafka_audit.report.results import Counts, Reason

REASONS_SHOWN = 500
"""The largest number of reasons for missing results in ``report.json``, those with the most results first."""


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Tool:
    """The program that wrote a report."""

    name: str = "kafka-audit"
    version: str = __version__


@dataclass(frozen=True, kw_only=True, config=EXACT)
class ListedReasons:
    """The first reasons, and the number of all."""

    kinds: int
    listed: tuple[Reason, ...]


def _first(reasons: Sequence[Reason]) -> ListedReasons:
    return ListedReasons(kinds=len(reasons), listed=tuple(reasons[:REASONS_SHOWN]))


Reasons = Annotated[tuple[Reason, ...], PlainSerializer(_first, return_type=ListedReasons)]

Moment = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class FailedAt:
    """The failures at one severity: the controls that have some, the results, and those of them that are waived.

    ``assessed``: how many results of this severity pass or fail; if there are none, nothing is known of it.
    """

    controls: int
    results: int
    waived: int
    assessed: int


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Totals(Counts):
    """The counts of all controls together, and the number of controls."""

    controls: int
    controls_run: int
    controls_failing: int
    failed_by_severity: dict[str, FailedAt]
