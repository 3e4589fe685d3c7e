"""The status of a group partition: the first rule that holds, with the figures that decided it. docs/lag.md explains each."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.lag.movement import SAMPLES
from spark_jobs.lag.time import reads_in_time

LOSING_WITHIN_MS = 86_400_000
"""Every lag that does not fall is lost one day where retention deletes; LOSING is for those who have less than a day."""

IDLE_MS = 600_000
"""How long a commit must stand before it counts as standing still, as for CON-06: twice the default of max.poll.interval.ms."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """``status`` where the SQL ``condition`` is true; ``words`` say when that is, and the SQL ``figures`` what was seen."""

    status: str
    words: str
    condition: str
    figures: str


_STANDS = "concat('committed ', committed, ', log ', coalesce(log_start, 'unknown'), ' to ', log_end)"
_LAG = "concat(lag, ' unread')"
_RATES = (
    "concat(coalesce(format_number(produced_per_s, '0.###'), 'an unknown number of'), ' records/s written, ',"
    " coalesce(format_number(consumed_per_s, '0.###'), 'an unknown number of'), ' read')"
)
_SPAN = "concat(samples, ' samples of ', cast(status_window_ms / 1000 as bigint), ' s')"
_CATCH_UP = "coalesce(concat('caught up in ', cast(catch_up_ms / 1000 as bigint), ' s at these rates'), 'at these rates never caught up')"
_HAS_MEMBERS = "coalesce(state not in ('Empty', 'Dead', '', 'Unknown'), false)"
_HAS_NO_MEMBERS = "coalesce(state in ('Empty', 'Dead'), false)"


def _figures(*texts: str) -> str:
    return f"concat_ws('; ', {', '.join(texts)})"


RULES = (
    Rule(
        status="NOT_ASSESSED",
        words="the commit or an offset of the log could not be read, or it is not known whether the topic exists, or "
        "whether the group still reads it",
        condition="has_commit is null or topic_exists is null or (has_commit and topic_exists and (lag is null or abandoned is null))",
        figures="""case when has_commit is null then concat_ws(': ', 'the commit could not be read', errors['committed_offsets'])
            when topic_exists is null then concat_ws(': ', 'it is not known whether the topic exists', errors['topics'])
            when lag is null then concat_ws(': ', concat('committed ', committed, ', but the log could not be read'), errors['offsets'])
            else concat('committed ', committed, ', but ', errors['members']) end""",
    ),
    Rule(
        status="ORPHAN",
        words="committed on a topic, or on a partition of it, that does not exist",
        condition="has_commit and not topic_exists",
        figures="concat('committed ', committed, ' on a ', case when is_gone then 'partition that the topic does not have' "
        "else 'topic that does not exist' end)",
    ),
    Rule(
        status="NO_COMMIT",
        words="no committed offset, on a partition that is assigned to a member or that the snapshot asked for",
        condition="not has_commit",
        figures="""concat(case when assigned then 'assigned to a member' else 'asked for' end, ', without a committed offset; log ',
            coalesce(log_start, 'unknown'), ' to ', coalesce(log_end, 'unknown'))""",
    ),
    Rule(
        status="ABANDONED",
        words="the group is Stable and none of its members reads the topic any more",
        condition="abandoned",
        figures=_figures("'no member reads the topic any more'", _STANDS, _LAG),
    ),
    Rule(
        status="LOST",
        words="the log starts above the committed offset, or ends below it",
        condition="lost > 0 or beyond_end > 0",
        figures=_figures(
            """case when lost > 0 then concat('up to ', lost, ' deleted unread')
            else concat(beyond_end, ' beyond the end: ', case when recreated then 'the topic was recreated'
                when truncated > 0 then concat('the log went back by ', truncated)
                else 'truncated, recreated, or offsets of another log' end) end""",
            _STANDS,
            f"case when beyond_end = 0 then {_LAG} end",
        ),
    ),
    Rule(
        status="REWOUND",
        words="the committed offset is lower than in an earlier sample of the window",
        condition="rewound > 0",
        figures=_figures("concat('committed ', highest_commit, ' before, ', rewound, ' back')", _STANDS, _LAG, _SPAN),
    ),
    Rule(
        status="OK",
        words="caught up: nothing is unread, or only transaction markers and records of aborted transactions",
        condition="lag = 0 or only_markers_unread",
        figures=_figures(
            "case when lag > 0 then 'caught up but for ends of transactions and aborted records' else 'caught up' end", _STANDS
        ),
    ),
    Rule(
        status="OK",
        words="the group has members and its commit is at the last stable offset, where an open transaction begins",
        condition=f"at_last_stable and {_HAS_MEMBERS}",
        figures=_figures("concat('caught up with the last stable offset; an open transaction holds ', lag, ' back (TXN-01)')", _STANDS),
    ),
    Rule(
        status="LOSING",
        words="at present rates unread records are deleted within a day, and before the group has caught up",
        condition=f"samples >= 2 and time_to_loss_ms <= {LOSING_WITHIN_MS} and (catch_up_ms is null or time_to_loss_ms < catch_up_ms)",
        figures=_figures(
            "concat('loss in ', cast(time_to_loss_ms / 1000 as bigint), ' s by ', time_to_loss_by)", _CATCH_UP, _LAG, _RATES, _SPAN
        ),
    ),
    Rule(
        status="INSUFFICIENT_HISTORY",
        words=f"the window has fewer than {SAMPLES} samples, or all of them show the same commit, with unread records after it, for less "
        f"than {IDLE_MS // 60_000} minutes",
        condition=f"samples < {SAMPLES} or (all_idle and idle_ms < {IDLE_MS})",
        figures=_figures(
            f"case when samples < {SAMPLES} then concat(samples, ' of {SAMPLES} samples')"
            f" else concat('unchanged for ', cast(idle_ms / 1000 as bigint), ' of {IDLE_MS // 1000} s') end",
            _LAG,
            _STANDS,
        ),
    ),
    Rule(
        status="STOPPED",
        words="all samples of the window show the same commit with unread records after it, and the group has no members",
        condition=f"all_idle and {_HAS_NO_MEMBERS}",
        figures=_figures("concat('no members, state ', state)", "concat('unchanged in ', samples, ' samples')", _LAG, _SPAN),
    ),
    Rule(
        status="STALLED",
        words="all samples of the window show the same commit with unread records after it, and the group has members, or its state is not "
        "known",
        condition="all_idle",
        figures=_figures(
            "coalesce(concat('members, state ', nullif(state, '')), 'it is not known whether it has members')",
            "concat('unchanged in ', samples, ' samples')",
            _LAG,
            _SPAN,
        ),
    ),
    Rule(
        status="GROWING",
        words="the regression line through the lags of the window rises, the lag is larger at its end than at its start, and the group "
        "falls behind",
        condition="lag_rises and lag > first_lag and not keeps_up",
        figures=_figures("concat('lag from ', first_lag, ' to ', lag)", _RATES, _SPAN),
    ),
    Rule(
        status="SLOW",
        words="the group has not read everything that was in the log one commit interval ago, is not proven to keep its SLA in seconds, "
        "and at present rates does not catch up within that SLA (without an SLA: does not catch up at all)",
        condition="not fresh and not coalesce(not behind_sla, false) and (catch_up_ms is null or catch_up_ms > sla_seconds * 1000)",
        figures=_figures(_CATCH_UP, "concat('SLA ', sla_seconds, ' s')", _LAG, _RATES, _SPAN),
    ),
    Rule(
        status="OK",
        words="none of these, with a known lag and enough samples",
        condition=f"lag is not null and samples >= {SAMPLES}",
        figures=_figures(
            "case when fresh then 'keeps up' when catch_up_ms is null then 'within its SLA' else 'catches up' end", _LAG, _RATES, _SPAN
        ),
    ),
)


def with_status(rows: DataFrame) -> DataFrame:
    """Adds status and status_reason (kafka_audit.catalogue.rows).

    Needs the columns that movement, time, loss and slas add, and at_last_stable.
    """
    # Everything that was in the log one commit interval ago has been read: a group that keeps up has no other unread records.
    before = rows.columns
    fresh = F.col("read_all_before") & ~F.coalesce("behind_sla", F.lit(False))
    rows = rows.withColumn("fresh", F.coalesce(fresh, F.lit(False)))
    rows = rows.withColumn("keeps_up", F.col("fresh") & reads_in_time())
    cases = " ".join(f"when {rule.condition} then {number}" for number, rule in enumerate(RULES))
    rows = rows.withColumn("rule", F.expr(f"case {cases} end"))
    words = " ".join(f"when {number} then {rule.figures}" for number, rule in enumerate(RULES))
    names = " ".join(f"when {number} then '{rule.status}'" for number, rule in enumerate(RULES))
    return rows.select(
        *before,
        F.expr(f"case rule {names} else 'NOT_ASSESSED' end").alias("status"),
        F.expr(f"case rule {words} else 'no rule gives an answer for these values' end").alias("status_reason"),
    )
