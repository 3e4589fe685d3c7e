"""What the pages of consumer groups show: all groups of a cluster, and one group."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from kafka_audit.airflow.web.asked import Answer, Asked
from kafka_audit.airflow.web.marks import kind
from kafka_audit.errors import IntegrityError
from kafka_audit.index.group_charts import figure_chart, figures, is_drawn
from kafka_audit.index.group_history import PastGroup, group_history, lag_over_time
from kafka_audit.index.group_query import SORTS, WORST_IS_LARGEST, GroupQuery, find_groups
from kafka_audit.index.group_tables import BEHAVIOUR, PARTITIONS, SLAS
from kafka_audit.index.overview import GROUPS
from kafka_audit.index.read import IndexedAudit
from kafka_audit.index.shown import without_root
from kafka_audit.report.charts import lag_chart
from kafka_audit.safe_text import utc

_COLUMNS = [
    *("group_id", "place", "state", "status", "partitions", "partitions_in_trouble", "unknown", "lag", "lag_ms", "lag_ms_is_bound"),
    *("lost", "time_to_loss_ms", "expires_in_ms", "targets", "targets_missed", "budget_used_share"),
]

_SORTED_BY = (
    *(("place", "the worst first"), ("name", "name"), ("lag", "lag"), ("time", "lag in time"), ("lost", "lost records")),
    *(("loss", "next loss"), ("expiry", "expiry of offsets"), ("budget", "error budget used")),
)
_LETTERS = {"good": "\N{CHECK MARK}", "bad": "!", "warn": "~", "none": "\N{EN DASH}", "gap": "?"}


def groups_page(asked: Asked, *, text: str = "", status: str = "", sort: str = "place", order: str = "") -> Answer:
    """The groups of the newest audit, or of the one in the cursor: pages of one list belong together while newer audits are sealed."""
    shown = asked.shown()
    index = asked.index(shown)
    if index is None:
        return asked.nothing(shown, "The groups of this cluster cannot be shown.")
    sort = sort if sort in SORTS else "place"
    descending = order == "desc" if order in ("asc", "desc") else sort in WORST_IS_LARGEST
    query = GroupQuery(text=text, status=status, sort=sort, descending=descending, start=asked.start)
    try:
        found = find_groups(lambda columns: index.parts(GROUPS, columns), query, _COLUMNS)
    except IntegrityError as problem:
        return asked.nothing(shown, f"The groups of this cluster cannot be shown: {without_root(asked.root, problem)}")
    address = {"q": text, "status": status, "sort": sort, "order": "desc" if descending else "asc"}
    return asked.answer(
        "groups.html.j2",
        shown,
        index,
        sorts=_SORTED_BY,
        found=found,
        query=query,
        address={name: value for name, value in address.items() if value},
        largest_first=WORST_IS_LARGEST,
    )


def group_page(asked: Asked, group_id: str) -> Answer:
    """One group of the newest audit, and how it stood in the audits before."""
    shown = asked.shown()
    index = shown.index
    if index is None:
        return asked.nothing(shown, "Groups of this cluster cannot be shown.", group_id)
    try:
        row = index.group(group_id)
        if row is None:
            return asked.nothing(shown, f"Audit {index.overview.audit_id} saw no such group.", group_id)
        about = _about(asked, index, group_id, row)
    except IntegrityError as problem:
        return asked.nothing(shown, f"This group cannot be shown: {without_root(asked.root, problem)}", group_id)
    return asked.answer("group.html.j2", shown, index, group=row, **about)


def _cell(asked: Asked, one: PastGroup) -> dict[str, str]:
    """The square of one audit in the strip."""
    status = str(one.known("status") or "NOT_ASSESSED") if one.row else ""
    kind_of = kind(status) if one.row else "gap"
    said = status if one.row else f"not known, {one.why}"
    address = asked.link_to(one.audit_id)
    return {"address": address, "kind": kind_of, "letter": _LETTERS[kind_of], "words": f"{utc(one.started_at)}: {said}"}


def _about(asked: Asked, index: IndexedAudit, group_id: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """What the page of a group shows beside its row."""
    of_group = ("group_id", group_id)
    past = group_history(asked.root, index, group_id, asked.may_see)
    slas = index.rows(SLAS, of_group).to_pylist()
    behaviour = index.rows(BEHAVIOUR, of_group).to_pylist() if BEHAVIOUR in index.files else []
    series, records = lag_over_time(index, group_id), _limit_records(slas, row)
    return {
        "past": past,
        "cells": [_cell(asked, one) for one in past],
        "slas": [{**sla, "burn": burn_of(sla)} for sla in slas],
        "partitions": index.rows(PARTITIONS, of_group).sort_by("place").to_pylist(),
        "behaviour": behaviour[0] if behaviour else None,
        "has_history": BEHAVIOUR in index.files,
        "chart": lag_chart(1, group_id, series, records) if series else None,
        "charts": _charts(past, slas, records),
    }


def _charts(past: Sequence[PastGroup], slas: Sequence[Mapping[str, Any]], records: int | None) -> list[tuple[str, Markup]]:
    """The lowest availability and the largest lag of several SLAs have no one limit: one that keeps its own would look broken."""
    milliseconds, target = (slas[0][name] if len(slas) == 1 else None for name in ("max_lag_ms", "target_percent"))
    drawn = figures(records, milliseconds, target)
    return [(figure.title, figure_chart(figure, past)) for figure in drawn if is_drawn(figure, past)]


def _limit_records(slas: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> int | None:
    """The limit to compare the sum of lags with: None unless a single SLA covers every partition in the sum."""
    if len(slas) != 1 or (slas[0]["partition_count"] or 0) < (row["partitions"] or 0) - (row["unknown"] or 0):
        return None
    limit: int | None = slas[0]["max_lag_records"]
    return limit


def burn_of(sla: Mapping[str, Any]) -> float | None:
    """How fast an error budget is used up: its used share divided by the measured share of the window; above 1 it does not last.

    None if there is no budget, or too little is known.
    """
    minutes = [sla[f"minutes_{name}"] for name in ("in", "out", "quiet", "not_assessed")]
    allowed, used = sla["budget_allowed_minutes"], sla["budget_used_minutes"]
    if None in minutes or not allowed or used is None or not sum(minutes[:3]):
        return None
    return float(used / allowed / (sum(minutes[:3]) / sum(minutes)))
