"""How fast an error budget may be used up: pairs of windows, each with the rate at which somebody is told.

The rates and windows are those of the Site Reliability Workbook, chapter 5 ("Multiwindow, Multi-Burn-Rate Alerts"). A rate of 1 uses the
budget up exactly by the end of the SLA's window; the short window shows that it is still being used.
"""

from dataclasses import dataclass

LEAST_KNOWN = 0.9
"""The share of a window, without quiet hours, that must be known: with less its burn rate is not known."""


@dataclass(frozen=True, kw_only=True)
class BurnWindows:
    """A long and a short window in minutes, and the burn rate that both must reach."""

    minutes: int
    short_minutes: int
    threshold: float


BURN_WINDOWS = (
    BurnWindows(minutes=60, short_minutes=5, threshold=14.4),
    BurnWindows(minutes=6 * 60, short_minutes=30, threshold=6.0),
    BurnWindows(minutes=24 * 60, short_minutes=2 * 60, threshold=3.0),
    BurnWindows(minutes=72 * 60, short_minutes=6 * 60, threshold=1.0),
)
"""Fastest first."""

MINUTES = tuple(sorted({length for pair in BURN_WINDOWS for length in (pair.minutes, pair.short_minutes)}))
"""The length of every window, in minutes, shortest first."""
