"""Decoded group records and commit behaviour -> one row for each group: members, rebalances, timeouts, and how it commits."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.commit_history.describe.cadence import inference
from spark_jobs.engine.tables import table_of

_EPISODE_MS = 30_000
"""Generations closer than this belong to one rebalance: cooperative assignment takes two, and members join one after another.

An episode that lasts longer counts once more for each further 30 s, so that a group that never settles has many rebalances.
"""

_SUMS = (
    *("commits", "intervals", "timed", "beats", "unchanged", "unchanged_without_epoch", "single_steps"),
    *("rewinds", "jumps", "recreations", "transactional", "with_metadata"),
)
RECORD_COLUMNS = (
    *("group_id", "member_id", "log_offset", "append_time", "record_type", "tombstone", "group_metadata"),
    *(f"{kind}_group_{about}" for kind in ("consumer", "share", "streams") for about in ("metadata", "member_metadata")),
)
"""The columns of group records that are read here."""
_SAME_BEAT = 0.02
_LEAST_TIMED = 4


def group_behaviour(records: DataFrame, partitions: DataFrame, carried: DataFrame | None = None) -> DataFrame:
    """One row for each group. ``records`` with ``in_window`` false are from before the window: they give states and are not counted.

    ``carried``: rows of the window before, without removed groups. They give the state of groups that have no newer record.

    group_type string (classic, consumer, share, streams; NULL without group records), removed boolean, member_count, static_members,
    most_members int by the newest records; assignor string, session_timeout_ms (least of the members'; KIP-848 groups have the brokers')
    and rebalance_timeout_ms (greatest) bigint of the newest records with members; generations bigint (changes of the generation or group
    epoch with members), rebalances bigint (episodes of these, and each further half minute of an episode), longest_rebalance_ms bigint,
    last_rebalance timestamp; partitions bigint, the sums of commit_behaviour, first_commit, last_commit timestamp, beat_ms bigint, and
    cadence.inference. empty_since timestamp: when a classic group lost its last member, NULL while it has members.
    live_members: the members of a group of a newer protocol that did not leave.
    """
    if "in_window" not in records.columns:
        records = records.withColumn("in_window", F.lit(True))
    if carried is None:
        carried = table_of(records.sparkSession, [], _CARRIED_DDL)
    rows = (
        _lives(records, carried)
        .join(_members(records, carried), on="group_id", how="full")
        .join(_commits(partitions), on="group_id", how="full")
    )
    rows = rows.join(carried.select("group_id", F.struct(*_CARRIED).alias("carried")), on="group_id", how="full")
    told = F.col("group_type").isNotNull()
    kind = F.coalesce("group_type", "carried.group_type")
    rows = rows.withColumns(
        {
            **{name: _of_protocol(kind, name) for name in _MEMBER_FIGURES},
            **{name: F.coalesce(name, F.lit(0).cast("bigint")) for name in (*_SUMS, "partitions")},
            "live_members": F.col("newer.live_members"),
            "empty_since": F.when(told, F.col("classic.empty_since")).otherwise(F.col("carried.empty_since")),
            # The partition was read, and holds no record of the group: 0, and not NULL.
            **{name: F.coalesce(name, F.when(~told & F.col("carried.group_type").isNotNull(), F.lit(0))) for name in _COUNTS},
            "group_type": kind,
        }
    )
    return rows.withColumns(inference()).drop("classic", "newer", "carried", "same_beat")


def _of_protocol(kind: Column, name: str) -> Column:
    """A figure of the members by the records of the group's present protocol ``kind``: it may have had another one before."""
    read = F.when(kind == "classic", F.col(f"classic.{name}")).otherwise(F.col(f"newer.{name}"))
    return F.coalesce(read, F.when(kind == F.col("carried.group_type"), F.col(f"carried.{name}")))


_MEMBER_FIGURES = ("member_count", "static_members", "assignor", "session_timeout_ms", "rebalance_timeout_ms")
_COUNTS = ("generations", "rebalances")
_CARRIED = ("group_type", "empty_since", *_MEMBER_FIGURES)
_CARRIED_DDL = (
    "group_id string, group_type string, empty_since timestamp, member_count int, static_members int, assignor string, "
    "session_timeout_ms bigint, rebalance_timeout_ms bigint, "
    "live_members array<struct<member_id:string,value:struct<instance_id:string,assignor:string,rebalance_timeout_ms:int>>>"
)


def emptied(records: DataFrame, carried: DataFrame | None = None) -> DataFrame:
    """group_id, empty_since timestamp: when a classic group lost its last member, by its newest record; no row for groups with members.

    A group that has gone over to a newer protocol is not classic: its newest record holds no state of the classic one.
    """
    states = records.where("record_type in (2, 3, 11, 17) and not tombstone")
    newest = states.groupBy("group_id").agg(F.max_by("group_metadata", "log_offset").alias("now"))
    empty = F.expr("size(now.members) = 0 and now.state_ms > 0")
    known = newest.select("group_id", F.when(empty, F.timestamp_millis("now.state_ms")).alias("empty_since"))
    if carried is not None:
        known = known.union(carried.join(known, on="group_id", how="left_anti").select("group_id", "empty_since"))
    return known.where(F.col("empty_since").isNotNull())


def _lives(records: DataFrame, carried: DataFrame) -> DataFrame:
    """For each group its newest state and its rebalances, from the records that hold a generation or a group epoch."""
    epochs = ("consumer_group_metadata.epoch", "share_group_metadata.epoch", "streams_group_metadata.epoch")
    heads = _with_members(records.where("record_type in (2, 3, 11, 17)"), _member_records(records, carried)).withColumns(
        {
            "kind": F.expr("case record_type when 2 then 'classic' when 3 then 'consumer' when 11 then 'share' else 'streams' end"),
            "number": F.coalesce("group_metadata.generation", *epochs),
            "size": F.when((F.col("record_type") == 2) & ~F.col("tombstone"), F.size("group_metadata.members")),
        }
    )
    order = Window.partitionBy("group_id").orderBy("log_offset")
    changed = ~F.coalesce(F.lag("number").over(order).eqNullSafe(F.col("number")), F.lit(False))
    # The record of a group without members moves no partitions.
    had_members = F.coalesce("size", "members_then", F.lit(1)) > 0
    moved = heads.withColumn("moved", F.col("in_window") & changed & F.col("number").isNotNull() & had_members)
    at = F.when(F.col("moved"), F.col("append_time"))
    earlier = F.last(at, ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, -1))
    away = F.unix_millis("append_time") - F.unix_millis(earlier)
    moved = moved.withColumn("begins", F.col("moved") & (earlier.isNull() | (away > _EPISODE_MS)))
    moved = moved.withColumn("episode", F.sum(F.col("begins").cast("bigint")).over(order))
    episodes = moved.where("moved").groupBy("group_id", "episode").agg(
        (F.unix_millis(F.max("append_time")) - F.unix_millis(F.min("append_time"))).alias("took")
    )  # fmt: skip
    settled = episodes.groupBy("group_id").agg(
        F.max("took").alias("longest_rebalance_ms"), F.sum(1 + F.floor(F.col("took") / _EPISODE_MS)).alias("rebalances")
    )
    newest = F.max_by(F.struct("kind", "tombstone", "group_metadata", "record_type"), "log_offset")
    lives = moved.groupBy("group_id").agg(
        newest.alias("newest"),
        F.max_by("group_metadata", F.when(F.col("size") > 0, F.col("log_offset"))).alias("with_members"),
        F.max("size").alias("most_members"),
        F.count_if("moved").alias("generations"),
        F.max(at).alias("last_rebalance"),
    )
    members = F.col("newest.group_metadata.members")
    since = F.timestamp_millis(F.nullif("newest.group_metadata.state_ms", F.lit(-1)))
    classic = F.struct(
        F.when(F.size(members) <= 0, since).alias("empty_since"),
        F.size(members).alias("member_count"),
        F.size(F.filter(members, lambda member: member["instance_id"] != "")).alias("static_members"),
        F.col("with_members.protocol").alias("assignor"),
        F.array_min("with_members.members.session_timeout_ms").cast("bigint").alias("session_timeout_ms"),
        F.array_max("with_members.members.rebalance_timeout_ms").cast("bigint").alias("rebalance_timeout_ms"),
    )
    return lives.join(settled, on="group_id", how="left").select(
        *("group_id", "most_members", "generations", "longest_rebalance_ms", "last_rebalance"),
        F.coalesce("rebalances", F.lit(0)).alias("rebalances"),
        F.col("newest.kind").alias("group_type"),
        F.col("newest.tombstone").alias("removed"),
        F.when(members.isNotNull() | F.col("with_members").isNotNull(), classic).alias("classic"),
    )


def _with_members(heads: DataFrame, members: DataFrame) -> DataFrame:
    """Adds ``members_then``: how many ``members`` (_member_records) a group had when a record was written; NULL where not known."""
    order = Window.partitionBy("group_id", "member_id").orderBy("log_offset")
    here = (~F.col("tombstone")).cast("int")
    events = members.withColumn("came", here - F.coalesce(F.lag(here).over(order), F.lit(0)))
    # Kafka writes the record of a new epoch after those of the members who joined or left.
    so_far = Window.partitionBy("group_id").orderBy("log_offset").rowsBetween(Window.unboundedPreceding, 0)
    both = heads.unionByName(events.select("group_id", "log_offset", "came"), allowMissingColumns=True)
    return both.withColumn("members_then", F.sum("came").over(so_far)).where(F.col("came").isNull()).drop("came")


def _member_records(records: DataFrame, carried: DataFrame) -> DataFrame:
    """group_id, member_id, log_offset, tombstone, value: records of single members (newer protocols), those of the window before first."""
    value = F.coalesce(*[_member(f"{kind}_member_metadata", fields) for kind, fields in _NEWER.items()])
    records = records.where("record_type in (5, 10, 19)").select("group_id", "member_id", "log_offset", "tombstone", value.alias("value"))
    known = carried.select("group_id", F.inline("live_members"))
    return records.unionByName(known.withColumns({"log_offset": F.lit(-1).cast("bigint"), "tombstone": F.lit(False)}))


def _members(records: DataFrame, carried: DataFrame) -> DataFrame:
    """For each group of a newer protocol ``newer``: its members that did not leave, their count, and the settings of all its members."""
    each = (
        _member_records(records, carried)
        .groupBy("group_id", "member_id")
        .agg(
            F.max_by("tombstone", "log_offset").alias("left"),
            F.max_by("value", F.when(F.col("value").isNotNull(), F.col("log_offset"))).alias("about"),
        )
    )
    return each.groupBy("group_id").agg(
        F.struct(
            F.count_if(~F.col("left")).cast("int").alias("member_count"),
            F.count_if(~F.col("left") & (F.col("about.instance_id") != "")).cast("int").alias("static_members"),
            F.max("about.assignor").alias("assignor"),
            F.lit(None).cast("bigint").alias("session_timeout_ms"),
            F.max("about.rebalance_timeout_ms").cast("bigint").alias("rebalance_timeout_ms"),
            F.array_sort(F.collect_list(F.when(~F.col("left"), F.struct("member_id", F.col("about").alias("value"))))).alias(
                "live_members"
            ),
        ).alias("newer")
    )


_NEWER: Mapping[str, Mapping[str, str]] = {
    "consumer_group": {"instance_id": "instance_id", "assignor": "server_assignor", "rebalance_timeout_ms": "rebalance_timeout_ms"},
    "share_group": {},
    "streams_group": {"instance_id": "instance_id", "rebalance_timeout_ms": "rebalance_timeout_ms"},
}


def _member(column: str, fields: Mapping[str, str]) -> Column:
    kinds = {"instance_id": "string", "assignor": "string", "rebalance_timeout_ms": "int"}
    values = [(F.col(f"{column}.{fields[name]}") if name in fields else F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items()]
    return F.when(F.col(column).isNotNull(), F.struct(*values))


def _commits(partitions: DataFrame) -> DataFrame:
    timed = F.col("timed") >= _LEAST_TIMED
    beat = partitions.where(timed).groupBy("group_id").agg(F.percentile_approx("interval_beat_ms", 0.5, 1000).alias("beat_ms"))
    rows = partitions.join(beat, on="group_id", how="left")
    apart = F.abs(F.col("interval_beat_ms") - F.col("beat_ms")) > F.greatest(F.col("beat_ms") * _SAME_BEAT, F.lit(40))
    return rows.groupBy("group_id").agg(
        F.count_if(F.col("commits") > 0).alias("partitions"),
        *[F.sum(name).alias(name) for name in _SUMS],
        F.min("first_commit").alias("first_commit"),
        F.max("last_commit").alias("last_commit"),
        F.max("beat_ms").alias("beat_ms"),
        (F.count_if(timed & apart) <= 0.1 * F.count_if(timed)).alias("same_beat"),
    )
