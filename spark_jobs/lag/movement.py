"""How groups and logs have moved over the newest samples, by age: 0 is this snapshot, 1 the one before, and so on."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.positions import KEYS, lag_of, offsets_between, position_of
from spark_jobs.lag.samples import by_age, in_sequence, newest, with_age

SAMPLES = 3
"""Two samples lie on a line whatever they are."""
COMMITS = 4
"""How many median distances of commits the window of a status is long."""
LONGEST_MS = 7_200_000
"""How long that window may be, and is where no cadence of commits was seen, unless three samples are further apart."""
_PUNCTUAL = (4, 5)
"""A snapshot taken four fifths of a commit interval ago counts as one interval ago, because snapshots are not taken to the second."""
_LOG_START_MOVES = 2
"""Retention deletes whole segments, so the log start jumps: one jump tells nothing of how often it does."""
_HOUR_MS = 3_600_000


def with_movement(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds what the newest samples tell of group partitions, by committed, has_commit, position and lag of this snapshot.

    The columns of kafka_audit.catalogue.rows from ``snapshots`` to ``idle_ms``, recreated, truncated, expired_per_s, status_window_ms,
    detected_within_ms, produced_per_s and consumed_per_s; and these:

    - expiry_measured boolean: the log start moved often enough
    - of the status window, NULL without a lag: samples int; all_idle, lag_rises boolean; highest_commit, first_lag, other_lags_most bigint;
      rewound bigint, by how many offsets the commit is below the highest
    - of the newest sample that is at least one commit interval ago: lag_before bigint; read_all_before boolean, everything that was in the
      log then has been read; written_since bigint
    - when the log end was read, in epoch milliseconds: log_read_ms now; seen_unread_ms in the oldest sample of the newest run whose end is
      past the position; not_past_ms in the sample before that run; and passed_ms, when it passed the position if it grew evenly
    - samples_by_age array<struct>: see :func:`_samples`
    """
    before = rows.columns
    rows = rows.join(_commits(evidence), on=list(KEYS), how="left").join(_logs(evidence), on=["topic", "partition"], how="left")
    rows = rows.withColumn("samples_by_age", _samples(evidence))
    logs = ("recreated", "truncated", "expired_per_s", "expiry_measured")
    facts: list[str] = []
    for adds in (_commit_facts, _passing_facts, _window_facts):
        rows, found = adds(rows, F.lit(evidence.taken_ms))
        facts += found
    return rows.select(*before, *logs, *facts, "samples_by_age")


@shortened
def _commits(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition and ``commits``, a map of age to the committed offset."""
    rows = with_age(evidence, "committed_offsets", *KEYS, "committed").where(F.col("committed") >= 0)
    return rows.groupBy(*KEYS).agg(by_age(F.col("committed")).alias("commits"))


@shortened
def _logs(evidence: Evidence) -> DataFrame:
    """topic, partition and ``logs``: array by age of log_start, log_end and read_ms (epoch milliseconds), of the present topic id only.

    Also ``same_ages`` array<int>, the ages at which the topic had this id; recreated, truncated, expired_per_s and expiry_measured.
    """
    rows = with_age(evidence, "offsets", "topic", "partition", "log_start", "log_end", "read_at")
    log = F.struct("log_start", "log_end", F.unix_millis("read_at").alias("read_ms"))
    rows = rows.groupBy("topic", "partition").agg(by_age(log).alias("found")).join(_same_topics(evidence), on="topic", how="left")
    rows = rows.withColumn("same_ages", F.coalesce("same_ages", F.array(F.lit(0))))
    every = F.sequence(F.lit(0), F.lit(len(newest(evidence)) - 1))
    of_age = F.transform(every, lambda age: F.when(F.array_contains("same_ages", age), F.col("found")[age]))
    rows = rows.withColumn("logs", of_age).drop("found")
    read = F.filter("logs", lambda one: one["log_start"].isNotNull() & one["read_ms"].isNotNull())
    moved = F.filter(F.zip_with("logs", F.slice("logs", 2, len(newest(evidence))), _started_higher), lambda one: one)
    per_second = _per_second(F.get("logs", F.lit(0)), F.element_at(read, -1), "log_start")
    return rows.withColumns({"truncated": _truncated(), "expired_per_s": per_second, "expiry_measured": F.size(moved) >= _LOG_START_MOVES})


def _started_higher(log: Column, before: Column) -> Column:
    return log["log_start"] > before["log_start"]


def _same_topics(evidence: Evidence) -> DataFrame:
    """topic, same_ages and recreated; of a topic whose id is not known, nothing that is older is taken for the same."""
    now = evidence.table("topics").where(F.col("topic_id").isNotNull()).select("topic", F.col("topic_id").alias("id_now"))
    then = with_age(evidence, "topics", "topic", "topic_id").join(now, on="topic", how="inner")
    same = F.collect_list(F.when(F.col("topic_id") == F.col("id_now"), F.col("age")))
    ids = then.groupBy("topic").agg(same.alias("same_ages"), F.count_if(F.col("topic_id") != F.col("id_now")).alias("others"))
    recreated = F.when(F.col("others") > 0, F.lit(True)).when(F.size("same_ages") > 1, F.lit(False))
    return ids.select("topic", "same_ages", recreated.alias("recreated"))


def _truncated() -> Column:
    """The largest step back of the log end; what was read earlier than the end before it is no step."""
    ends = F.filter(F.reverse("logs"), lambda one: one["log_end"].isNotNull() & one["read_ms"].isNotNull())
    start = F.struct(*[F.lit(value).cast("bigint").alias(name) for name, value in (("end", -1), ("at", 0), ("back", 0))])

    def further(seen: Column, one: Column) -> Column:
        grown, later = one["log_end"] >= seen["end"], one["read_ms"] > seen["at"]
        back = F.greatest(seen["back"], seen["end"] - one["log_end"])
        return F.struct(
            F.when(grown, one["log_end"]).otherwise(seen["end"]).alias("end"),
            F.when(grown, one["read_ms"]).otherwise(seen["at"]).alias("at"),
            F.when(~grown & later, back).otherwise(seen["back"]).alias("back"),
        )

    return F.when(F.size(ends) > 1, F.aggregate(ends, start, further)["back"])


def _per_second(now: Column, then: Column, offset: str) -> Column:
    """By how many offsets a second one has grown between two samples, as double; NULL when it went back or no time has passed."""
    grown, seconds = now[offset] - then[offset], (now["read_ms"] - then["read_ms"]) / 1000
    return F.when((grown >= 0) & (seconds > 0), grown / seconds)


def _samples(evidence: Evidence) -> Column:
    """An array by age of structs: age int; taken_ms, committed, log_start, log_end, read_ms and lag bigint; is_own and moved boolean.

    is_own: a sample of its own, of the present topic id. moved: the commit is another one than in the sample before.
    """
    snapshots = newest(evidence)
    own_ages = F.lit([age for age, counts in enumerate(in_sequence(snapshots)) if counts])
    same_ages, commits, logs = F.coalesce("same_ages", F.array(F.lit(0))), F.col("commits"), F.col("logs")

    def sample(taken_ms: Column, age: Column) -> Column:
        log, committed = F.get(logs, age), commits[age]
        return F.struct(
            age.alias("age"),
            taken_ms.cast("bigint").alias("taken_ms"),
            (F.array_contains(own_ages, age) & F.array_contains(same_ages, age)).alias("is_own"),
            committed.alias("committed"),
            F.coalesce(committed != commits[age + 1], F.lit(False)).alias("moved"),
            log["log_start"].alias("log_start"),
            log["log_end"].alias("log_end"),
            log["read_ms"].alias("read_ms"),
            lag_of(committed, log["log_start"], log["log_end"]).alias("lag"),
        )

    return F.transform(F.lit([one.taken_ms for one in snapshots]), sample)


def _first(samples: Column) -> Column:
    """The newest of some samples, or NULL."""
    return F.get(samples, F.lit(0))


def _last(samples: Column) -> Column:
    """The oldest of some samples, or NULL."""
    return F.element_at(samples, -1)


def _newer_than(sample: Column, limit: Column) -> Column:
    """Whether a sample is newer than another; all are where that is NULL."""
    return F.coalesce(sample["age"] < limit["age"], F.lit(True))


def _commit_facts(rows: DataFrame, now: Column) -> tuple[DataFrame, list[str]]:
    """Whether the commit moves, whether it went back, and since when it stands with unread records after it (``idle``)."""
    committed, by_age_ = F.col("committed"), F.col("samples_by_age")

    def unread_then(sample: Column) -> Column:
        return offsets_between(position_of(committed, sample["log_start"]), sample["log_end"])

    def went_back(sample: Column) -> Column:
        older = F.get(by_age_, sample["age"] + 1)
        return sample["is_own"] & older["is_own"] & (sample["committed"] < older["committed"])

    rows = rows.withColumn("own", F.filter(by_age_, lambda one: one["is_own"]))
    rows = rows.withColumns(
        {
            "shown": F.filter("own", lambda one: one["committed"].isNotNull()),
            "changed": _first(F.filter("own", lambda one: one["committed"] != committed)),
            "above": _first(F.filter("own", lambda one: one["committed"] > committed)),
            "caught_up": _first(F.filter("own", lambda one: unread_then(one) == 0)),
            "rewinds": F.size(F.filter(by_age_, went_back)),
        }
    )
    rows = rows.withColumn("run", F.filter("shown", lambda one: _newer_than(one, F.col("changed"))))
    rows = rows.withColumn("idle", F.filter("run", lambda one: (unread_then(one) > 0) & _newer_than(one, F.col("caught_up"))))
    earlier = F.transform(F.filter("own", lambda one: one["age"] > 0), lambda one: one["committed"])
    in_this_run = F.col("changed").isNull() | (F.col("caught_up")["age"] < F.col("changed")["age"])
    lag = F.col("lag")
    facts = {
        "snapshots": F.size("shown"),
        "history_ms": now - _last(F.col("shown"))["taken_ms"],
        "committed_before": F.array_max(earlier),
        "committed_before_at": F.date_format(F.timestamp_millis(F.col("above")["taken_ms"]), "yyyy-MM-dd HH:mm:ss'Z'"),
        "rewinds": F.col("rewinds"),
        "unchanged_ms": now - _last(F.col("run"))["taken_ms"],
        "changed_within_ms": now - F.col("changed")["taken_ms"],
        "caught_up_within_ms": F.when(in_this_run, now - F.col("caught_up")["taken_ms"]),
        "idle_snapshots": F.when(lag > 0, F.size("idle")).when(lag == 0, F.lit(0)),
        "idle_ms": F.when(lag > 0, now - _last(F.col("idle"))["taken_ms"]).when(lag == 0, F.lit(0).cast("bigint")),
    }
    return rows.withColumns({name: F.when(F.col("has_commit"), fact) for name, fact in facts.items()}), list(facts)


def _passing_facts(rows: DataFrame, _now: Column) -> tuple[DataFrame, list[str]]:
    """Between which samples the log passed the position; in between its end is taken to have grown evenly."""
    position, by_age_ = F.col("position"), F.col("samples_by_age")
    read = F.filter(by_age_, lambda one: one["log_end"].isNotNull() & one["read_ms"].isNotNull() & position.isNotNull())
    rows = rows.withColumn("older", _first(F.filter(read, lambda one: one["log_end"] <= position)))
    past = F.filter(read, lambda one: (one["log_end"] > position) & _newer_than(one, F.col("older")))
    rows = rows.withColumn("newer", _last(past))
    older, newer = F.col("older"), F.col("newer")
    share = (position - older["log_end"]) / (newer["log_end"] - older["log_end"])
    facts = {
        "log_read_ms": _first(by_age_)["read_ms"],
        "seen_unread_ms": newer["read_ms"],
        "not_past_ms": older["read_ms"],
        "passed_ms": older["read_ms"] + F.round(share * (newer["read_ms"] - older["read_ms"])).cast("bigint"),
    }
    return rows.withColumns(facts), list(facts)


def _window_facts(rows: DataFrame, now: Column) -> tuple[DataFrame, list[str]]:
    """The window that a status is judged by: as long as a few commits take, and never fewer than three samples."""
    seen = F.filter("own", lambda one: one["lag"].isNotNull())
    moved = F.filter("own", lambda one: one["moved"])
    rows = rows.withColumn("seen", F.when(F.col("lag").isNotNull(), seen))
    rows = rows.withColumn("between", F.when(F.col("lag").isNotNull(), F.sort_array(_distances(moved))))
    rows = rows.withColumn("cadence", F.get("between", F.floor(F.size("between") / 2).cast("int")))
    target = F.least(F.lit(LONGEST_MS).cast("bigint"), F.col("cadence") * COMMITS)
    rows = rows.withColumns({"target": F.when(F.col("lag").isNotNull(), target), "third": F.get("seen", F.lit(SAMPLES - 1))["age"]})
    part, of = _PUNCTUAL

    def in_window(one: Column) -> Column:
        return F.coalesce(one["age"] <= F.col("third"), F.lit(True)) | (now - one["taken_ms"] <= F.col("target"))

    def is_before(one: Column) -> Column:
        return (one["age"] > 0) & ~F.coalesce((now - one["taken_ms"]) * of <= F.col("cadence") * part, F.lit(False))

    rows = rows.withColumns({"window": F.filter("seen", in_window), "before": _first(F.filter("seen", is_before))})
    rows = rows.withColumns({"first": _last(F.col("window")), "widest": F.array_max(_distances(F.col("window")))})
    window, first, current, committed = F.col("window"), F.col("first"), _first(F.col("samples_by_age")), F.col("committed")
    earlier = first["age"] > 0
    idle_ages = F.transform("idle", lambda one: one["age"])
    others = F.transform(F.filter(window, lambda one: one["age"] > 0), lambda one: one["lag"])
    highest = F.array_max(F.transform(window, lambda one: one["committed"]))
    facts = {
        "samples": F.size(window),
        "all_idle": (F.size(window) > 0) & F.forall(window, lambda one: F.array_contains(idle_ages, one["age"])),
        "highest_commit": highest,
        "rewound": offsets_between(committed, highest),
        "first_lag": F.when(earlier, first["lag"]),
        "other_lags_most": F.array_max(others),
        "lag_rises": F.when(earlier, _rises(window, now)),
        "lag_before": F.col("before")["lag"],
        "read_all_before": committed >= F.col("before")["log_end"],
        "written_since": offsets_between(F.col("before")["log_end"], F.col("log_end")),
        "produced_per_s": F.when(earlier, _per_second(current, first, "log_end")),
        "consumed_per_s": F.when(earlier, _per_second(current, first, "committed")),
        "status_window_ms": now - first["taken_ms"],
        "detected_within_ms": F.greatest(F.col("target"), F.col("widest") * SAMPLES) + F.col("widest"),
    }
    return rows.withColumns(facts), list(facts)


def _distances(samples: Column) -> Column:
    """How long before each sample the next older one was taken: array<bigint> of milliseconds, newest first."""
    times = F.transform(samples, lambda one: one["taken_ms"])
    return F.array_compact(F.zip_with(times, F.slice(times, 2, F.size(times)), lambda newer, older: newer - older))


def _rises(samples: Column, now: Column) -> Column:
    """Whether the least-squares line through the lags of some samples rises."""

    def hours(one: Column) -> Column:
        return (one["taken_ms"] - now) / _HOUR_MS

    def summed(value: Column) -> Column:
        return F.aggregate(value, F.lit(0.0), lambda total, one: total + one)

    xy, x = F.transform(samples, lambda one: hours(one) * one["lag"]), F.transform(samples, hours)
    y = F.transform(samples, lambda one: one["lag"].cast("double"))
    return F.size(samples) * summed(xy) > summed(x) * summed(y)
