"""Wide rows of the lag SLAs of groups: how far behind a group is now, and for how much of the window it kept its SLA."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.collect.scope import INTERNAL_TOPICS
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.engine.session import whole_stages
from spark_jobs.engine.tables import table_of
from spark_jobs.lag.burns import sla_burns
from spark_jobs.lag.days import LagWindow, read_window
from spark_jobs.lag.positions import offsets_between
from spark_jobs.lag.samples import newest
from spark_jobs.lag.slas import READ_COMMITTED, lag_growth, may_wait, present_figures, sla_figures, sla_samples, sla_spans
from spark_jobs.rows import missing
from spark_jobs.rows.group.bare_partitions import bare_partitions
from spark_jobs.rows.group.group_partition import positions, with_sla
from spark_jobs.rows.group.membership import groups_with_members, past_groups, that_consume, topics_of_groups
from spark_jobs.rows.group.unlisted_groups import has_unlisted, unlisted_groups, unlisted_places
from spark_jobs.rows.tiers import isolation_of, sla_number, sla_policy
from spark_jobs.rows.topic.topic_listing import disks_unread, hidden_topics, no_authorizer

_MINUTE_MS = 60_000
_PERCENT = "decimal(15,12)"
_NONE = -1
"""Stands for no SLA where columns are joined."""


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each group that consumes and lag SLA that covers one of its topics; one without an SLA for each that none covers.

    The unlisted groups, too.
    """
    groups = that_consume(groups_with_members(evidence)).join(past_groups(evidence), on="group_id", how="left")
    rows = groups.join(covered(evidence, policy), on="group_id", how="left").withColumn("sla", F.coalesce("sla", F.lit(_NONE)))
    rows = rows.join(_figures(evidence, policy), on=["group_id", "sla"], how="left")
    rows = rows.join(_window_figures(evidence, policy), on=["group_id", "sla"], how="left")
    rows = rows.join(F.broadcast(_hidden(evidence)), how="cross").join(_uncommitted(evidence, policy), on=["group_id", "sla"], how="left")
    partitions = F.coalesce("committed_partitions", F.lit(0))
    commits_read = ~F.map_contains_key("errors", F.lit("committed_offsets"))
    known = (partitions > 0) | commits_read
    counts = {
        **{"unknown_partitions": "unknown", "beyond_partitions": "beyond", "lag_ms_unknown": "untimed"},
        **{"behind_partitions": "behind", "unasked_partitions": "unasked"},
    }
    rows = rows.withColumns(
        {
            "errors": missing.joined(F.col("lacking"), F.col("errors")),
            "partition_count": F.when(known, partitions),
            "some_topics_only": F.lit(bool(evidence.topic_scope) and "*" not in evidence.topic_scope),
            **{name: F.when(known, F.coalesce(F.col(of), F.lit(0))) for name, of in counts.items()},
            "isolation": isolation_of(policy, F.col("group_id")),
            "policy": sla_policy(policy, F.col("group_id"), F.nullif("sla", F.lit(_NONE))),
            # What members subscribe tells which topics a group reads; of a group without members, or of unknown ones, only its commits do.
            "unmeasured": F.coalesce(F.when(F.coalesce("member_count", F.lit(0)) == 0, F.col("hidden")), "uncommitted", "bare_reads"),
            "lag_growth": lag_growth([one.taken_ms for one in newest(evidence)]),
        }
    )
    rows = rows.withColumn("resource", _resource(policy)).transform(with_minutes)
    return rows.unionByName(unlisted(evidence, policy), allowMissingColumns=True) if has_unlisted(evidence) else rows


def unlisted(evidence: Evidence, policy: Policy) -> DataFrame:
    """The rows of unlisted groups that consume: resource, group_id, sla, policy and errors, by what they had committed."""
    groups = that_consume(unlisted_groups(evidence))
    slas = _slas(groups, unlisted_places(evidence).select("group_id", "topic"), policy)
    rows = groups.join(slas, on="group_id", how="left").withColumn("sla", F.coalesce("sla", F.lit(_NONE)))
    rows = rows.withColumn("policy", sla_policy(policy, F.col("group_id"), F.nullif("sla", F.lit(_NONE))))
    return rows.withColumn("resource", _resource(policy))


def _hidden(evidence: Evidence) -> DataFrame:
    """One row, column ``hidden``: which topics are hidden from the auditor, or why that is not known, as text; NULL if none is."""
    topics = hidden_topics(evidence).where(~F.col("topic").isin(*INTERNAL_TOPICS))
    said = ("commits on hidden topics are not shown: ", " topic is", " topics are", " on a broker's disk, but not in metadata: ")
    words = _naming(F.lit(True), F.col("topic"), said)
    disks = None if no_authorizer(evidence) else disks_unread(evidence)
    unknown = f"commits on hidden topics are not shown, and whether topics are hidden is not known: {disks}" if disks else None
    return topics.agg(F.coalesce(words, F.lit(unknown)).alias("hidden"))


def _uncommitted(evidence: Evidence, policy: Policy) -> DataFrame:
    """group_id, sla int and ``uncommitted``: partitions that nobody reads and that have no commit, as text (CON-08, CON-15).

    How many of their records the group still has to read depends on its auto.offset.reset, which is not known.
    """
    is_found = F.col("unread_log").isNull() & F.col("unread_commit").isNull()
    said = (
        *("how much of it is to be read is not known: ", " partition has", " partitions have"),
        " records and neither a commit nor a reader (CON-08, CON-15): ",
    )
    places = bare_partitions(evidence).withColumn("sla", F.coalesce(sla_number(policy, "group_id", "topic"), F.lit(_NONE)))
    unread = F.concat(F.lit("a partition without a reader could not be read: "), F.min(F.coalesce("unread_log", "unread_commit")))
    text = F.coalesce(_naming(is_found, F.col("place"), said), unread)
    return places.groupBy("group_id", "sla").agg(text.alias("uncommitted"))


def _naming(is_found: Column, name: Column, said: tuple[str, str, str, str]) -> Column:
    """How many rows are found and the first five by name, as text; NULL if none is. ``said``: the words before the number, behind one,
    behind several, and before the names."""
    before, one, several, of_names = map(F.lit, said)
    count, names = F.count_if(is_found), F.slice(F.array_sort(F.collect_list(F.when(is_found, name))), 1, 5)
    words = F.concat(before, count, F.when(count == 1, one).otherwise(several), of_names, F.array_join(names, ", "))
    return F.when(count > 0, words)


@shortened
def covered(evidence: Evidence, policy: Policy) -> DataFrame:
    """group_id and sla int, the number of each lag SLA that holds for a group; a group without any has no row.

    A group of which no topic is known has the SLA that holds for all topics.
    """
    return _slas(that_consume(evidence.table("groups")), topics_of_groups(evidence), policy)


def _slas(groups: DataFrame, topics: DataFrame, policy: Policy) -> DataFrame:
    """As :func:`covered`, of these groups and topics (group_id, topic)."""
    named = groups.select("group_id")
    by_topic = topics.join(named, on="group_id", how="left_semi").withColumn("sla", sla_number(policy, "group_id", "topic"))
    bare = named.join(topics, on="group_id", how="left_anti").withColumn("sla", sla_number(policy, "group_id", None))
    return by_topic.select("group_id", "sla").union(bare).where("sla is not null").distinct()


def lag_window(evidence: Evidence, policy: Policy) -> LagWindow:
    """The samples that the window's figures are made of."""
    return evidence.memo("lag_window", lambda: read_window(evidence, policy))


def judged_samples(evidence: Evidence, policy: Policy) -> DataFrame:
    """The samples of this audit's window, judged (spark_jobs.lag.slas.sla_samples)."""
    return sla_samples(
        lag_window(evidence, policy), policy.slas, sla_number(policy, "group_id", "topic"), isolation_of(policy, F.col("group_id"))
    )


def _resource(policy: Policy) -> Column:
    """The group id; with the SLA's name in brackets where a group may have several, or where the id ends as if there was one."""
    partial = [number for number, sla in enumerate(policy.slas) if sla.is_partial]
    named = F.col("sla").isin(partial) | F.endswith(F.col("group_id"), F.lit("]"))
    return F.when(named, F.concat("group_id", F.lit(" ["), F.coalesce("policy.sla", F.lit("")), F.lit("]"))).otherwise(F.col("group_id"))


def _figures(evidence: Evidence, policy: Policy) -> DataFrame:
    """Per group and SLA: the figures of this snapshot (spark_jobs.lag.slas.present_figures), and lacking map<dataset, reason>.

    Lag leaves out partitions that no lag can be demanded of: those of deleted topics, and those of topics that none of the members of
    a Stable group reads any more. Their own rows (group_partition) show them.
    """
    rows = positions(evidence).transform(with_sla, policy).withColumn("sla", F.coalesce("sla", F.lit(_NONE)))
    is_read = ~F.coalesce(F.col("abandoned"), F.lit(False))
    counts = F.col("has_commit") & is_read & F.coalesce(F.col("topic_exists"), F.lit(True))
    # Where it is not known whether the group still reads the topic, no figure is known either. Where a group may have to wait for an open
    # transaction it is not known how late it is; where it is declared that it has to, it is not.
    times = {"lag_ms": F.lit(0), "lag_ms_least": F.lit(0), "lag_ms_most": F.lit(0), "lag_ms_is_bound": F.lit(False)}
    may, must = may_wait(F.col("waits")), F.col("waits") & (F.col("isolation") == READ_COMMITTED)
    timed = {name: F.when(must, none).when(~may, F.col(name)) for name, none in times.items()}
    figures_of = {**{name: F.col(name) for name in ("unread", "held", "behind_sla", "hidden_record")}, **timed}
    rows = rows.withColumns({name: F.when(F.col("abandoned").isNotNull(), value) for name, value in figures_of.items()})
    rows = rows.withColumns({"place": F.concat_ws("-", "topic", F.col("partition").cast("string")), "counts": counts})
    lacking = missing.extra(
        offsets=_first("offsets", F.col("counts") & F.col("unread").isNull()),
        members=_first("members", F.col("counts") & F.col("abandoned").isNull()),
        committed_offsets=_first("committed_offsets", F.col("has_commit").isNull()),
    )
    figures = present_figures(F.col("counts"), range(len(newest(evidence))))
    return rows.groupBy("group_id", "sla").agg(
        *[figure.alias(name) for name, figure in figures.items()], missing.joined(lacking).alias("lacking"), _bare_reads()
    )


def _bare_reads() -> Column:
    """Partitions that members read without a commit of the group, as text (CON-07); NULL if there is none.

    Where their members stand is in the members' memory only.
    """
    records = F.coalesce(offsets_between(F.col("log_start"), F.col("log_end")), F.lit(1))
    is_found = F.col("assigned") & ~F.col("has_commit") & (records > 0)
    said = ("members read ", " partition", " partitions", " on which the group has committed nothing (CON-07): ")
    return _naming(is_found, F.col("place"), said).alias("bare_reads")


def _first(dataset: str, concerned: Column) -> Column:
    return missing.of_its_partitions(F.when(concerned, F.col("errors")[dataset]), F.col("place"))


def _window_figures(evidence: Evidence, policy: Policy) -> DataFrame:
    """Per group and SLA: sla_figures, and length_ms, quiet_ms and quiet of the SLA's window, and recent_within_ms."""
    window = lag_window(evidence, policy)
    columns = "sla int, length_ms bigint, quiet_ms bigint, quiet boolean, recent_within_ms bigint"
    spans = table_of(evidence.spark, sla_spans(window.samples, policy.slas), columns)
    figures = _sla_figures(evidence, policy)
    of_rows = covered(evidence, policy).join(F.broadcast(spans), on="sla", how="inner")
    return of_rows.join(figures, on=["group_id", "sla"], how="left")


def _sla_figures(evidence: Evidence, policy: Policy) -> DataFrame:
    window = lag_window(evidence, policy)
    return evidence.cached_table("sla_figures", lambda: _figures_of(window, judged_samples(evidence, policy)))


def group_burns(evidence: Evidence, policy: Policy) -> DataFrame:
    """How much of the newest hours each group spent outside of its SLAs with a target (spark_jobs.lag.burns.sla_burns)."""
    return sla_burns(_sla_figures(evidence, policy), lag_window(evidence, policy).samples, policy.slas)


def _figures_of(window: LagWindow, samples: DataFrame) -> DataFrame:
    """The SLAs' figures; of rolled-up days already computed, because compiling whole stages saves more there than it costs."""
    figures = sla_figures(samples, window.samples.last_ms)
    if window.samples.days:
        with whole_stages(figures.sparkSession):
            figures.persist().count()
    return figures


def with_minutes(rows: DataFrame) -> DataFrame:
    """The window's time in minutes, and the error budget: the columns of group_sla from minutes_in to budget_left_minutes.

    Needs length_ms, quiet_ms, the columns of ``_COUNTED`` and policy. Each figure that a rule compares is computed exactly and rounded
    once, so that a group which was outside for exactly as long as its target allows keeps it.
    """

    def minutes(ms: Column) -> Column:
        return F.round(ms / _MINUTE_MS).cast("bigint")

    has_sla, target = F.col("length_ms").isNotNull(), F.col("policy.target_percent")
    rows = rows.withColumns({name: F.when(has_sla, F.coalesce(name, F.lit(0))) for name in _COUNTED})
    rows = rows.withColumns({f"minutes_{kind}": minutes(F.col(f"{kind}_ms")) for kind in ("in", "out", "quiet")})
    judged = F.col("in_ms") + F.col("out_ms")
    demanded = F.col("length_ms") - F.col("quiet_ms")
    # 100 - 99.9 is less than 0.1 in doubles; a decimal has the digits of the policy.
    share_out = F.lit(100).cast("decimal(3,0)") - target.cast(_PERCENT)
    allowed = (demanded.cast("decimal(15,0)") * share_out).cast("double") / 100 / _MINUTE_MS
    used = F.when(target.isNotNull(), F.col("out_ms") / _MINUTE_MS)
    return rows.withColumns(
        {
            "minutes_not_assessed": minutes(F.col("length_ms")) - F.col("minutes_in") - F.col("minutes_out") - F.col("minutes_quiet"),
            "known_percent": F.when(demanded > 0, judged * 100 / demanded),
            "availability_percent": F.when(judged > 0, F.col("in_ms") * 100 / judged),
            "budget_allowed_minutes": allowed,
            "budget_used_minutes": used,
            "budget_left_minutes": allowed - used,
        }
    )


_COUNTED = (
    *("in_ms", "out_ms", "samples", "samples_outside"),
    *("recent_lag_known", "recent_lag_outside", "recent_time_known", "recent_time_outside"),
)
