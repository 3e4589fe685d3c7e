"""Infers from the times between commits whether they are consistent with auto-commit.

It is never proof: a timer in the application looks the same.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

MOST_BEATS = 5
_LEAST_INTERVALS = 8
_LEAST_BEAT_MS = 450
_ON_BEAT = 0.8
_DEFAULT_MS = 5000
_CUSTOMARY_MS = 500


def is_near(off_ms: Column, beat_ms: Column) -> Column:
    """Whether a time that is off by so much is a whole number of beats: by at most 20 ms, or 1 % of the beat if that is more."""
    return off_ms <= F.greatest(F.lit(20), beat_ms * 0.01)


def inference() -> dict[str, Column]:
    """auto_commit, auto_commit_interval_ms, auto_commit_confidence and auto_commit_reason of a group.

    auto_commit is ``consistent``, ``unlikely``, ``excluded`` or ``unknown``. Needs the sums of a group's partitions: commits, timed, beats,
    unchanged, unchanged_without_epoch, single_steps, transactional, with_metadata, intervals, and ``beat_ms``, ``same_beat`` boolean.
    """
    beat, timed = F.col("beat_ms"), F.col("timed")
    near = F.round(beat / _CUSTOMARY_MS) * _CUSTOMARY_MS
    regular = (F.col("beats") >= _ON_BEAT * timed) & F.col("same_beat")
    idle = (F.col("unchanged_without_epoch") >= 0.9 * F.col("intervals")) & (F.col("intervals") > 0)
    share = F.concat(F.round(F.col("beats") * 100 / timed).cast("int").cast("string"), F.lit(" % of "), timed.cast("string"))
    every = F.concat(F.format_number(beat / 1000, 1), F.lit(" s"))
    on_beat = F.concat(share, F.lit(" intervals are "), every, F.lit(" or a few times that"))
    strongest = F.lit("; offsets that do not change are committed too, without a leader epoch, as the Java client's auto-commit does")
    timer = F.concat(
        on_beat,
        F.lit(": consistent with enable.auto.commit=true and an auto.commit.interval.ms of at most that, and with a timer written by hand"),
        F.when(idle, strongest).otherwise(F.lit("")),
    )
    confidence = F.when(idle, F.lit("high")).when(near == _DEFAULT_MS, F.lit("medium")).otherwise(F.lit("low"))
    few = F.lit("too few commits: ")
    in_transactions = F.col("transactional") == F.col("commits")
    pace = F.concat(F.lit("a commit every "), beat.cast("string"), F.lit(" ms"))
    else_ = F.lit(" intervals keep a beat: commits follow the work; auto-commit in a loop slower than its interval looks the same")
    found = F.coalesce(
        _case(F.col("commits") == 0, "unknown", None, "no commit was read"),
        _case(
            in_transactions & (F.col("commits") < _LEAST_INTERVALS),
            "unknown",
            None,
            F.concat(few, F.col("commits"), F.lit(f" of the {_LEAST_INTERVALS} that are needed, all part of transactions")),
        ),
        _case(in_transactions, "excluded", "high", "all commits are part of transactions"),
        _case(
            F.col("with_metadata") >= 0.9 * F.col("commits"),
            "unlikely",
            "medium",
            "the commits carry metadata, as Kafka Streams and applications write it",
        ),
        _case(
            timed < _LEAST_INTERVALS,
            "unknown",
            None,
            F.concat(few, timed.cast("string"), F.lit(f" intervals of the {_LEAST_INTERVALS} that are needed")),
        ),
        _case(
            (beat < _LEAST_BEAT_MS) & (F.col("single_steps") >= 0.8 * F.col("intervals")),
            "unlikely",
            "medium",
            F.concat(pace, F.lit(", one record further each time: commits follow single records")),
        ),
        _case(
            beat < _LEAST_BEAT_MS,
            "unlikely",
            "low",
            F.concat(pace, F.lit(": commits follow the work; only an uncommonly short auto.commit.interval.ms would look the same")),
        ),
        _case(regular & is_near(F.abs(beat - near), beat), "consistent", confidence, timer),
        _case(
            regular,
            "unknown",
            None,
            F.concat(on_beat, F.lit(", which is no customary interval: a timer, or work that always takes as long")),
        ),
        _case(F.lit(True), "unknown", None, F.concat(F.lit("only "), share, else_)),
    )
    return {
        "auto_commit": found["verdict"],
        "auto_commit_interval_ms": F.when(found["verdict"] == "consistent", near.cast("bigint")),
        "auto_commit_confidence": found["confidence"],
        "auto_commit_reason": found["reason"],
    }


def _case(holds: Column, verdict: str, confidence: Column | str | None, reason: Column | str) -> Column:
    fields = {"verdict": verdict, "confidence": confidence, "reason": reason}
    return F.when(holds, F.struct(*[F.lit(value).cast("string").alias(name) for name, value in fields.items()]))
