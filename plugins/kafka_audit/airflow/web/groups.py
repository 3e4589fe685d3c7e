"""The pages of consumer groups: all groups of a cluster, and one group."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from kafka_audit.airflow.web.access import AskedCluster, Rights, root
from kafka_audit.airflow.web.answers import page, way_up
from kafka_audit.airflow.web.marks import kind
from kafka_audit.audit.listing import MayRead, find_audit
from kafka_audit.errors import IntegrityError
from kafka_audit.index.group_charts import figure_chart, figures, is_drawn
from kafka_audit.index.group_history import PastGroup, group_history, lag_over_time
from kafka_audit.index.group_query import SORTS, WORST_IS_LARGEST, GroupQuery, find_groups
from kafka_audit.index.group_tables import BEHAVIOUR, PARTITIONS, SLAS
from kafka_audit.index.read import IndexedAudit
from kafka_audit.index.shown import MaySee, Shown, pinned_audit, shown_audit, without_root
from kafka_audit.report import words
from kafka_audit.report.charts import lag_chart
from kafka_audit.report.lag import DAY_MS
from kafka_audit.safe_text import utc

router = APIRouter(prefix="/clusters/{cluster}")

LONGEST = 40_000
"""The longest name in an address: a group id may have 32,767 bytes."""
MOST_ROWS = 100_000_000

Name = Annotated[str, Query(max_length=LONGEST)]
Start = Annotated[int, Query(alias="from", ge=0, le=MOST_ROWS)]
_COLUMNS = [
    *("group_id", "place", "state", "status", "partitions", "partitions_in_trouble", "unknown", "lag", "lag_ms", "lag_ms_is_bound"),
    *("lost", "time_to_loss_ms", "expires_in_ms", "targets", "targets_missed", "budget_used_share"),
]

_SORTED_BY = (
    *(("place", "the worst first"), ("name", "name"), ("lag", "lag"), ("time", "lag in time"), ("lost", "lost records")),
    *(("loss", "next loss"), ("expiry", "expiry of offsets"), ("budget", "error budget used")),
)
_LETTERS = {"good": "\N{CHECK MARK}", "bad": "!", "warn": "~", "none": "\N{EN DASH}", "gap": "?"}


@router.get("/groups/")
def groups(
    *,
    request: Request,
    cluster: AskedCluster,
    may_read: Rights,
    q: Name = "",
    status: Name = "",
    sort: Name = "place",
    order: Name = "",
    audit: Name = "",
    start: Start = 0,
) -> Response:
    """The groups of the newest audit, or of the one in the cursor: pages of one list belong together while newer audits are sealed."""
    shown = shown_audit(root(), cluster, seen(cluster, may_read))
    index = (pinned_audit(root(), cluster, audit, seen(cluster, may_read)) if audit else None) or shown.index
    if index is None:
        return nothing(request, shown, cluster, "The groups of this cluster cannot be shown.")
    sort = sort if sort in SORTS else "place"
    descending = order == "desc" if order in ("asc", "desc") else sort in WORST_IS_LARGEST
    query = GroupQuery(text=q, status=status, sort=sort, descending=descending, start=start)
    try:
        found = find_groups(index.groups(_COLUMNS), query)
    except IntegrityError as problem:
        return nothing(request, shown, cluster, f"The groups of this cluster cannot be shown: {without_root(root(), problem)}")
    address = {"q": q, "status": status, "sort": sort, "order": "desc" if descending else "asc"}
    return page(
        request,
        "groups.html.j2",
        words=words,
        day=DAY_MS,
        sorts=_SORTED_BY,
        cluster=cluster,
        shown=shown,
        index=index,
        pinned_gone=bool(audit) and index.audit.path.name != audit,
        newer=bool(audit) and shown.index is not None and shown.index.audit.path.name != index.audit.path.name,
        found=found,
        query=query,
        address={name: value for name, value in address.items() if value},
        largest_first=WORST_IS_LARGEST,
    )


@router.get("/groups/one")
def group(request: Request, cluster: AskedCluster, may_read: Rights, id: Name) -> Response:
    """One group of the newest audit, and how it stood in the audits before."""
    shown = shown_audit(root(), cluster, seen(cluster, may_read))
    index = shown.index
    if index is None:
        return nothing(request, shown, cluster, "Groups of this cluster cannot be shown.")
    try:
        row = index.group(id)
        if row is None:
            return nothing(request, shown, cluster, f"Audit {index.overview.audit_id} saw no such group.", name=id)
        about = _about(index, id, row, seen(cluster, may_read))
    except IntegrityError as problem:
        return nothing(request, shown, cluster, f"This group cannot be shown: {without_root(root(), problem)}", name=id)
    cells = [_cell(request, cluster, one) for one in about["past"]]
    return page(
        request, "group.html.j2", words=words, day=DAY_MS, cluster=cluster, shown=shown, index=index, group=row, cells=cells, **about
    )


def _cell(request: Request, cluster: str, one: PastGroup) -> dict[str, str]:
    """The square of one audit in the strip."""
    status = str(one.known("status") or "NOT_ASSESSED") if one.row else ""
    kind_of = kind(status) if one.row else "gap"
    said = status if one.row else f"not known, {one.why}"
    address = f"{way_up(request)}audits/{cluster}/{quote(one.audit_id)}/"
    return {"address": address, "kind": kind_of, "letter": _LETTERS[kind_of], "words": f"{utc(one.started_at)}: {said}"}


def _about(index: IndexedAudit, group_id: str, row: Mapping[str, Any], may_see: MaySee) -> dict[str, Any]:
    """What the page of a group shows beside its row."""
    of_group = ("group_id", group_id)
    past = group_history(root(), index, group_id, may_see)
    slas = index.rows(SLAS, of_group).to_pylist()
    behaviour = index.rows(BEHAVIOUR, of_group).to_pylist() if BEHAVIOUR in index.files else []
    series, records = lag_over_time(index, group_id), _limit_records(slas, row)
    return {
        "past": past,
        "slas": [{**sla, "burn": burn_of(sla)} for sla in slas],
        "partitions": index.rows(PARTITIONS, of_group).sort_by("place").to_pylist(),
        "behaviour": behaviour[0] if behaviour else None,
        "has_history": BEHAVIOUR in index.files,
        "chart": lag_chart(1, group_id, series, records) if series else None,
        "charts": _charts(past, slas, records),
    }


def _charts(past: Sequence[PastGroup], slas: Sequence[Mapping[str, Any]], records: int | None) -> list[tuple[str, Markup]]:
    times = [sla["max_lag_ms"] for sla in slas if sla["max_lag_ms"] is not None]
    targets = [sla["target_percent"] for sla in slas if sla["target_percent"] is not None]
    drawn = figures(records, min(times, default=None), max(targets, default=None))
    return [(figure.title, figure_chart(figure, past)) for figure in drawn if is_drawn(figure, past)]


def _limit_records(slas: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> int | None:
    """The limit to compare the sum of lags with: None unless a single SLA covers every partition in the sum."""
    if len(slas) != 1 or (slas[0]["partition_count"] or 0) < row["partitions"] - row["unknown"]:
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


def seen(cluster: str, may_read: MayRead) -> MaySee:
    """Whether the person who asks may read an audit of the cluster."""
    return lambda audit_id: find_audit(root(), cluster, audit_id, may_read) is not None


def nothing(request: Request, shown: Shown, cluster: str, message: str, name: str = "") -> Response:
    """404 in words: what was asked for is not in the audit that can be shown, or none can be."""
    return page(request, "nothing.html.j2", status_code=404, words=words, cluster=cluster, shown=shown, message=message, name=name)
