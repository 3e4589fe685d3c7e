"""Divides a limited number of places in a file among lists of findings, so that the many failures of one control crowd out no other."""

from collections.abc import Iterable

from kafka_audit.report.control_status import listed
from kafka_audit.report.model import Report


def equal_share(sizes: Iterable[int], places: int) -> int:
    """The largest length to which lists of these sizes can be cut so that all together take at most ``places``, 0 or more.

    If none has to be cut, it is the length of the longest.
    """
    ordered, left = sorted(sizes), max(0, places)
    for number, size in enumerate(ordered):
        cut = len(ordered) - number
        if size * cut > left:
            return left // cut
        left -= size
    return ordered[-1] if ordered else 0


def share_per_status(report: Report, places: int) -> int:
    """How many failures, how many errors and how many unassessed resources of a control a file with that many places can list."""
    return equal_share((len(findings) for result in report.results for _, findings, _ in listed(result)), places)
