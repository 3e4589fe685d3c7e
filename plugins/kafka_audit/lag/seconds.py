"""Lag in seconds from one reading, and what bounds it where it is not known exactly."""

from dataclasses import dataclass

from kafka_audit.lag.position import HIDES_ITS_TIME, is_over
from kafka_audit.lag.reading import Reading, Row

EXACT, AT_LEAST, AT_MOST = "", ">=", "<="
_MS = 1000
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds, and whether they are the lag itself, its least or its most (``bound``: empty, >= or <=)."""

    value: float
    bound: str = EXACT

    def __str__(self) -> str:
        """Like ``12.3``, ``>=300`` or ``<=60``."""
        return f"{self.bound}{self.value:.1f}".removesuffix(".0")


class UnreadTimes:
    """What a reading knows of the time of unread records."""

    def __init__(self, reading: Reading) -> None:
        self._first: dict[tuple[str, int, int], Row] = {}
        self._hidden: set[tuple[str, int, int]] = set()
        for row in reading.datasets["first_unread"]:
            if row["error"] is None:
                self._first[row["topic"], row["partition"], row["offset"]] = row
            elif row["error"] in HIDES_ITS_TIME:
                self._hidden.add((row["topic"], row["partition"], row["offset"]))
        self._demanded: dict[Key, list[Row]] = {}
        for row in reading.datasets["sla_offsets"]:
            if row["error"] is None:
                self._demanded.setdefault((row["topic"], row["partition"]), []).append(row)

    def only_markers(self, key: Key, position: int) -> bool | None:
        """Whether nothing but ends of transactions and aborted records follows; None where that is not known."""
        row = self._first.get((*key, position))
        return None if row is None else row["record_offset"] is None

    def lag(self, key: Key, position: int) -> Seconds | None:
        """How old the first unread record is at the time of reading; from the offsets that SLAs demand where it could not be read."""
        row = self._first.get((*key, position))
        if row is not None and row["timestamp_ms"] is not None:
            seconds = row["read_at"].timestamp() - row["timestamp_ms"] / _MS
            # A producer's clock may run ahead: all that is known then is that the record is unread.
            return Seconds(seconds) if seconds >= 0 else Seconds(0, AT_LEAST)
        demanded = self._demanded.get(key, ())
        longer = [one["max_lag_seconds"] for one in demanded if is_over(one, position, None)]
        shorter = [one["max_lag_seconds"] for one in demanded if is_over(one, position, None) is False]
        if longer:
            return Seconds(max(longer), AT_LEAST)
        return Seconds(min(shorter), AT_MOST) if shorter and (*key, position) not in self._hidden else None

    def is_within(self, key: Key, position: int, limit: int) -> bool | None:
        """Whether no unread record is older than the limit in seconds; None where that could not be read.

        Timestamps need not rise with the offsets: a first unread record that is older breaks the limit at any position.
        """
        first = self._first.get((*key, position))
        for row in self._demanded.get(key, ()):
            if row["max_lag_seconds"] == limit:
                over = is_over(row, position, first)
                if over is not False:
                    return None if over is None else False
                return None if (*key, position) in self._hidden or _is_ahead(first) else True
        known = self.lag(key, position)
        return known.value <= limit if known is not None and known.bound == EXACT else None


def _is_ahead(first: Row | None) -> bool:
    """Whether a record's timestamp lies in the future: then brokers name it for any time, whatever is older behind it."""
    return first is not None and first["timestamp_ms"] is not None and first["timestamp_ms"] > first["read_at"].timestamp() * _MS
