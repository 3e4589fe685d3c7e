"""Where groups stand in the samples: one row for each group partition and sample.

Spark's only arithmetic of offsets that were read at one time. ``movement`` compares those of different times by the same functions.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.lag.position import HIDES_ITS_TIME
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.tables import Tables
from spark_jobs.lag.samples import dataset

KEYS = ("group_id", "topic", "partition")
IN_FUTURE = "its timestamp lies in the future"
"""Brokers name such a record for any time, whatever is older behind it: it tells neither its own age nor that of the others."""
_PLACE = ["snapshot_id", "topic", "partition"]


def offsets_between(start: Column, end: Column) -> Column:
    """How many offsets lie from ``start`` up to ``end``, as bigint; 0 where ``end`` is lower, NULL where one of them is."""
    distance = end - start
    return F.when(distance < 0, F.lit(0).cast("bigint")).otherwise(distance)


def position_of(committed: Column, log_start: Column) -> Column:
    """The offset at which a group reads on: its commit, or the log start where that is higher; NULL where one of them is."""
    return F.when(committed.isNotNull() & log_start.isNotNull(), F.greatest(committed, log_start))


def lag_of(committed: Column, log_start: Column, log_end: Column) -> Column:
    """Offsets that are there and not read yet; 0 for a commit beyond the log end, NULL where one of the three is not known."""
    return offsets_between(position_of(committed, log_start), log_end)


def lost() -> Column:
    """Offsets from ``committed`` up to ``log_start``: what was deleted unread."""
    return offsets_between(F.col("committed"), F.col("log_start"))


def not_tiered(until: Column) -> Column:
    """Offsets below ``until`` that are in the log and not in the remote store; needs latest_tiered, -1 for none, and log_start."""
    first = F.when(F.col("latest_tiered").isNotNull(), position_of(F.col("latest_tiered") + 1, F.col("log_start")))
    return offsets_between(first, until)


def starts_young() -> Column:
    """Whether the first record of the log is younger than a quarter of retention.ms; NULL where headroom_offset or log_start is."""
    return F.col("headroom_offset") <= F.col("log_start")


def held_back() -> Column:
    """Offsets from ``last_stable`` up to ``log_end``: what open transactions hold back."""
    return offsets_between(F.col("last_stable"), F.col("log_end"))


def unread() -> Column:
    """Records unread, of columns committed, log_start, log_end and only_markers: the lag, but 0 before ends of transactions and aborted
    records.

    NULL where an offset is not known, and for a commit beyond the log end, which is no position in this log.
    """
    lag = lag_of(F.col("committed"), F.col("log_start"), F.col("log_end"))
    beyond_end = offsets_between(F.col("log_end"), F.col("committed"))
    return F.when((beyond_end == 0) & lag.isNotNull(), F.when(F.col("only_markers"), F.lit(0)).otherwise(lag))


def held_unread() -> Column:
    """Of the unread records those that open transactions hold back from read_committed consumers (KIP-98).

    Needs last_stable and the columns of :func:`unread`. NULL where the unread records are not known, 0 where the last stable offset is not.
    """
    position = position_of(F.col("committed"), F.col("log_start"))
    held = F.when(F.col("last_stable").isNotNull(), offsets_between(F.greatest(position, "last_stable"), F.col("log_end")))
    zero = F.lit(0).cast("bigint")
    return F.when(unread() > 0, F.coalesce(held, zero)).when(unread() == 0, zero)


def waits() -> Column:
    """Whether open transactions hold back all that is unread, so that a read_committed consumer has nothing to read; never NULL."""
    return F.coalesce((held_unread() > 0) & (held_unread() == unread()), F.lit(False))


def may_be_marker(lag: Column, only_markers: Column) -> Column:
    """Whether all that is unread is one offset of which it is not known whether it is the end of a transaction.

    The client's release does not tell: since KIP-1094 (4.0) it can commit the offset behind the marker, and is not made to.
    """
    return (lag == 1) & only_markers.isNull()


def positions(tables: Tables, samples: Sequence[Snapshot], *, assigned: bool = False) -> DataFrame:
    """One row for each sample and partition of which a group was asked for its commit; with ``assigned``, also for those of its members.

    - snapshot_id, group_id, topic, partition; group_type, state string
    - asked (the group's commit was answered), in_assignment, log_asked boolean, true or NULL; commit_error, offsets_error string
    - committed, log_start, log_end, last_stable bigint
    - NULL without a commit and where an offset is not known: position, lag, lost, beyond_end, margin (committed -
      log_start), unread (:func:`unread`), held (:func:`held_unread`) bigint; at_last_stable boolean
    - waits boolean (:func:`waits`)
    - only_markers boolean: nothing but ends of transactions and aborted records follows the commit; NULL without lag, or when neither the
      first unread record nor the last batch tells
    - abandoned boolean: the group is Stable, all of its members told what they have assigned and subscribe, and that is not this topic;
      NULL where no member told that it reads the topic, one did not tell both or none was described, and something is unread or lost
    - of the first unread record: record_offset, record_ms (its timestamp), record_lag_ms (its age when it was read) bigint; record_error;
      hidden_record string, the error that hides its time, or ``IN_FUTURE``; has_hole boolean, the record lies above the position
    - first_is_record boolean, never NULL: the first unread record was read, or the last batch holds records and begins at or below the
      position; false where nothing tells whether the offset at the position is one
    - limits array<struct<max_lag_seconds:int,timestamp_ms:bigint,offset:bigint>>: what brokers answered for SLAs in seconds
    """
    rows = _places(tables, samples, assigned=assigned).join(_groups(tables, samples), on=["snapshot_id", "group_id"], how="left")
    rows = rows.join(_logs(tables, samples), on=_PLACE, how="left").withColumns(_figures())
    rows = rows.join(_records(tables, samples), on=[*_PLACE, "position"], how="left")
    rows = rows.join(_last_batches(tables, samples), on=_PLACE, how="left").join(_limits(tables, samples), on=_PLACE, how="left")
    rows = rows.withColumns(
        {
            "only_markers": _only_markers(),
            "hidden_record": F.when(F.col("record_lag_ms") < 0, F.lit(IN_FUTURE)).when(
                F.col("record_error").isin(*HIDES_ITS_TIME), F.col("record_error")
            ),
            "has_hole": F.coalesce(F.col("record_offset") > F.col("position"), F.lit(False)),
            "first_is_record": F.col("record_offset").isNotNull() | F.coalesce(_in_last_batch() & ~F.col("is_control"), F.lit(False)),
        }
    )
    rows = rows.withColumns({"unread": unread(), "held": held_unread(), "waits": waits()}).withColumn("abandoned", _abandoned())
    return rows.drop("read_topics", "all_told", "record_sought", "base_offset", "last_offset", "is_control")


def _abandoned() -> Column:
    none = F.array().cast("array<string>")
    is_read = F.array_contains(F.coalesce("read_topics", none), F.col("topic"))
    not_seen = F.coalesce((F.col("state") == "Stable") & ~is_read, F.lit(False))
    left = not_seen & (F.size(F.coalesce("read_topics", none)) > 0)
    return F.when(not_seen & ~F.coalesce("all_told", F.lit(False)), F.when(~lost_or_unread(), F.lit(False))).otherwise(left)


def lost_or_unread() -> Column:
    """Whether it makes a difference that a group reads a topic no longer: none where the topic was read to its end; never NULL.

    Where the log was not read, it may. A commit beyond the log end is another fault, of which the group is not cleared by that.
    """
    return F.coalesce((F.col("lost") > 0) | (F.col("unread") > 0), F.col("lag").isNull() & F.col("committed").isNotNull())


def is_over(limit: Column) -> Column:
    """Whether a record is unread that is older than a limit: an element of ``limits``.

    Offsets below that of the limit are older. Times may be out of order: the first unread record may be older than the limit although its
    offset is higher. Between the position and the first record that is still there may lie what compaction took, or the ends of
    transactions. NULL where a single offset is older, and nothing tells that it is a record and not the end of a transaction.
    """
    older = limit["offset"] - F.coalesce("record_offset", "position")
    by_offset = F.when((older != 1) | F.col("first_is_record"), older > 0)
    return F.when(F.col("record_ms") < limit["timestamp_ms"], F.lit(True)).otherwise(by_offset)


def seconds_broken_and_kept() -> tuple[Column, Column]:
    """The largest limit in seconds that is proven broken, and the least that is proven kept, both int; NULL where none is."""
    over, kept = F.filter("limits", is_over), F.filter("limits", lambda limit: ~is_over(limit))
    waits = (F.col("lag") > 0) & ~F.coalesce("only_markers", F.col("lag") == 1)
    tells = (F.col("beyond_end") == 0) & F.col("hidden_record").isNull()
    return (
        F.when(waits, F.array_max(F.transform(over, lambda limit: limit["max_lag_seconds"]))),
        F.when(tells, F.array_min(F.transform(kept, lambda limit: limit["max_lag_seconds"]))),
    )


def _places(tables: Tables, samples: Sequence[Snapshot], *, assigned: bool) -> DataFrame:
    commits = dataset(tables, samples, "committed_offsets", "group_id string, topic string, partition int, committed bigint, error string")
    rows = commits.select(
        "snapshot_id",
        *KEYS,
        F.when(F.col("committed") >= 0, F.col("committed")).alias("committed"),
        F.col("error").alias("commit_error"),
        F.lit(True).alias("asked"),
    )
    if not assigned:
        return rows.withColumn("in_assignment", F.lit(None).cast("boolean"))
    members = dataset(tables, samples, "members", "group_id string, assignment array<struct<topic:string,partition:int>>")
    places = members.select("snapshot_id", "group_id", F.inline("assignment")).distinct().withColumn("in_assignment", F.lit(True))
    return rows.join(places, on=["snapshot_id", *KEYS], how="full")


def _groups(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """snapshot_id, group_id, group_type, state, read_topics array<string> and all_told boolean.

    read_topics: what members have assigned or say that they subscribe. all_told: every member told both. Both are NULL where no member
    was described.
    """
    members = dataset(
        tables, samples, "members", "group_id string, assignment array<struct<topic:string,partition:int>>, subscribed_topics array<string>"
    )
    none = F.array().cast("array<string>")
    told = F.concat(F.coalesce("assignment.topic", none), F.coalesce("subscribed_topics", none))
    read = members.groupBy("snapshot_id", "group_id").agg(
        (F.count_if(F.col("assignment").isNull() | F.col("subscribed_topics").isNull()) == 0).alias("all_told"),
        F.array_distinct(F.flatten(F.collect_list(told))).alias("read_topics"),
    )
    groups = dataset(tables, samples, "groups", "group_id string, state string, group_type string")
    return groups.join(read, on=["snapshot_id", "group_id"], how="left")


def _logs(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    columns = "topic string, partition int, log_start bigint, log_end bigint, last_stable bigint, error string"
    return dataset(tables, samples, "offsets", columns).withColumnRenamed("error", "offsets_error").withColumn("log_asked", F.lit(True))


def _figures() -> dict[str, Column]:
    committed, start, end = F.col("committed"), F.col("log_start"), F.col("log_end")
    lag = lag_of(committed, start, end)
    return {
        "position": F.when(lag.isNotNull(), position_of(committed, start)),
        "lag": lag,
        "lost": offsets_between(committed, start),
        "beyond_end": offsets_between(end, committed),
        "margin": committed - start,
        "at_last_stable": committed == F.col("last_stable"),
    }


def _reaches_the_end() -> Column:
    return F.col("last_offset") >= F.col("log_end") - 1


def _in_last_batch() -> Column:
    """Whether all that is unread lies in the last batch; NULL where that batch was not read."""
    return _reaches_the_end() & (F.col("base_offset") <= F.col("position"))


def _only_markers() -> Column:
    by_last_batch = F.when(_reaches_the_end(), F.col("is_control") & (F.col("base_offset") <= F.col("position")))
    return F.when(F.col("lag") > 0, F.when(F.col("record_sought"), F.col("record_offset").isNull()).otherwise(by_last_batch))


def _records(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """By snapshot_id, topic, partition and position, what was found there; ``record_sought``: the log was read from there on."""
    columns = "topic string, partition int, offset bigint, record_offset bigint, timestamp_ms bigint, error string, read_at timestamp"
    found = dataset(tables, samples, "first_unread", columns).groupBy(*_PLACE, F.col("offset").alias("position"))
    stamped = F.when(F.col("timestamp_ms") >= 0, F.col("timestamp_ms"))  # -1 in a record that has none
    rows = found.agg(
        F.max("record_offset").alias("record_offset"),
        F.max(stamped).alias("record_ms"),
        F.max(F.unix_millis("read_at") - stamped).alias("record_lag_ms"),
        F.max("error").alias("record_error"),
    )
    return rows.withColumn("record_sought", F.col("record_error").isNull())


def _last_batches(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    columns = "topic string, partition int, base_offset bigint, last_offset bigint, is_control boolean, error string"
    return dataset(tables, samples, "last_batches", columns).where("error is null").drop("error")


def _limits(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    asked = "topic string, partition int, max_lag_seconds int, timestamp_ms bigint, offset bigint, error string"
    limits = dataset(tables, samples, "sla_offsets", asked).where("error is null and offset is not null")
    limit = F.struct("max_lag_seconds", "timestamp_ms", "offset")
    return limits.groupBy(*_PLACE).agg(F.collect_list(limit).alias("limits"))
