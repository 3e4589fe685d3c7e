"""Lag in time: by the time of the first unread record, or by when the log ended there, as earlier samples saw it.

And the time that is left: what retention will take from a group, and when, at present rates.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.lag.positions import starts_young

CAUGHT_UP, BY_RECORD, INTERPOLATED, AT_LEAST = "caught up", "record timestamp", "interpolated", "at least"
BY_RETENTION, BY_PROGRESS = "retention.ms", "measured log start progress"
FORESEEABLE_MS = 2_592_000_000
"""Rates of a few samples tell nothing of what comes in more than 30 days."""
_TOLERANCE_MS = 60_000


def with_lag_time(rows: DataFrame) -> DataFrame:
    """Adds lag_ms, lag_ms_method, lag_ms_is_bound, lag_ms_least and lag_ms_most (kafka_audit.catalogue.rows).

    Needs lag, beyond_end, only_markers_unread, record_lag_ms, and from log_read_ms to passed_ms (spark_jobs.lag.movement). The time of the
    record is better than what the samples tell, unless it contradicts them: then the clock that wrote it was wrong (KIP-32: CreateTime).
    """
    markers = F.coalesce("only_markers_unread", F.lit(False))
    level = (F.col("beyond_end") == 0) & ((F.col("lag") == 0) | markers)
    behind = (F.col("lag") > 0) & ~markers
    now, seen, zero = F.col("log_read_ms"), F.col("seen_unread_ms"), F.lit(0).cast("bigint")
    # In all samples the log end is past the position: how long it has been is not known.
    # Nor is it while one offset was unread that may be the end of a transaction: then nothing was late.
    certain = F.coalesce(F.col("seen_record_ms") == seen, F.lit(False))
    is_bound = F.col("not_past_ms").isNull() | ~certain
    least = F.coalesce(now - F.col("seen_record_ms"), zero)
    estimates = {
        "lag_ms": F.when(is_bound, least).otherwise(now - F.col("passed_ms")),
        "lag_ms_least": least,
        "lag_ms_most": now - F.col("not_past_ms"),
        "lag_ms_is_bound": is_bound,
        "lag_ms_method": F.when(is_bound, AT_LEAST).otherwise(INTERPOLATED),
    }
    none = {**dict.fromkeys(estimates, zero), "lag_ms_is_bound": F.lit(False), "lag_ms_method": F.lit(CAUGHT_UP)}
    measured = behind & seen.isNotNull()
    rows = rows.withColumns({name: F.when(level, none[name]).when(measured, value) for name, value in estimates.items()})
    return _with_record_time(rows, behind)


def _with_record_time(rows: DataFrame, behind: Column) -> DataFrame:
    """Puts the time of the first unread record in place of the estimate, where the two do not contradict each other."""
    record, least, most = F.col("record_lag_ms"), F.col("lag_ms_least"), F.col("lag_ms_most")
    apart = F.greatest(most - least, F.lit(_TOLERANCE_MS).cast("bigint"))
    # A time in the future does not say how old the record is at most: where samples do not either, the lag stays a lower bound.
    unbounded = F.col("lag_ms_is_bound") & (record < 0)
    contradicts = F.coalesce((record < least - apart) | (record > most + apart) | unbounded, F.lit(False))
    chosen = F.coalesce(behind & record.isNotNull() & ~contradicts, F.lit(False))
    by_record = {
        "lag_ms": F.greatest(record, least, F.lit(0).cast("bigint")),
        "lag_ms_method": F.lit(BY_RECORD),
        "lag_ms_is_bound": F.lit(False),
        "lag_ms_most": F.greatest(most, record, least, F.lit(0).cast("bigint")),
    }
    return rows.withColumns({name: F.when(chosen, value).otherwise(F.col(name)) for name, value in by_record.items()})


def with_loss(rows: DataFrame) -> DataFrame:
    """Adds catch_up_ms, time_to_loss_ms, time_to_loss_by and expires_in_ms (kafka_audit.catalogue.rows).

    Needs has_commit, log_start, margin, lag, lag_ms, lag_ms_method, deletes, retention_ms, retention_bytes, headroom_offset, the rates,
    expiry_measured and what :func:`reads_in_time` needs (spark_jobs.lag.movement), and state, group_type, protocol_type, empty_within_ms,
    changed_within_ms, offsets_retention_ms.
    """
    before = rows.columns
    ahead = F.col("consumed_per_s") - F.col("produced_per_s")
    level = F.col("lag_ms_method") == CAUGHT_UP
    catch_up = F.when(level, F.lit(0)).when(ahead > 0, F.ceil(F.col("lag") / ahead * 1000)).cast("bigint")
    rows = rows.withColumn("catch_up_ms", catch_up)
    # Records in flight are no trend.
    loses = ~level & ~reads_in_time()
    rows = rows.withColumns({"by_retention": F.when(loses, _by_retention()), "by_progress": F.when(loses, _by_progress())})
    sooner = F.col("by_progress").isNull() | (F.col("by_retention") <= F.col("by_progress"))
    by = F.when(F.col("by_retention").isNotNull() & sooner, F.lit(BY_RETENTION)).when(F.col("by_progress").isNotNull(), F.lit(BY_PROGRESS))
    soonest = F.least("by_retention", "by_progress")
    facts = {"time_to_loss_ms": soonest, "time_to_loss_by": by, "expires_in_ms": _expires_in()}
    return rows.select(*before, "catch_up_ms", *[fact.alias(name) for name, fact in facts.items()])


def reads_in_time() -> Column:
    """Whether a group has read all that was in the log one commit interval ago, and has not fallen behind since; never NULL.

    Needs lag, and lag_before, read_all_before, written_since and other_lags_most (spark_jobs.lag.movement).
    """
    # One offset may be the end of a transaction.
    little = (F.col("lag_before") <= 1) | (F.col("lag") * 2 <= F.col("written_since")) | (F.col("lag") <= F.col("other_lags_most"))
    return F.coalesce(F.col("read_all_before") & little, F.lit(False))


def _age_is_known() -> Column:
    return F.col("deletes") & (F.col("retention_ms") >= 0) & F.col("lag_ms_method").isin(BY_RECORD, INTERPOLATED)


def _by_retention() -> Column:
    """When the age of the first unread record reaches retention.ms, in milliseconds from this snapshot.

    That age grows by 1 - consumed/produced seconds in a second where records come evenly. Where none come, all that is unread may be of
    one age, and what is not read in time is lost.
    """
    left = F.greatest(F.col("retention_ms") - F.col("lag_ms"), F.lit(0).cast("bigint"))
    produced, consumed = F.col("produced_per_s"), F.col("consumed_per_s")
    at = (
        F.when(consumed == 0, left)
        .when(consumed < produced, _foreseeable(left / (1 - consumed / produced)))
        .when((produced == 0) & (F.col("catch_up_ms") > left), left)
    )
    return F.when(_age_is_known() & (F.col("lag") > 0), at)


def _by_progress() -> Column:
    """When the log start reaches the committed offset, in milliseconds from this snapshot.

    Not where retention.ms deletes, and no size does, and the age of the first unread record is known: nothing younger is deleted. That
    nobody else deletes (DeleteRecords) shows the age of the log's first record, which is then a quarter of retention.ms at least. What
    retention deletes from now on is not more than what is written now, whatever the log start has moved by.
    """
    timed, sized = F.col("retention_ms") >= 0, F.col("retention_bytes") >= 0
    is_young = starts_young()
    by_time_only = _age_is_known() & ~sized & ~is_young
    by_retention = F.col("deletes") & (sized | (timed & ~F.coalesce(is_young, F.lit(False))))
    expires = F.when(by_retention, F.least("expired_per_s", "produced_per_s")).otherwise(F.col("expired_per_s"))
    nearer = expires - F.col("consumed_per_s")
    measured = F.col("expiry_measured") & ~F.coalesce(by_time_only, F.lit(False))
    return F.when(measured & (F.col("margin") >= 0) & (nearer > 0), _foreseeable(F.col("margin") / nearer * 1000))


def _foreseeable(milliseconds: Column) -> Column:
    return F.when(milliseconds <= FORESEEABLE_MS, F.round(milliseconds).cast("bigint"))


def _expires_in() -> Column:
    """KIP-211: a classic group's offsets expire by when it became empty, all others by their last commit."""
    by_state = (F.col("group_type") == "classic") & F.col("protocol_type").isNotNull()
    spent = F.when(by_state, F.col("empty_within_ms")).otherwise(F.col("changed_within_ms"))
    applies = F.col("has_commit") & (F.col("state") == "Empty") & (F.col("offsets_retention_ms") >= 0)
    return F.when(applies, F.greatest(F.col("offsets_retention_ms") - spent, spent * 0))
