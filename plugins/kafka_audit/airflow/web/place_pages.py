"""What the pages of one control and of one topic of a cluster show."""

from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.airflow.web.asked import Answer, Asked
from kafka_audit.airflow.web.marks import kind
from kafka_audit.errors import IntegrityError
from kafka_audit.index.control_text import control_text
from kafka_audit.index.group_tables import READERS
from kafka_audit.index.overview import FAILURES, LETTERS, UNKNOWN_LETTER, ControlLine, Overview, PastAudit
from kafka_audit.index.read import IndexedAudit
from kafka_audit.index.shown import without_root
from kafka_audit.index.topic import topic_evidence
from kafka_audit.report.control_status import Standing
from kafka_audit.report.fleet.states import ABSENT, STATES, UNKNOWN, State
from kafka_audit.report.html_text import code, prose
from kafka_audit.report.tally import SEVERITIES
from kafka_audit.safe_text import utc, with_link

FAILURES_SHOWN = 100
CLUSTERS_SHOWN = 200
_NONE = "{} of this cluster cannot be shown."
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


def control_page(asked: Asked, control_id: str) -> Answer:
    """What a control means, how it stands, how it stood before, and where it fails."""
    shown = asked.shown()
    index = asked.index(shown)
    line = _line(index, control_id) if index else None
    if index is None or line is None:
        message = f"Audit {index.overview.audit_id} was made without this control." if index else _NONE.format("Controls")
        return asked.nothing(shown, message, control_id)
    try:
        failures = index.failures(control_id).sort_by("place")
    except IntegrityError as problem:
        return asked.nothing(shown, f"This control cannot be shown: {without_root(asked.root, problem)}", control_id)
    first = asked.start // FAILURES_SHOWN * FAILURES_SHOWN
    return asked.answer(
        "control.html.j2",
        shown,
        index,
        prose=prose,
        code=code,
        with_link=with_link,
        words_of=_WORDS,
        cells=[_cell(asked, one, letter) for one, letter in zip(index.overview.past, line.history, strict=False)],
        legend=[{"kind": _kind(one), "letter": one.letter, "words": one.words} for one in STATES if LETTERS[one.id] in line.history],
        line=line,
        control=control_text(index, control_id),
        failures=failures.slice(first, FAILURES_SHOWN).to_pylist(),
        listed=failures.num_rows,
        first=first,
        step=FAILURES_SHOWN,
        elsewhere=[_elsewhere(asked, other, control_id) for other in asked.others[:CLUSTERS_SHOWN]],
        left_out=max(0, len(asked.others) - CLUSTERS_SHOWN),
    )


def topic_page(asked: Asked, name: str) -> Answer:
    """One topic: its settings with their source, replicas, the controls that fail on it, and its readers."""
    shown = asked.shown()
    index = shown.index
    if index is None:
        return asked.nothing(shown, _NONE.format("Topics"), name)
    try:
        failures = index.rows(FAILURES, ("topic", name))
        readers = index.rows(READERS, ("topic", name)).sort_by("place").to_pylist()
    except IntegrityError as problem:
        return asked.nothing(shown, f"This topic cannot be shown: {without_root(asked.root, problem)}", name)
    evidence = topic_evidence(asked.root, index, name)
    if evidence.about is None and not readers and not failures.num_rows:
        gone = f" Its snapshot {index.overview.snapshot_id} {evidence.why}." if evidence.why else ""
        return asked.nothing(shown, f"Audit {index.overview.audit_id} knows no such topic.{gone}", name)
    titles = {one.control_id: one for one in index.overview.controls}
    return asked.answer(
        "topic.html.j2",
        shown,
        index,
        sources=_SOURCES,
        name=name,
        evidence=evidence,
        failures=[(titles.get(one["control_id"]), one) for one in _worst(failures).slice(0, FAILURES_SHOWN).to_pylist()],
        failure_count=failures.num_rows,
        readers=readers,
    )


def _line(index: IndexedAudit, control_id: str) -> ControlLine | None:
    return next((one for one in index.overview.controls if one.control_id == control_id), None)


def _cell(asked: Asked, past: PastAudit, letter: str) -> dict[str, str]:
    """The square of one audit in the strip."""
    state = _STATES.get(letter, _STATES[UNKNOWN_LETTER])
    said = f"{utc(past.started_at)}: {state.words}"
    return {"address": asked.link_to(past.audit_id), "kind": _kind(state), "letter": state.letter, "words": said}


def _kind(state: State) -> str:
    return "gap" if state.id in _NOTHING_KNOWN else kind(state.id)


def _elsewhere(asked: Asked, other: str, control_id: str) -> Elsewhere:
    index = replace(asked, cluster=other).shown().index
    return Elsewhere(cluster=other, overview=index.overview if index else None, line=_line(index, control_id) if index else None)


def _worst(failures: pa.Table) -> pa.Table:
    ranked = failures.append_column("rank", pc.index_in(failures["severity"], value_set=pa.array(SEVERITIES)))
    return ranked.sort_by([("rank", "ascending"), ("control_id", "ascending"), ("place", "ascending")])
