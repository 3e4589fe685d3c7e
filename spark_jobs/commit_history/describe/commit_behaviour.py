"""Decoded commits -> one row for each group and partition: intervals, rewinds, jumps, gaps, and why its offset was removed."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.commit_history.describe.cadence import MOST_BEATS, is_near

KEYS = ("group_id", "topic", "partition")
_EXPIRY_CHECK_MS = 600_000  # offsets.retention.check.interval.ms, by default: an offset expires up to this much late
_TOGETHER_S = 2  # a topic's deletion removes its offsets of all groups within milliseconds
_MANY_STEPS = 10


def commit_behaviour(
    commits: DataFrame,
    emptied: DataFrame,
    retention_ms: int | None,
    earlier: DataFrame | None = None,
    deleted_groups: DataFrame | None = None,
) -> DataFrame:
    """One row for each KEYS of ``commits`` (commits.SCHEMA) and of ``earlier``.

    topic_id string, committed and last_commit_offset bigint (its place in the offsets topic), last_commit and expire_time timestamp (NULL
    where it brought none) of the newest commit; commits, intervals (between two commits in a row), beats, unchanged,
    unchanged_without_epoch, single_steps, rewinds, jumps, recreations, transactional, with_metadata bigint; first_commit, last_progress,
    last_rewind, longest_gap_from timestamp; interval_low_ms, interval_beat_ms, interval_ms, interval_high_ms bigint (percentiles 5, 25,
    50, 95); timed, the intervals that can be a beat; largest_rewind, rewound_from (the largest offset of the current topic from which a
    commit went back), unclear_from (the same, of commits that may be of an earlier topic of that name), median_step, largest_step,
    longest_gap_ms bigint; removed_at timestamp, removed string (expired, deleted, topic_deleted, unknown), removed_reason string; earlier,
    a struct of what ``earlier`` holds.

    ``emptied``: group_id, empty_since timestamp, of groups that are known to have lost their last member. ``deleted_groups``: group_id,
    deleted_at timestamp, when groups' own metadata was removed. ``retention_ms``: offsets.retention.minutes, None when not known.
    ``earlier``: the newest commit before these, from which the first interval and step are computed; it is not counted itself.
    """
    rows = commits.withColumn("counts", F.lit(True))
    if earlier is not None:
        rows = rows.unionByName(earlier.withColumn("counts", F.lit(False)))
    steps = _steps(rows)
    figures = steps.groupBy(*KEYS).agg(*[value.alias(name) for name, value in _figures().items()])
    typical = F.col("intervals_at")[list(_PERCENTILES).index("interval_ms")].alias("interval_ms")
    known = ("interval_beat_ms", typical, "median_step", "recreated_at", "unclear_at")
    beats = steps.join(figures.select(*KEYS, *known), on=list(KEYS), how="inner")
    rhythm = beats.groupBy(*KEYS).agg(*[value.alias(name) for name, value in _rhythm().items()])
    removed = _removed(steps, emptied, retention_ms, deleted_groups)
    rows = figures.join(rhythm, on=list(KEYS), how="left").join(removed, on=list(KEYS), how="left")
    return rows.withColumns(
        {
            "longest_gap_ms": F.col("gap.interval"),
            "longest_gap_from": F.col("gap.before.commit_time"),
            **{name: F.col("intervals_at")[at] for at, name in enumerate(_PERCENTILES)},
        }
    ).drop("gap", "intervals_at", "recreated_at", "unclear_at")


_STOOD = ("log_offset", "commit_time", "committed", "topic_id", "expire_time")
_PERCENTILES = {"interval_low_ms": 0.05, "interval_ms": 0.5, "interval_high_ms": 0.95}


def _steps(commits: DataFrame) -> DataFrame:
    """Adds ``before``, the last commit; ``follows``, no tombstone between them; ``interval`` ms, ``step``, ``rewind``, ``recreated``,
    ``unclear``.

    A tombstone ends intervals and steps. Rewinds are found across it, because the group may have started again. A recreated topic has
    another topic id: the first commit on it is neither a step nor a rewind. Transactional commits, and values before
    version 4, have no topic id. Without a tombstone between two of them both are of the same topic, because its deletion writes one.
    Across a tombstone, which the deletion of the topic, an expiry or an administrator may have written, that is not known: ``unclear``.
    Records are in the order of their log offsets.
    """
    order = Window.partitionBy(*KEYS).orderBy("log_offset")
    commit = F.when(~F.col("tombstone"), F.struct("committed", "commit_time", "expire_time", "topic_id"))
    last = F.last(commit, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    follows = ~F.lag("tombstone", 1, True).over(order)
    rows = commits.withColumns({"before": last, "follows": follows})
    same_topic = F.coalesce(F.col("before.topic_id") == F.col("topic_id"), F.when(F.col("follows"), F.lit(True)))
    elapsed = F.unix_millis("commit_time") - F.unix_millis("before.commit_time")
    step = F.col("committed") - F.col("before.committed")
    return rows.withColumns(
        {
            "recreated": ~same_topic,
            "unclear": same_topic.isNull() & F.col("before").isNotNull() & ~F.col("tombstone"),
            # The next commit may be from another coordinator, whose clock is behind.
            "interval": F.when(F.col("follows") & same_topic & (elapsed >= 0), elapsed),
            "step": F.when(F.col("follows") & same_topic, step),
            "rewind": F.when(same_topic & (step < 0), -step),
        }
    )


def _figures() -> dict[str, Column]:
    commit = ~F.col("tombstone") & F.col("counts")
    went_back = F.col("rewind").isNotNull()
    return {
        "topic_id": F.max_by("topic_id", F.when(F.col("topic_id").isNotNull(), F.col("log_offset"))),
        "committed": F.max_by("committed", F.when(~F.col("tombstone"), F.col("log_offset"))),
        "expire_time": F.max_by("expire_time", F.when(~F.col("tombstone"), F.col("log_offset"))),
        "last_commit_offset": F.max(F.when(~F.col("tombstone"), F.col("log_offset"))),
        "earlier": F.max_by(F.struct(*_STOOD), F.when(~F.col("counts"), F.col("log_offset"))),
        "commits": F.count_if(commit),
        "first_commit": F.min(F.when(commit, F.col("commit_time"))),
        "last_commit": F.max("commit_time"),
        "last_progress": F.max(F.when(F.col("step") > 0, F.col("commit_time"))),
        "intervals": F.count("interval"),
        "intervals_at": F.percentile_approx("interval", list(_PERCENTILES.values()), 1000),
        "interval_beat_ms": F.percentile_approx("interval", 0.25, 1000),
        "unchanged": F.count_if(F.col("step") == 0),
        "unchanged_without_epoch": F.count_if((F.col("step") == 0) & (F.col("leader_epoch") == -1)),
        "single_steps": F.count_if(F.col("step") == 1),
        "rewinds": F.count_if(went_back),
        "largest_rewind": F.max("rewind"),
        "last_rewind": F.max_by("commit_time", F.when(went_back, F.col("log_offset"))),
        "median_step": F.percentile_approx(F.when(F.col("step") > 0, F.col("step")), 0.5, 1000),
        "largest_step": F.max(F.when(F.col("step") > 0, F.col("step"))),
        "recreations": F.count_if("recreated"),
        "recreated_at": F.max(F.when(F.col("recreated"), F.col("log_offset"))),
        "unclear_at": F.max(F.when(F.col("unclear"), F.col("log_offset"))),
        # Of the commits that these brokers write, only transactional ones come without the topic's id.
        "transactional": F.count_if(commit & (F.col("version") >= 4) & F.col("topic_id").isNull()),
        "with_metadata": F.count_if(commit & (F.col("metadata") != "")),
        "gap": F.max(F.when(F.col("interval").isNotNull(), F.struct("interval", "before"))),
    }


def _rhythm() -> dict[str, Column]:
    """Figures that need those of _figures: intervals on the beat, unusually large steps, and rewinds since the topic was recreated."""
    beat = F.greatest("interval_beat_ms", F.lit(1))
    count = F.greatest(F.round(F.col("interval") / beat), F.lit(1))
    # A client that does not commit unchanged offsets skips some of its beats.
    off = F.abs(F.col("interval") - count * beat)
    # A group that was stopped catches up with one large step, which is no jump.
    at_once = F.col("interval") <= 3 * F.greatest("interval_ms", F.lit(1))
    # Offsets of the topic before it was recreated do not count.
    went_back = (F.col("committed") < F.col("before.committed")) & (F.col("log_offset") > F.coalesce("recreated_at", F.lit(-1)))
    unclear = F.col("log_offset") <= F.coalesce("unclear_at", F.lit(-1))
    return {
        "timed": F.count_if(count <= MOST_BEATS),
        "beats": F.count_if((count <= MOST_BEATS) & is_near(off, beat)),
        "rewound_from": F.max(F.when(went_back & ~unclear, F.col("before.committed"))),
        "unclear_from": F.max(F.when(went_back & unclear, F.col("before.committed"))),
        "jumps": F.count_if(at_once & (F.col("step") > _MANY_STEPS * F.col("median_step"))),
    }


def _removed(steps: DataFrame, emptied: DataFrame, retention_ms: int | None, deleted_groups: DataFrame | None) -> DataFrame:
    """KEYS, removed_at, removed, removed_reason of the partitions whose newest record is a tombstone."""
    before = F.when(F.col("follows"), F.col("before")).alias("before")
    newest = steps.groupBy(*KEYS).agg(F.max_by(F.struct("tombstone", "append_time", before), "log_offset").alias("last"))
    gone = newest.where("last.tombstone").select(*KEYS, F.col("last.append_time").alias("removed_at"), "last.before")
    gone = _with_deletion_of_group(gone, deleted_groups).join(emptied, on="group_id", how="left")
    # Whether a group that became empty later had members at that time is not known.
    gone = gone.withColumn("empty_since", F.when(F.col("empty_since") <= F.col("removed_at"), F.col("empty_since")))
    together = Window.partitionBy("topic").orderBy(F.col("removed_at").cast("long")).rangeBetween(-_TOGETHER_S, _TOGETHER_S)
    of_topic = F.collect_set(F.when(~F.col("group_deleted"), F.col("group_id")))
    gone = gone.withColumn("groups_at_once", F.size(of_topic.over(together)))
    removed_ms, retention = F.unix_millis("removed_at"), F.lit(retention_ms).cast("bigint")
    idle_since = F.unix_millis(F.greatest("before.commit_time", "empty_since"))
    own = F.col("before.expire_time").isNotNull()
    due = F.when(own, F.unix_millis(F.greatest("before.expire_time", "empty_since"))).otherwise(idle_since + retention)
    late = removed_ms - due
    after = F.concat(F.format_number((removed_ms - idle_since) / 3_600_000, 1), F.lit(" h after the last commit or member, "))
    longer = F.when(own, "past the expiry time in the commit itself").otherwise("longer than offsets.retention.minutes")
    sooner = F.when(own, "before the expiry time in the commit itself").otherwise("before offsets.retention.minutes")
    at_once = F.concat(F.col("groups_at_once"), F.lit(" groups lost their offsets on the topic at once, before they could expire"))
    no_members = "the group is not known to have been without members: its deletion or the topic's looks the same"
    cases = (
        (retention.isNull() & ~own, "unknown", "offsets.retention.minutes could not be read"),
        (F.col("before.commit_time").isNull(), "unknown", "the commit before was not read, so its age is not known"),
        # Kafka does not expire offsets of topics that a classic group with members subscribes to, however old they are.
        ((late >= 0) & F.col("empty_since").isNull(), "unknown", f"old enough to expire, but {no_members}"),
        (late >= _EXPIRY_CHECK_MS, "expired", F.concat(after, longer)),
        (late >= 0, "unknown", "between the time from which it expires and the next check for expiry: both can be"),
        (
            ~own & (removed_ms - F.unix_millis("empty_since") >= retention),  # an administrator committed without members
            "unknown",
            "young by its last commit, but the group had lost its last member long before, from when its offsets expire: both can be",
        ),
        (F.col("group_deleted"), "deleted", "the group itself was deleted at the same time"),
        (F.col("groups_at_once") > 1, "topic_deleted", at_once),
        (F.lit(True), "deleted", F.concat(after, sooner, F.lit(": the offsets were deleted, or the topic"))),
    )
    found = F.coalesce(*[F.when(holds, F.struct(F.lit(what).alias("removed"), F.lit(why).alias("why"))) for holds, what, why in cases])
    return gone.select(*KEYS, "removed_at", found["removed"].alias("removed"), found["why"].alias("removed_reason"))


def _with_deletion_of_group(gone: DataFrame, deleted_groups: DataFrame | None) -> DataFrame:
    """Adds ``group_deleted``: the group's own metadata was removed together with the offset, as also when its last offset expires."""
    if deleted_groups is None:
        return gone.withColumn("group_deleted", F.lit(False))
    times = deleted_groups.groupBy("group_id").agg(F.collect_set(F.unix_millis("deleted_at")).alias("deletions"))
    near = F.exists("deletions", lambda at: F.abs(at - F.unix_millis("removed_at")) <= _TOGETHER_S * 1000)
    return gone.join(times, on="group_id", how="left").withColumn("group_deleted", F.coalesce(near, F.lit(False))).drop("deletions")
