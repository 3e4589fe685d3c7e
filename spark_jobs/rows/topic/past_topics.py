"""What earlier snapshots tell of the topics and partitions of this one. A name with another topic id is another topic (KIP-516)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.positions import held_back

_KEYS = ["topic", "partition"]
_IDS_LISTED = 20
_SERIES = 10


def earlier(evidence: Evidence, dataset: str, *columns: str) -> DataFrame:
    """topic, ``columns``, snapshot_id and taken_ms of a dataset's earlier rows, of topics that have the same topic id now."""
    now = evidence.table("topics").select("topic", "topic_id")
    same = _earlier_rows(evidence, "topics", "topic", "topic_id").join(now, on=["topic", "topic_id"], how="left_semi")
    rows = _earlier_rows(evidence, dataset, "topic", *columns)
    return rows.join(same.select("snapshot_id", "topic"), on=["snapshot_id", "topic"], how="left_semi")


def _earlier_rows(evidence: Evidence, dataset: str, *columns: str) -> DataFrame:
    rows = evidence.series(dataset, *columns).where(F.col("snapshot_id") != evidence.snapshot.snapshot_id)
    return rows.where(F.lit(bool(evidence.history.all)))  # without history the plan then reads and joins nothing


def with_past_topics(topics: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds snapshots, history_ms, earlier_topic_ids and partition_count_before (kafka_audit.catalogue.rows), by topic and topic_id."""
    then = _earlier_rows(evidence, "topics", "topic", "topic_id", "partition_count").withColumnRenamed("topic_id", "id_then")
    now = evidence.table("topics").select("topic", "topic_id")
    same, counted = F.col("id_then") == F.col("topic_id"), F.col("partition_count").isNotNull()
    others = F.array_sort(F.collect_list(F.when(~same, F.struct("taken_ms", "id_then"))))
    past = (
        then.join(now, on="topic", how="inner")
        .groupBy("topic")
        .agg(
            F.count_if(same).alias("earlier_snapshots"),
            F.min(F.when(same, F.col("taken_ms"))).alias("first_ms"),
            F.slice(F.array_distinct(F.transform(others, lambda one: one["id_then"])), 1, _IDS_LISTED).alias("other_ids"),
            F.sort_array(F.collect_list(F.when(same & counted, F.struct("taken_ms", "partition_count"))), asc=False).alias("counts"),
        )
    )
    return topics.join(past, on="topic", how="left").withColumns(
        {
            **_length(evidence, F.col("topic_id").isNotNull()),
            # An id of any snapshot counts, also after the audit that told of it: the records are gone for good.
            "earlier_topic_ids": F.coalesce("other_ids", F.array().cast("array<string>")),
            "partition_count_before": _before(evidence, "counts")["partition_count"],
        }
    )


def _before(evidence: Evidence, states: str) -> Column:
    """The struct that a change is counted from, of an array of them, newest first, with taken_ms: the state at the last audit.

    Only what happened since the snapshot of the last audit is news; snapshots in between were judged by no audit (History.before). Of
    what was not there yet at the last audit, the first state that any snapshot shows.
    """
    before = evidence.history.before
    known = F.filter(states, lambda one: one["taken_ms"] <= F.lit(before.taken_ms)) if before is not None else F.array()
    return F.coalesce(F.get(known, F.lit(0)), F.try_element_at(F.col(states), F.lit(-1)))


def with_past_partitions(partitions: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds what series tell of partitions: see kafka_audit.catalogue.rows from ``snapshots`` to ``under_replicated_ms``.

    Needs topic, partition, leader_epoch, isr_count, lagging_replicas, replication_factor, reassigning, adding_replicas,
    removing_replicas, log_end, last_stable and ends_read_at.
    """
    identified = evidence.table("topics").where(F.col("topic_id").isNotNull()).select("topic", F.lit(True).alias("identified"))
    rows = partitions.join(_states(evidence), on=_KEYS, how="left").join(_ends(evidence), on=_KEYS, how="left")
    rows = rows.join(_moves(evidence), on=_KEYS, how="left")
    rows = rows.join(identified, on="topic", how="left")
    before = _before(evidence, "states")
    return rows.withColumns(
        {
            **_length(evidence, F.coalesce("identified", F.lit(False))),
            "earlier_ms": F.lit(evidence.taken_ms) - before["taken_ms"],
            "leader_changes": F.col("leader_epoch") - before["leader_epoch"],
            "isr_counts": _this_and(F.col("isr_count"), F.transform("states", lambda one: one["isr_count"])),
            "behind_stable": _this_and(held_back(), F.transform("ends", lambda one: one["behind"])),
            "under_replicated_ms": _under_replicated(evidence),
            "log_end_before": _log_end_before(),
            **_reassigning(evidence, F.coalesce("identified", F.lit(False))),
        }
    )


def _length(evidence: Evidence, identified: Column) -> dict[str, Column]:
    """snapshots, history_ms and is_new; without a topic id, an earlier topic of the same name may be this one."""
    return {
        "snapshots": (F.coalesce("earlier_snapshots", F.lit(0)) + 1).cast("int"),
        "history_ms": F.lit(evidence.taken_ms) - F.coalesce("first_ms", F.lit(evidence.taken_ms)),
        "is_new": F.lit(all_were_listed(evidence)) & identified & (F.coalesce("earlier_snapshots", F.lit(0)) == 0),
    }


def all_were_listed(evidence: Evidence) -> bool:
    """Whether the snapshot of the last audit would show every topic and partition of this one's scope that there was."""
    last = evidence.history.before
    if last is None:
        return False
    before = last.manifest
    missing = before.get("errors") or {}
    return before.get("scope") == evidence.snapshot.manifest.get("scope") and not any(
        missing.get(name) for name in ("topics", "partitions")
    )


def _this_and(this: Column, past: Column) -> Column:
    return F.slice(F.concat(F.array(this), F.coalesce(past, F.array())), 1, _SERIES)


def _states(evidence: Evidence) -> DataFrame:
    """topic, partition, earlier_snapshots, first_ms and ``states``, newest first: taken_ms, isr_count, leader_epoch, replica_count."""
    rows = earlier(evidence, "partitions", "partition", "isr", "leader_epoch", "replicas")
    state = F.struct("taken_ms", F.size("isr").alias("isr_count"), "leader_epoch", F.size("replicas").alias("replica_count"))
    return rows.groupBy(*_KEYS).agg(
        F.count("*").alias("earlier_snapshots"),
        F.min("taken_ms").alias("first_ms"),
        F.sort_array(F.collect_list(state), asc=False).alias("states"),
    )


def _ends(evidence: Evidence) -> DataFrame:
    """topic, partition and ``ends``, newest first: taken_ms, behind (log_end - last_stable), log_end and read_at."""
    rows = earlier(evidence, "offsets", "partition", "log_end", "last_stable", "read_at")
    end = F.struct("taken_ms", held_back().alias("behind"), "log_end", "read_at")
    return rows.groupBy(*_KEYS).agg(F.sort_array(F.collect_list(end), asc=False).alias("ends"))


def _log_end_before() -> Column:
    """The largest log end that was read before this one, in snapshots of either kind: a log end never goes back, so any of them counts.

    Snapshots may overlap, so the time of the reading decides and not that of the snapshot's begin.
    """
    read_before = F.filter("ends", lambda one: one["read_at"] < F.col("ends_read_at"))
    return F.array_max(F.transform(read_before, lambda one: one["log_end"]))


def _moves(evidence: Evidence) -> DataFrame:
    """topic, partition and ``moves``: taken_ms, and adding and removing, the sorted replicas of the reassignment that was running then."""
    rows = earlier(evidence, "reassignments", "partition", "adding_replicas", "removing_replicas")
    return rows.groupBy(*_KEYS).agg(F.collect_list(F.struct("taken_ms", *_move())).alias("moves"))


def _move() -> list[Column]:
    return [F.sort_array(f"{change}_replicas").alias(change) for change in ("adding", "removing")]


def _reassigning(evidence: Evidence, identified: Column) -> dict[str, Column]:
    """reassigning_ms and reassigning_at_most_ms: since when the running reassignment has been seen, and how long it can have run.

    Another reassignment of the same partition adds or removes other replicas. Snapshots that could not list reassignments are passed over.
    """
    told = [one.taken_ms for one in reversed(evidence.history.snapshots) if not (one.manifest.get("errors") or {}).get("reassignments")]
    nothing = F.lit(None).cast("bigint")
    start = F.struct(F.lit(0).cast("bigint").alias("since_ms"), nothing.alias("at_most_ms"), F.lit(True).alias("unbroken"))
    now = F.struct(*_move())

    def further(run: Column, taken_ms: Column) -> Column:
        running = F.exists("moves", lambda one: (one["taken_ms"] == taken_ms) & (F.struct(one["adding"], one["removing"]) == now))
        same, age = F.coalesce(running, F.lit(False)), F.lit(evidence.taken_ms) - taken_ms
        return F.struct(
            F.when(run["unbroken"] & same, age).otherwise(run["since_ms"]).alias("since_ms"),
            F.when(run["unbroken"] & ~same, age).otherwise(run["at_most_ms"]).alias("at_most_ms"),
            (run["unbroken"] & same).alias("unbroken"),
        )

    run = F.aggregate(F.lit(told).cast("array<bigint>"), start, further)
    return {
        "reassigning_ms": F.when(F.col("reassigning"), F.when(identified, run["since_ms"]).otherwise(F.lit(0))),
        "reassigning_at_most_ms": F.when(F.col("reassigning") & identified, run["at_most_ms"]),
    }


def _under_replicated(evidence: Evidence) -> Column:
    """How far back the unbroken run of snapshots goes in which replicas were missing; NULL when none are missing in this one."""
    start = F.struct(F.lit(0).cast("bigint").alias("since_ms"), F.lit(True).alias("unbroken"))

    def further(run: Column, state: Column) -> Column:
        # A topic that was given more replicas since lacked none of those it had.
        wanted = F.least("replication_factor", state["replica_count"])
        goes_on = F.coalesce(run["unbroken"] & (state["isr_count"] < wanted), F.lit(False))
        back = F.when(goes_on, F.lit(evidence.taken_ms) - state["taken_ms"]).otherwise(run["since_ms"])
        return F.struct(back.alias("since_ms"), goes_on.alias("unbroken"))

    states = F.coalesce("states", F.array())
    return F.when(F.size("lagging_replicas") > 0, F.aggregate(states, start, further)["since_ms"])
