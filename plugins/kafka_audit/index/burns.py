"""Which error budgets are used up too fast, by two windows that end with the audit's evidence (kafka_audit.policy.burn_rates)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.index.overview import LISTED, Burn
from kafka_audit.policy.burn_rates import BURN_WINDOWS, LEAST_KNOWN, MINUTES, BurnWindows
from kafka_audit.report.rows import batches, exists

_COLUMNS = ("group_id", "sla", "target_percent", *(f"{kind}_ms_{minutes}" for minutes in MINUTES for kind in ("counted", "in", "out")))
_LONGEST_SHORT = max(pair.short_minutes for pair in BURN_WINDOWS)
"""Nothing burns without time outside of the SLA in this window: it contains every short one."""


def find_burns(path: Path | None, before: Sequence[Burn]) -> tuple[Burn, ...]:
    """The error budgets that burn too fast, worst first; then those of ``before`` of which it is not known any more; at most LISTED.

    ``path``: the audit's sla_burns.parquet (spark_jobs.lag.burns.sla_burns); None if its evidence is unfit. ``before``: the burns in the
    overview of the audit before. One whose group or SLA is gone is not among the results.
    """
    earlier = {(one.group_id, one.sla): one for one in before}
    if path is None or not exists(path):
        return _listed({}, earlier)
    told = pc.field("group_id").isin(pa.array([one.group_id for one in before], pa.string()))
    found: dict[tuple[str, str], Burn] = {}
    unknown: dict[tuple[str, str], Burn] = {}
    for table in batches(path, _COLUMNS, (pc.field(f"out_ms_{_LONGEST_SHORT}") > 0) | told):
        for row in table.to_pylist():
            key = row["group_id"], row["sla"]
            burning = next((burn for pair in BURN_WINDOWS if (burn := _burn(row, pair)) is not None), None)
            if burning is not None:
                found[key] = burning
            elif key in earlier and not _is_known(row, earlier[key]):
                unknown[key] = earlier[key]
    return _listed(found, unknown)


def _listed(found: Mapping[tuple[str, str], Burn], unknown: Mapping[tuple[str, str], Burn]) -> tuple[Burn, ...]:
    worst = sorted(found.values(), key=lambda one: (-one.threshold, -(one.burn or 0.0), one.group_id, one.sla))
    return tuple([*worst, *(one.model_copy(update={"burn": None}) for one in unknown.values())][:LISTED])


def burn_rate(row: Mapping[str, Any], minutes: int) -> float | None:
    """The burn rate over the newest ``minutes``: the share of the known time that was outside of the SLA, divided by the share allowed.

    None if too little of the window is known, or if the SLA allows nothing.
    """
    counted, inside, outside = (row[f"{kind}_ms_{minutes}"] or 0 for kind in ("counted", "in", "out"))
    known, allowed = inside + outside, 1 - row["target_percent"] / 100
    if counted <= 0 or known < LEAST_KNOWN * counted or allowed <= 0:
        return None
    return float(outside / known / allowed)


def _burn(row: Mapping[str, Any], pair: BurnWindows) -> Burn | None:
    """The burn of one SLA over a pair of windows; None if it is slower in one of them, or not known."""
    rate, short = burn_rate(row, pair.minutes), burn_rate(row, pair.short_minutes)
    if rate is None or short is None or min(rate, short) < pair.threshold:
        return None
    return Burn(
        group_id=row["group_id"],
        sla=row["sla"],
        target_percent=row["target_percent"],
        window_hours=pair.minutes / 60,
        short_window_hours=pair.short_minutes / 60,
        burn=round(rate, 3),
        threshold=pair.threshold,
    )


def _is_known(row: Mapping[str, Any], earlier: Burn) -> bool:
    """Whether both windows in which an SLA burned are known now."""
    return all(burn_rate(row, round(hours * 60)) is not None for hours in (earlier.window_hours, earlier.short_window_hours))
