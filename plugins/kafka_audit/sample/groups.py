"""The tables of groups on one day: the template's rows, with the lag, losses and error budgets of the story."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from kafka_audit.lag.position import position_of
from kafka_audit.sample.day import Day
from kafka_audit.sample.story import LIMIT_RECORDS, SLA_TARGETS, WINDOW_DAYS, window_days
from kafka_audit.sample.template import Template

RETAINED = 30_000
"""Records that a partition keeps."""
_BUCKETS_A_DAY = 4
_DAY_MS = 86_400_000
_HISTORY_MS = 3 * _DAY_MS
_SECONDS_A_RECORD = 8.64

Row = dict[str, Any]


def group_tables(template: Template, day: Day) -> dict[str, pa.Table]:
    """group_partitions, group_slas and lag_series of the day, in the template's columns."""
    partitions = list(_partitions(template.lag["group_partitions"].to_pylist(), day))
    slas = [_sla(row, day, [one for one in partitions if one["group_id"] == row["group_id"]]) for row in _once(template.lag["group_slas"])]
    groups = sorted({row["group_id"] for row in partitions})
    found = {"group_partitions": partitions, "group_slas": slas, "lag_series": list(_series(day, groups))}
    return {name: pa.Table.from_pylist(rows, schema=template.lag[name].schema) for name, rows in found.items()}


def _once(slas: pa.Table) -> list[Row]:
    """One row for each group: the sample policy has one SLA for each."""
    return list({row["group_id"]: row for row in reversed(slas.to_pylist())}.values())[::-1]


def _partitions(rows: Iterable[Row], day: Day) -> Iterator[Row]:
    by_group: dict[str, list[Row]] = {}
    for row in rows:
        by_group.setdefault(row["group_id"], []).append(row)
    for group_id, own in by_group.items():
        lag, count = day.lag(group_id), len(own)
        for number, row in enumerate(own):
            yield _partition(row, day, lag // count + (lag % count if number == 0 else 0))


def _partition(row: Row, day: Day, lag: int) -> Row:
    """A group partition that is ``lag`` records behind, unless the story says that it loses records."""
    story = day.losses.get(row["resource"])
    lost = story.lost.get(day.number, 0) if story else 0
    hours = story.hours_left.get(day.number) if story else None
    lag = story.unread if story else lag
    end = day.written
    start = end - lag if lost else max(0, end - RETAINED)
    committed = start - lost if lost else end - lag
    found = position_of(committed, start, end)
    status, why = _status(row, day, found.lag, lost, hours)
    left = None if hours is None else round(hours * 3_600_000)
    changed: Row = {
        **{"topic_exists": True, "has_commit": True, "abandoned": False, "recreated": False, "truncated": 0},
        **{"committed": committed, "log_start": start, "log_end": end, "last_stable": end, "committed_before": None},
        **{"lag": found.lag, "lost": found.lost, "beyond_end": found.beyond_end, "margin": found.margin},
        **{"hidden_record": None, "record_offset": None, "first_is_record": False, "only_markers_unread": None, "rewinds": 0},
        **{"history_ms": _HISTORY_MS, "status_window_ms": _HISTORY_MS},
        **{
            "idle_snapshots": 0,
            "idle_ms": 0,
            "idle_most_ms": 0,
            "empty_ms": 0,
            "unchanged_ms": 0,
            "expires_in_ms": None,
            "detected_within_ms": 900_000,
        },
        **{"lag_ms": round(found.lag * _SECONDS_A_RECORD * 1000), "lag_ms_method": "record timestamp" if found.lag else "caught up"},
        **{"lag_ms_is_bound": False, "lag_ms_least": None, "lag_ms_most": None, "behind_sla": False},
        **{"status": status, "status_reason": why, "burrow": "OK" if status == "OK" else "WARN"},
        **{"produced_per_s": 0.116, "consumed_per_s": 0.0 if story else 0.116, "expired_per_s": 0.116 if story else 0.0},
        **{"catch_up_ms": None if story or day.rises(row["group_id"]) else 0 if not found.lag else _DAY_MS},
        **{"time_to_loss_ms": left, "time_to_loss_by": None if left is None else "retention.ms"},
        **{"headroom_timestamp_ms": None, "headroom_offset": None, "changed_within_ms": None, "behaviour": None},
        **{"behaviour_reason": "sample data: no commit history", "errors": None},
    }
    return {**row, **{name: value for name, value in changed.items() if name in row}}


def _status(row: Row, day: Day, lag: int, lost: int, hours: float | None) -> tuple[str, str]:
    if lost:
        return "LOST", f"sample data: up to {lost} deleted unread; {lag} unread"
    if hours is not None:
        within = "LOSING" if hours <= 24 else "GROWING"
        return within, f"sample data: loss in {round(hours * 3600)} s by retention.ms; at these rates never caught up; {lag} unread"
    if not lag:
        return "OK", "sample data: caught up"
    if day.rises(row["group_id"]):
        return "GROWING", f"sample data: the lag rises; {lag} unread"
    return "SLOW", f"sample data: the lag falls; {lag} unread"


def _sla(row: Row, day: Day, partitions: list[Row]) -> Row:
    group_id = row["group_id"]
    lag, found = sum(one["lag"] for one in partitions), day.availability(group_id)
    known = found.minutes_in + found.minutes_out
    worst = max(partitions, key=lambda one: int(one["lag"]), default=None)
    changed: Row = {
        **{"partition_count": len(partitions), "lag_known": lag, "lag_least": lag, "lag_held": 0, "unknown_partitions": 0},
        **{"beyond_partitions": 0, "behind_partitions": 0, "behind_partition": None, "unasked_partitions": 0, "unmeasured": None},
        **{"lag_max": worst["lag"] if worst else 0, "lag_max_partition": f"{worst['topic']}-{worst['partition']}" if worst else None},
        **{"lag_ms": max((one.get("lag_ms") or 0 for one in partitions), default=0), "lag_ms_is_bound": False, "history_ms": _HISTORY_MS},
        **{"quiet": False, "some_topics_only": False, "still_ms": 0, "lag_growth": 0.0, "errors": None, "hidden_record": None},
        **{"recent_lag_known": 1, "recent_lag_outside": int(lag > LIMIT_RECORDS), "recent_time_known": 0, "recent_time_outside": 0},
        **{"minutes_in": found.minutes_in, "minutes_out": found.minutes_out, "minutes_quiet": 0, "minutes_not_assessed": found.unknown},
        **{"known_percent": 100 * known / (known + found.unknown), "availability_percent": found.percent},
        "budget_allowed_minutes": found.allowed,
        **{"budget_used_minutes": None if found.allowed is None else float(found.minutes_out)},
        **{"budget_left_minutes": None if found.allowed is None else round(found.allowed - found.minutes_out, 1)},
        "policy": {**row["policy"], **_of_policy(group_id)},
    }
    return {**row, **{name: value for name, value in changed.items() if name in row}}


def _of_policy(group_id: str) -> Row:
    """The fields of a group's SLA, as the sample policy's slas.yaml has them."""
    return {
        **{"sla": sla_name(group_id), "max_lag_records": LIMIT_RECORDS, "max_lag_ms": None, "max_no_progress_ms": None},
        **{"target_percent": SLA_TARGETS.get(group_id), "window_days": window_days(group_id)},
    }


def sla_name(group_id: str) -> str:
    """The name of the SLA that a group has in the sample policy."""
    return group_id if group_id in SLA_TARGETS else "default"


def slas_file() -> Mapping[str, Any]:
    """The content of the sample policy's slas.yaml."""
    promised = [
        {
            **{"pattern": group_id, "name": sla_name(group_id), "max_lag_records": LIMIT_RECORDS},
            "availability": {"target_percent": target, "window_days": WINDOW_DAYS},
        }
        for group_id, target in SLA_TARGETS.items()
    ]
    return {"version": 1, "groups": [*promised, {"pattern": "*", "name": "default", "max_lag_records": LIMIT_RECORDS}]}


def _series(day: Day, groups: Iterable[str]) -> Iterator[Row]:
    """Buckets of six hours from before the first audit to this one."""
    begin = day.cluster.first - 0.5
    first_ms = round(day.taken.timestamp() * 1000) - round((day.number - begin) * _DAY_MS)
    for group_id in groups:
        buckets: dict[int, list[int]] = {}
        for at, lag in day.history(group_id):
            buckets.setdefault(int((at - begin) * _BUCKETS_A_DAY + 1e-6), []).append(lag)
        stories = [one for one in day.cluster.losses if one.resource.startswith(f"{group_id}:")]
        for number, lags in buckets.items():
            then = int(begin + (number + 1) / _BUCKETS_A_DAY)
            told = [one for one in stories if then in one.lost or then in one.hours_left]
            yield {
                **{"group_id": group_id, "bucket_ms": first_ms + number * _DAY_MS // _BUCKETS_A_DAY},
                **{"lag": max(lags) + sum(one.unread for one in told), "lost": sum(one.lost.get(then, 0) for one in told)},
                **{"in_sla_share": sum(lag <= LIMIT_RECORDS for lag in lags) / len(lags), "known_share": 1.0},
            }
