"""How groups and logs have moved over the newest samples, by age: 0 is this snapshot, 1 the one before, and so on."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.burrow import burrow
from spark_jobs.lag.in_steps import bound, in_steps
from spark_jobs.lag.logs import logs_by_age, per_second
from spark_jobs.lag.positions import KEYS, lag_of, offsets_between, position_of
from spark_jobs.lag.samples import by_age, distances, is_newer, newest, newest_of, oldest_of, with_age

SAMPLES = 3
"""Two samples lie on a line whatever they are."""
COMMITS = 4
"""How many median distances of commits the window of a status is long."""
LONGEST_MS = 7_200_000
"""How long that window may be, and is where no cadence of commits was seen, unless three samples are further apart."""
_EARLY, _LATE, _WHOLE = 4, 6, 5
"""From 4/5 of a commit interval on a sample is one interval old; one that shows the present commit from 6/5 on, for commits may be late."""
_HOUR_MS = 3_600_000


def with_movement(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds what the newest samples tell of group partitions.

    Needs committed, has_commit, position, lag, lost, record_offset, has_hole, first_is_record and waits of this snapshot, and compacted.

    The columns of kafka_audit.catalogue.rows from ``snapshots`` to ``idle_most_ms``, recreated, truncated, expired_per_s, status_window_ms,
    detected_within_ms, produced_per_s, consumed_per_s and burrow (spark_jobs.lag.burrow); and these:

    - expiry_measured boolean: the log start moved often enough
    - of the status window, NULL without a lag: samples int; all_idle, lag_rises boolean; highest_commit, first_lag, other_lags_most bigint;
      rewound bigint, by how many offsets the commit is below the highest
    - of the newest sample that is at least one commit interval ago: lag_before bigint; read_all_before boolean, everything that was in the
      log then has been read; written_since bigint
    - when the log end was read, in epoch milliseconds: log_read_ms now; seen_unread_ms in the oldest sample of the newest run whose end is
      past the first unread record, or the position if that was not read; seen_record_ms in the oldest sample of that run which shows that a
      record was unread (a single offset may be the end of a transaction); not_past_ms in the sample before that run; and passed_ms, when
      the log end passed that offset if it grew evenly
    - lags_by_age array<bigint>
    """
    before = rows.columns
    rows = rows.join(_commits(evidence), on=list(KEYS), how="left").join(logs_by_age(evidence), on=["topic", "partition"], how="left")
    now = F.lit(evidence.taken_ms)
    movement = in_steps(
        lambda _: {"samples": _samples(evidence)},
        lambda it: {"own": F.filter(it["samples"], lambda one: one["is_own"])},
        lambda it: {"commit": _commit_facts(it["samples"], it["own"], now), "passing": _passing_facts(it["samples"])},
        lambda it: {
            "window": _window_facts(it["samples"], it["own"], it["commit"]["idle"], now),
            # Burrow reads the offsets topic, where share groups keep none.
            "burrow": F.when(F.coalesce(F.col("group_type") != "share", F.lit(True)), burrow(it["own"], evidence.taken_ms)),
            "lags_by_age": F.transform(it["samples"], lambda one: one["lag"]),
        },
    )
    logs = ("recreated", "truncated", "expired_per_s", "expiry_measured")
    found = [f"movement.{name}" for name in ("commit.facts.*", "passing.*", "window.*", "burrow", "lags_by_age")]
    return rows.withColumn("movement", movement).select(*before, *logs, *found)


@shortened
def _commits(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition and ``commits``, an array by age of the committed offset."""
    rows = with_age(evidence, "committed_offsets", *KEYS, "committed").where(F.col("committed") >= 0)
    return rows.groupBy(*KEYS).agg(by_age(evidence, F.col("committed")).alias("commits"))


def _samples(evidence: Evidence) -> Column:
    """An array by age of structs: age int; is_own and moved boolean; and, all bigint, taken_ms, committed, log_start, log_end, last_stable,

    read_ms and lag. is_own: a sample of its own, of the present topic id. moved: the commit is another one than in the sample before.
    """
    names = ("is_own", "log_start", "log_end", "last_stable", "read_ms")

    def read(taken_ms: Column, age: Column) -> Column:
        stored = bound(F.get("logs", age), lambda log: F.struct(*[log[name].alias(name) for name in names]))
        return F.struct(taken_ms.cast("bigint").alias("taken_ms"), F.get("commits", age).alias("committed"), stored.alias("log"))

    def sample(every: Column, one: Column, age: Column) -> Column:
        log, committed = one["log"], one["committed"]
        return F.struct(
            age.alias("age"),
            one["taken_ms"].alias("taken_ms"),
            F.coalesce(log["is_own"], age == 0).alias("is_own"),
            committed.alias("committed"),
            F.coalesce(committed != F.get(every, age + 1)["committed"], F.lit(False)).alias("moved"),
            *[log[name].alias(name) for name in names[1:]],
            lag_of(committed, log["log_start"], log["log_end"]).alias("lag"),
        )

    times = F.lit([one.taken_ms for one in newest(evidence)])
    return bound(F.transform(times, read), lambda every: F.transform(every, lambda one, age: sample(every, one, age)))


def _read_up_to(position: Column) -> Column:
    """The first offset with a record to read for a group that stood at ``position`` in an earlier sample; bigint, NULL where that is.

    Ends of transactions and aborted records after this snapshot's commit were nothing to read in earlier samples either. Records that
    compaction or retention has removed since were: these count.
    """
    return F.when(position.isNotNull(), F.greatest(position, F.when(_never_there(), F.col("record_offset"))))


def _never_there() -> Column:
    """Whether what lies between the commit and the first unread record were no records when they were written."""
    return F.col("has_hole") & (F.col("lost") == 0) & ~F.col("compacted")


def _one_in_doubt() -> Column:
    """1 where nothing tells whether the first offset after the commit is a record or the end of a transaction, else 0.

    Not where it is all that is unread: only_markers_unread tells about that.
    """
    known = F.col("first_is_record") & (~F.col("has_hole") | F.coalesce(_never_there(), F.lit(False)))
    return F.when(known | (F.col("lag") == 1), F.lit(0)).otherwise(1)


def _unread_then(sample: Column) -> Column:
    """How many offsets with records followed this snapshot's commit in an earlier sample."""
    return offsets_between(_read_up_to(position_of(F.col("committed"), sample["log_start"])), sample["log_end"])


def _could_read_then(sample: Column) -> Column:
    """Whether an earlier sample proves that a record followed this snapshot's commit which a group of any isolation.level could read.

    Records that an open transaction held back then are no such proof. They count in this snapshot, and where all that is unread is held
    back now: there TXN-01 tells of it.
    """
    position = position_of(F.col("committed"), sample["log_start"])
    stable = F.when((sample["age"] > 0) & ~F.col("waits"), sample["last_stable"])
    in_doubt = F.when(sample["age"] > 0, _one_in_doubt()).otherwise(0)
    readable = offsets_between(_read_up_to(position), F.least(sample["log_end"], stable))
    return (readable > 0) & (_unread_then(sample) > in_doubt)


def _commit_facts(samples: Column, own: Column, now: Column) -> Column:
    """Whether the commit moves, whether it went back, and since when it stands with unread records after it.

    A struct of ``facts``, and of ``idle``, the samples of the time in which it stands.
    """
    committed, lag = F.col("committed"), F.col("lag")

    def went_back(sample: Column) -> Column:
        older = F.get(samples, sample["age"] + 1)
        return sample["is_own"] & older["is_own"] & (sample["committed"] < older["committed"])

    def facts(it: Column) -> Column:
        earlier = F.transform(F.filter(own, lambda one: one["age"] > 0), lambda one: one["committed"])
        in_this_run = it["changed"].isNull() | (it["caught_up"]["age"] < it["changed"]["age"])
        found = {
            "snapshots": F.size(it["shown"]),
            "history_ms": now - oldest_of(it["shown"])["taken_ms"],
            "committed_before": F.array_max(earlier),
            "committed_before_at": F.date_format(F.timestamp_millis(it["above"]["taken_ms"]), "yyyy-MM-dd HH:mm:ss'Z'"),
            "rewinds": F.size(F.filter(samples, went_back)),
            "unchanged_ms": now - oldest_of(it["run"])["taken_ms"],
            "changed_within_ms": now - it["changed"]["taken_ms"],
            "caught_up_within_ms": F.when(in_this_run, now - it["caught_up"]["taken_ms"]),
            "idle_snapshots": F.when(lag > 0, F.size(it["idle"])).when(lag == 0, F.lit(0)),
            **{
                f"{name}_ms": F.when(lag > 0, now - oldest_of(it[name])["taken_ms"]).when(lag == 0, F.lit(0).cast("bigint"))
                for name in ("idle", "idle_most")
            },
        }
        return F.struct(*[F.when(F.col("has_commit"), fact).alias(name) for name, fact in found.items()])

    return in_steps(
        lambda _: {
            "shown": F.filter(own, lambda one: one["committed"].isNotNull()),
            "changed": newest_of(F.filter(own, lambda one: one["committed"] != committed)),
            "above": newest_of(F.filter(own, lambda one: one["committed"] > committed)),
            "caught_up": newest_of(F.filter(own, lambda one: _unread_then(one) == 0)),
        },
        lambda it: {"run": F.filter(it["shown"], lambda one: is_newer(one, it["changed"]))},
        lambda it: {"idle_most": F.filter(it["run"], lambda one: (_unread_then(one) > 0) & is_newer(one, it["caught_up"]))},
        lambda it: {"idle": F.filter(it["idle_most"], _could_read_then)},
        lambda it: {"facts": facts(it)},
    )


def _passing_facts(samples: Column) -> Column:
    """Between which samples the log passed the first unread record; in between its end is taken to have grown evenly."""
    first = F.coalesce("record_offset", "position")
    no_proof = first + F.when(F.col("first_is_record"), F.lit(0)).otherwise(1)

    def facts(it: Column) -> Column:
        older, newer = it["older"], it["newer"]
        share = (first - older["log_end"]) / (newer["log_end"] - older["log_end"])
        found = {
            "log_read_ms": newest_of(samples)["read_ms"],
            "seen_unread_ms": newer["read_ms"],
            "seen_record_ms": oldest_of(F.filter(it["past"], lambda one: one["log_end"] > no_proof))["read_ms"],
            "not_past_ms": older["read_ms"],
            "passed_ms": older["read_ms"] + F.round(share * (newer["read_ms"] - older["read_ms"])).cast("bigint"),
        }
        return F.struct(*[fact.alias(name) for name, fact in found.items()])

    return in_steps(
        lambda _: {"read": F.filter(samples, lambda one: one["log_end"].isNotNull() & one["read_ms"].isNotNull() & first.isNotNull())},
        lambda it: {"older": newest_of(F.filter(it["read"], lambda one: one["log_end"] <= first))},
        lambda it: {"past": F.filter(it["read"], lambda one: (one["log_end"] > first) & is_newer(one, it["older"]))},
        lambda it: {"newer": oldest_of(it["past"])},
        lambda it: {"facts": facts(it)},
    )["facts"]


def _window_facts(samples: Column, own: Column, idle: Column, now: Column) -> Column:
    """The window that a status is judged by: as long as a few commits take, and never fewer than three samples."""
    has_lag = F.col("lag").isNotNull()

    def in_window(it: Column, one: Column) -> Column:
        return F.coalesce(one["age"] <= it["third"], F.lit(True)) | (now - one["taken_ms"] <= it["target"])

    def is_before(it: Column, one: Column) -> Column:
        passed, shows_another = (now - one["taken_ms"]) * _WHOLE, F.coalesce(one["committed"] != F.col("committed"), F.lit(False))
        too_new, in_time = (F.coalesce(passed <= it["cadence"] * share, F.lit(False)) for share in (_EARLY, _LATE))
        return (one["age"] > 0) & ~too_new & (~in_time | shows_another)

    def facts(it: Column) -> Column:
        window, first, before, current = it["window"], it["first"], it["before"], newest_of(samples)
        earlier = first["age"] > 0
        others = F.transform(F.filter(window, lambda one: one["age"] > 0), lambda one: one["lag"])
        found = {
            "samples": F.size(window),
            "all_idle": (F.size(window) > 0) & F.forall(window, lambda one: F.array_contains(it["idle_ages"], one["age"])),
            "highest_commit": it["highest"],
            "rewound": offsets_between(F.col("committed"), it["highest"]),
            "first_lag": F.when(earlier, first["lag"]),
            "other_lags_most": F.array_max(others),
            "lag_rises": F.when(earlier, _rises(window, now)),
            "lag_before": F.when(before["committed"] == F.col("committed"), _unread_then(before)).otherwise(before["lag"]),
            "read_all_before": _read_up_to(F.col("committed")) + _one_in_doubt() >= before["log_end"],
            "written_since": offsets_between(before["log_end"], F.col("log_end")),
            "produced_per_s": F.when(earlier, per_second(current, first, "log_end")),
            "consumed_per_s": F.when(earlier, per_second(current, first, "committed")),
            "status_window_ms": now - first["taken_ms"],
            "detected_within_ms": F.greatest(it["target"], it["widest"] * SAMPLES) + it["widest"],
        }
        return F.struct(*[fact.alias(name) for name, fact in found.items()])

    return in_steps(
        lambda _: {
            "seen": F.when(has_lag, F.filter(own, lambda one: one["lag"].isNotNull())),
            "between": F.when(has_lag, F.sort_array(distances(F.filter(own, lambda one: one["moved"])))),
            "idle_ages": F.transform(idle, lambda one: one["age"]),
        },
        lambda it: {
            "cadence": F.get(it["between"], F.floor(F.size(it["between"]) / 2).cast("int")),
            "third": F.get(it["seen"], F.lit(SAMPLES - 1))["age"],
        },
        lambda it: {"target": F.when(has_lag, F.least(F.lit(LONGEST_MS).cast("bigint"), it["cadence"] * COMMITS))},
        lambda it: {
            "window": F.filter(it["seen"], lambda one: in_window(it, one)),
            "before": newest_of(F.filter(it["seen"], lambda one: is_before(it, one))),
        },
        lambda it: {
            "first": oldest_of(it["window"]),
            "widest": F.array_max(distances(it["window"])),
            "highest": F.array_max(F.transform(it["window"], lambda one: one["committed"])),
        },
        lambda it: {"facts": facts(it)},
    )["facts"]


def _rises(samples: Column, now: Column) -> Column:
    """Whether the least-squares line through the lags of some samples rises."""

    def hours(one: Column) -> Column:
        return (one["taken_ms"] - now) / _HOUR_MS

    def summed(value: Column) -> Column:
        return F.aggregate(value, F.lit(0.0), lambda total, one: total + one)

    xy, x = F.transform(samples, lambda one: hours(one) * one["lag"]), F.transform(samples, hours)
    y = F.transform(samples, lambda one: one["lag"].cast("double"))
    return F.size(samples) * summed(xy) > summed(x) * summed(y)
