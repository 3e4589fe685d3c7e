"""Infers from the times between commits whether they are consistent with auto-commit.

It is never proof: a timer in the application looks the same.
"""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """How far an interval may be from a whole number of beats: ``least_ms``, or ``share`` of the beat if that is more."""

    least_ms: int
    share: float


TOLERANCE = Tolerance(least_ms=20, share=0.01)
MOST_BEATS = 5
_LEAST_INTERVALS = 8
_LEAST_BEAT_MS = 450
_ON_BEAT = 0.8
_DEFAULT_MS = 5000
_CUSTOMARY_MS = 500


def inference() -> dict[str, Column]:
    """auto_commit, auto_commit_interval_ms, auto_commit_confidence and auto_commit_reason of a group.

    auto_commit is ``consistent``, ``unlikely``, ``excluded`` or ``unknown``. Needs the sums of a group's partitions: commits, timed, beats,
    unchanged, unchanged_without_epoch, single_steps, transactional, with_metadata, intervals, and ``beat_ms``, ``same_beat`` boolean.
    """
    beat, timed = F.col("beat_ms"), F.col("timed")
    near = F.round(beat / _CUSTOMARY_MS) * _CUSTOMARY_MS
    off = F.abs(beat - near) <= F.greatest(F.lit(TOLERANCE.least_ms), beat * TOLERANCE.share)
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
    cases = (
        (F.col("commits") == 0, "unknown", None, F.lit("no commit was read")),
        (
            in_transactions & (F.col("commits") < _LEAST_INTERVALS),
            "unknown",
            None,
            F.concat(few, F.col("commits"), F.lit(f" of the {_LEAST_INTERVALS} that are needed, all part of transactions")),
        ),
        (in_transactions, "excluded", F.lit("high"), F.lit("all commits are part of transactions")),
        (
            F.col("with_metadata") >= 0.9 * F.col("commits"),
            "unlikely",
            F.lit("medium"),
            F.lit("the commits carry metadata, as Kafka Streams and applications write it"),
        ),
        (
            timed < _LEAST_INTERVALS,
            "unknown",
            None,
            F.concat(few, timed.cast("string"), F.lit(f" intervals of the {_LEAST_INTERVALS} that are needed")),
        ),
        (
            (beat < _LEAST_BEAT_MS) & (F.col("single_steps") >= 0.8 * F.col("intervals")),
            "unlikely",
            F.lit("medium"),
            F.concat(pace, F.lit(", one record further each time: commits follow single records")),
        ),
        (
            beat < _LEAST_BEAT_MS,
            "unlikely",
            F.lit("low"),
            F.concat(pace, F.lit(": commits follow the work; only an uncommonly short auto.commit.interval.ms would look the same")),
        ),
        (regular & off, "consistent", confidence, timer),
        (
            regular,
            "unknown",
            None,
            F.concat(on_beat, F.lit(", which is no customary interval: a timer, or work that always takes as long")),
        ),
    )
    verdict = F.lit("unknown")
    sure = F.lit(None).cast("string")
    else_ = F.lit(" intervals keep a beat: commits follow the work; auto-commit in a loop slower than its interval looks the same")
    why = F.concat(F.lit("only "), share, else_)
    for holds, what, how_sure, reason in reversed(cases):
        verdict = F.when(holds, F.lit(what)).otherwise(verdict)
        sure = F.when(holds, how_sure if how_sure is not None else F.lit(None).cast("string")).otherwise(sure)
        why = F.when(holds, reason).otherwise(why)
    return {
        "auto_commit": verdict,
        "auto_commit_interval_ms": F.when(verdict == "consistent", near.cast("bigint")),
        "auto_commit_confidence": sure,
        "auto_commit_reason": why,
    }
