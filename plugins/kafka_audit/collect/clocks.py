"""How far the clocks of the auditor and of the cluster are apart, and from which difference their times cannot be compared."""

import pyarrow as pa

CLOCKS_APART_MS = 60_000
"""From so many milliseconds between the auditor's clock and the cluster's on, no time of one is compared with a time of the other."""


def clock_skew_ms(quorum: pa.Table) -> int | None:
    """The auditor's clock minus that of the leader of the metadata quorum, which reports its own time (KIP-836); None where it did not."""
    for row in quorum.to_pylist():
        if row["is_leader"] and row["read_at"] is not None and (row["last_caught_up_timestamp_ms"] or -1) >= 0:
            return round(float(row["read_at"].timestamp() * 1000 - row["last_caught_up_timestamp_ms"]))
    return None


def clocks_apart_ms(quorum: pa.Table) -> int | None:
    """The difference that :func:`clock_skew_ms` gives where it is too large to compare times of both clocks; else None."""
    skew = clock_skew_ms(quorum)
    return skew if skew is not None and abs(skew) > CLOCKS_APART_MS else None
