"""Chooses the failures that the page lists one by one, so that the page of a large cluster still opens; it says how many it leaves out."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafka_audit.report.causes import Cause, by_cause
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Finding
from kafka_audit.report.shares import equal_share

MOST_LISTED = 10_000
"""The largest number of failures that the page lists, over all controls. Where there are more, each control gets an equal share."""


@dataclass(frozen=True, kw_only=True)
class ListedCause:
    """A cause and those of its failures that are listed, the first ones; ``cause`` has all that the report has read."""

    cause: Cause
    findings: tuple[Finding, ...]

    @property
    def left_out(self) -> int:
        """How many failures with this cause are not listed."""
        return len(self.cause.findings) - len(self.findings)


@dataclass(frozen=True, kw_only=True)
class ListedFailures:
    """The causes of a control's failures: ``rows`` are the first, ``further`` those behind them of which at least one failure is listed.

    ``causes``: the number of causes of the failures that were read. ``left_out``: how many of the control's failures are not listed.
    """

    rows: tuple[ListedCause, ...]
    further: tuple[ListedCause, ...]
    causes: int
    left_out: int

    @property
    def listed(self) -> int:
        """The number of failures that are listed."""
        return sum(len(one.findings) for one in (*self.rows, *self.further))

    @property
    def unlisted_causes(self) -> int:
        """How many causes are not listed at all."""
        return self.causes - len(self.rows) - len(self.further)


def listed_failures(report: Report, rows: int, most: int = MOST_LISTED) -> Mapping[str, ListedFailures]:
    """What the page lists of each failing control, by control id; ``rows``: the number of causes that get a row of their own.

    A cause with a row lists at least its first failure. ``most``: how many failures are listed over all controls.
    """
    share = equal_share((len(result.failures) for result in report.failing), most)
    return {result.control_id: _of_control(result, share, rows) for result in report.failing}


def _of_control(result: ControlResult, share: int, rows: int) -> ListedFailures:
    causes = by_cause(result.failures)
    made: list[ListedCause] = []
    left = share
    for number, cause in enumerate(causes):
        count = min(len(cause.findings), max(left, 1 if number < rows else 0))
        left -= count
        made.append(ListedCause(cause=cause, findings=cause.findings[:count]))
    further = tuple(one for one in made[rows:] if one.findings)
    total = sum(len(one.findings) for one in made)
    return ListedFailures(rows=tuple(made[:rows]), further=further, causes=len(causes), left_out=result.counted.failed - total)
