"""The pages of one control and of one topic of a cluster."""

from dataclasses import dataclass
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Request
from fastapi.responses import Response

from kafka_audit.airflow.web.access import AskedCluster, Clusters, Rights, root
from kafka_audit.airflow.web.answers import page, way_up
from kafka_audit.airflow.web.groups import Name, Start, nothing, seen
from kafka_audit.airflow.web.marks import kind
from kafka_audit.audit.listing import MayRead
from kafka_audit.errors import IntegrityError
from kafka_audit.index.control_text import control_text
from kafka_audit.index.group_tables import READERS
from kafka_audit.index.overview import FAILURES, LETTERS, UNKNOWN_LETTER, ControlLine, Overview, PastAudit
from kafka_audit.index.read import IndexedAudit
from kafka_audit.index.shown import pinned_audit, shown_audit, without_root
from kafka_audit.index.topic import topic_evidence
from kafka_audit.report import words
from kafka_audit.report.control_status import Standing
from kafka_audit.report.fleet.states import ABSENT, STATES, UNKNOWN, State
from kafka_audit.report.html_text import code, prose
from kafka_audit.report.lag import DAY_MS
from kafka_audit.report.tally import SEVERITIES
from kafka_audit.safe_text import utc, with_link

router = APIRouter(prefix="/clusters/{cluster}")

FAILURES_SHOWN = 100
CLUSTERS_SHOWN = 200
_STATES = {LETTERS[state.id]: state for state in STATES}
_WORDS = {state.id: state.words for state in STATES}
_NOTHING_KNOWN = frozenset({UNKNOWN, ABSENT, Standing.DID_NOT_RUN.value})
_SOURCES = {
    "DYNAMIC_TOPIC_CONFIG": "set on the topic",
    "DYNAMIC_BROKER_CONFIG": "set on a broker while it runs",
    "DYNAMIC_DEFAULT_BROKER_CONFIG": "set for all brokers while they run",
    "STATIC_BROKER_CONFIG": "a broker's configuration file",
    "DEFAULT_CONFIG": "Kafka's default",
}


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """How the control stands in the newest audit of another cluster; ``line`` is None if that audit was made without it.

    ``overview`` is None, and ``line`` too, where no audit can be shown.
    """

    cluster: str
    overview: Overview | None
    line: ControlLine | None


@router.get("/controls/{control_id}")
def control(
    *, request: Request, cluster: AskedCluster, may_read: Rights, control_id: str, readable: Clusters, audit: Name = "", start: Start = 0
) -> Response:
    """What a control means, how it stands, how it stood before, and where it fails."""
    shown = shown_audit(root(), cluster, seen(cluster, may_read))
    index = (pinned_audit(root(), cluster, audit, seen(cluster, may_read)) if audit else None) or shown.index
    line = _line(index, control_id) if index else None
    if index is None or line is None:
        message = (
            f"Audit {index.overview.audit_id} was made without this control." if index else "Controls of this cluster cannot be shown."
        )
        return nothing(request, shown, cluster, message, name=control_id)
    try:
        failures = index.failures(control_id).sort_by("place")
    except IntegrityError as problem:
        return nothing(request, shown, cluster, f"This control cannot be shown: {without_root(root(), problem)}", name=control_id)
    first = start // FAILURES_SHOWN * FAILURES_SHOWN
    cells = [_cell(request, cluster, one, letter) for one, letter in zip(index.overview.past, line.history, strict=False)]
    return page(
        request,
        "control.html.j2",
        words=words,
        prose=prose,
        code=code,
        with_link=with_link,
        words_of=_WORDS,
        cells=cells,
        legend=[{"kind": _kind(one), "letter": one.letter, "words": one.words} for one in STATES if LETTERS[one.id] in line.history],
        cluster=cluster,
        shown=shown,
        index=index,
        newer=bool(audit) and shown.index is not None and shown.index.audit.path.name != index.audit.path.name,
        line=line,
        control=control_text(index, control_id),
        failures=failures.slice(first, FAILURES_SHOWN).to_pylist(),
        listed=failures.num_rows,
        first=first,
        step=FAILURES_SHOWN,
        elsewhere=_elsewhere(readable, cluster, control_id, may_read),
        left_out=max(0, len(readable) - 1 - CLUSTERS_SHOWN),
    )


@router.get("/topics/one")
def topic(request: Request, cluster: AskedCluster, may_read: Rights, name: Name) -> Response:
    """One topic: its settings with their source, replicas, the controls that fail on it, and its readers."""
    shown = shown_audit(root(), cluster, seen(cluster, may_read))
    index = shown.index
    if index is None:
        return nothing(request, shown, cluster, "Topics of this cluster cannot be shown.")
    try:
        failures = index.rows(FAILURES, ("topic", name))
        readers = index.rows(READERS, ("topic", name)).sort_by("place").to_pylist()
    except IntegrityError as problem:
        return nothing(request, shown, cluster, f"This topic cannot be shown: {without_root(root(), problem)}", name=name)
    evidence = topic_evidence(root(), index, name)
    if evidence.about is None and not readers and not failures.num_rows:
        gone = f" Its snapshot {index.overview.snapshot_id} {evidence.why}." if evidence.why else ""
        return nothing(request, shown, cluster, f"Audit {index.overview.audit_id} knows no such topic.{gone}", name=name)
    titles = {one.control_id: one for one in index.overview.controls}
    return page(
        request,
        "topic.html.j2",
        words=words,
        day=DAY_MS,
        sources=_SOURCES,
        cluster=cluster,
        shown=shown,
        index=index,
        name=name,
        evidence=evidence,
        failures=[(titles.get(one["control_id"]), one) for one in _worst(failures).slice(0, FAILURES_SHOWN).to_pylist()],
        failure_count=failures.num_rows,
        readers=readers,
    )


def _line(index: IndexedAudit, control_id: str) -> ControlLine | None:
    return next((one for one in index.overview.controls if one.control_id == control_id), None)


def _cell(request: Request, cluster: str, past: PastAudit, letter: str) -> dict[str, str]:
    """The square of one audit in the strip."""
    state = _STATES.get(letter, _STATES[UNKNOWN_LETTER])
    address = f"{way_up(request)}audits/{cluster}/{quote(past.audit_id)}/"
    return {"address": address, "kind": _kind(state), "letter": state.letter, "words": f"{utc(past.started_at)}: {state.words}"}


def _kind(state: State) -> str:
    return "gap" if state.id in _NOTHING_KNOWN else kind(state.id)


def _elsewhere(readable: list[str], cluster: str, control_id: str, may_read: MayRead) -> list[Elsewhere]:
    found = []
    for other in [one for one in readable if one != cluster][:CLUSTERS_SHOWN]:
        index = shown_audit(root(), other, seen(other, may_read)).index
        found.append(Elsewhere(cluster=other, overview=index.overview if index else None, line=_line(index, control_id) if index else None))
    return found


def _worst(failures: pa.Table) -> pa.Table:
    ranked = failures.append_column("rank", pc.index_in(failures["severity"], value_set=pa.array(SEVERITIES)))
    return ranked.sort_by([("rank", "ascending"), ("control_id", "ascending"), ("place", "ascending")])
