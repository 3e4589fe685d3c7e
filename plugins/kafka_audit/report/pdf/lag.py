"""Lag and loss in the PDF: what was lost, what will be lost next, the worst groups and partitions, and charts of their lag."""

from kafka_audit import safe_text
from kafka_audit.report import words
from kafka_audit.report.charts import in_words, top_of_scale
from kafka_audit.report.lag import GroupPartition
from kafka_audit.report.lag_groups import GroupLag, GroupSla
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import cut, name

_GROUPS = 25
_PARTITIONS = 25
_BARS = 12
_CHARTS = 6
_KINDS = {
    **dict.fromkeys(("LOST", "LOSING"), "fail"),
    **dict.fromkeys(("REWOUND", "STOPPED", "STALLED", "GROWING", "SLOW"), "error"),
    **dict.fromkeys(("NO_COMMIT", "ORPHAN", "ABANDONED"), "none"),
    **dict.fromkeys(("INSUFFICIENT_HISTORY", "NOT_ASSESSED"), "gap"),
    "OK": "pass",
}


def content(report: Report) -> dict[str, object]:
    """What is printed about lag and loss; ``ran`` is False if nothing is known about it."""
    found = report.lag
    past = report.commit_history
    bars = [one for one in found.groups if one.known][:_BARS]
    charts = [one for one in found.groups if one.history is not None and len(one.history.lag) > 1][:_CHARTS]
    return {
        "ran": found.ran,
        "loss": words.loss(found.loss),
        "no_loss": words.no_loss(found),
        "loss_unknown": words.loss_not_known(found),
        "happened": [_partition(one) for one in found.loss.happened],
        "happened_more": max(0, found.loss.partitions - len(found.loss.happened)),
        "next": [_partition(one) for one in found.loss.next],
        "groups": [_group(one) for one in found.groups[:_GROUPS]],
        "group_count": safe_text.grouped(found.group_count),
        "groups_more": max(0, found.group_count - min(len(found.groups), _GROUPS)),
        "partitions": [_partition(one) for one in found.partitions[:_PARTITIONS]],
        "partition_count": safe_text.grouped(found.partition_count),
        "partitions_more": max(0, found.behind_count - min(len(found.partitions), _PARTITIONS)),
        "unknown": safe_text.grouped(found.unknown_count) if found.unknown_count else None,
        "without_commit": safe_text.grouped(found.without_commit_count) if found.without_commit_count else None,
        "taken": safe_text.utc(report.collection.started_at),
        "bars": {
            "top": max((one.lag for one in bars), default=0),
            "rows": [{"group": name(one.group_id), "lag": one.lag, "shown": words.counted(one.lag, "record")} for one in bars],
            "top_shown": safe_text.grouped(max((one.lag for one in bars), default=0)),
            "alt": cut("; ".join(f"{safe_text.visible(one.group_id)[:60]} {one.lag:,}" for one in bars), 1500),
        },
        "charts": [_chart(one) for one in charts],
        "commits": _commits(report) if past.recorded else None,
    }


def _commits(report: Report) -> str:
    past = report.commit_history
    if past.folder is None:
        return f"Not read: {cut(past.reason or 'no reason was recorded', 300)}. Controls answer from snapshots and declarations instead."
    window = f"{safe_text.utc(past.observed_from)} to {safe_text.utc(past.end)}"
    return f"Read from {window}: {words.counted(past.group_count, 'group')}; the page report.html lists what they did."


def _statuses(group: GroupLag) -> list[dict[str, object]]:
    return [
        {"kind": _KINDS.get(status, "gap"), "word": status.replace("_", " ").lower(), "count": safe_text.grouped(count)}
        for status, count in group.statuses
    ]


def _group(one: GroupLag) -> dict[str, object]:
    known = one.known > 0
    return {
        "group": name(one.group_id),
        "state": f"{one.group_type}, {one.state}",
        "partitions": safe_text.grouped(one.partitions),
        "lag": safe_text.grouped(one.lag) if known else None,
        "beyond": safe_text.grouped(one.beyond_end) if one.beyond_end else None,
        "unknown": safe_text.grouped(one.unknown) if one.unknown else None,
        "time": words.lag_time(one.lag_ms, one.lag_ms_is_bound, one.lag_ms_method),
        "lost": safe_text.grouped(one.lost) if known else None,
        "any_lost": one.lost > 0,
        "to_loss": words.duration(one.time_to_loss_ms) if one.time_to_loss_ms is not None else None,
        "statuses": _statuses(one),
        "slas": [_sla(sla) for sla in one.slas if sla.target_percent is not None],
    }


def _sla(sla: GroupSla) -> str:
    met = {True: "met", False: "not met", None: "not known whether it is met"}[sla.target_met]
    inside = words.percentage(sla.availability_percent)
    return f"SLA {sla.sla}: {met}; inside in {inside} of the time that is known, target {sla.target_percent:g}%"


def _partition(one: GroupPartition) -> dict[str, object]:
    time = words.lag_time(one.lag_ms, one.lag_ms_is_bound, one.lag_ms_method)
    status = one.status or "NOT_ASSESSED"
    return {
        "group": name(one.group_id),
        "partition": name(f"{one.topic}-{one.partition}"),
        "kind": _KINDS.get(status, "gap"),
        "status": str(status).replace("_", " ").lower(),
        "lost": safe_text.grouped(one.lost),
        "any_lost": bool(one.lost),
        "lag": safe_text.grouped(one.lag),
        "beyond": safe_text.grouped(one.beyond_end) if one.beyond_end else None,
        "time": time,
        "committed": safe_text.grouped(one.committed),
        "log": f"{safe_text.grouped(one.log_start)} to {safe_text.grouped(one.log_end)}",
        "to_loss": words.duration(one.time_to_loss_ms) if one.time_to_loss_ms is not None else None,
        "by": one.time_to_loss_by,
        "rates": f"{words.rate(one.produced_per_s)} in, {words.rate(one.consumed_per_s)} out",
    }


def _chart(one: GroupLag) -> dict[str, object]:
    history = one.history
    if history is None:
        raise AssertionError(one.group_id)
    limit = one.limit_records
    count = len(history.lag)
    times = [history.start_ms + history.step_ms * count * part // 4 for part in range(5)]
    return {
        "group": name(one.group_id),
        "top": top_of_scale(history, limit),
        "limit": limit,
        "lag": list(history.lag),
        "lost": [bool(records) for records in history.lost],
        "ticks": [words.minute(at) for at in times],
        "scale": [safe_text.grouped(top_of_scale(history, limit)), "0"],
        "step": words.duration(history.step_ms),
        "words": cut(in_words(history, limit), 1000),
        "alt": cut(in_words(history, limit), 1000),
    }
