"""Controls by clusters: how each control stands in the newest audit of each cluster, with the states of the fleet report."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafka_audit.airflow.web.newest import Cluster
from kafka_audit.index.overview import ControlLine
from kafka_audit.report.fleet.states import ABSENT, STATES, UNKNOWN, State
from kafka_audit.report.tally import rank

_BY_ID = {state.id: state for state in STATES}
_STATUS_OF = {"fail": "failed", "fail_waived": "failed", "error": "errored", "not_assessed": "not_assessed"}
"""Which count stands beside a state, of those that have a number."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """How one control stands in one cluster; ``number``: results that stand so, None where none is shown."""

    cluster: str
    state: State
    number: int | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """One control, with the words of the newest audit that has it, and a cell for each cluster."""

    control_id: str
    code: str
    title: str
    severity: str
    cells: tuple[Cell, ...]

    @property
    def failing(self) -> int:
        """The clusters in which it fails, waived or not."""
        return sum(cell.state.id.startswith("fail") for cell in self.cells)


def matrix(clusters: Sequence[Cluster], *, severity: str = "", standing: str = "") -> tuple[Row, ...]:
    """A row for each control, by severity and code.

    ``severity``: only controls of that severity in the catalogue. ``standing``: only those that stand so in at least one cluster.
    """
    newest: dict[str, tuple[str, ControlLine]] = {}
    lines: list[dict[str, ControlLine]] = []
    for cluster in clusters:
        of_cluster = {one.control_id: one for one in cluster.overview.controls} if cluster.overview else {}
        lines.append(of_cluster)
        for one in of_cluster.values():
            audit_id = cluster.overview.audit_id if cluster.overview else ""
            if one.control_id not in newest or newest[one.control_id][0] < audit_id:
                newest[one.control_id] = (audit_id, one)
    wanted = [line for _, line in newest.values() if severity in ("", line.severity)]
    rows = [_row(line, clusters, lines) for line in sorted(wanted, key=lambda one: (rank(one.severity), one.code, one.control_id))]
    return tuple(row for row in rows if not standing or any(cell.state.id == standing for cell in row.cells))


def _row(line: ControlLine, clusters: Sequence[Cluster], lines: Sequence[dict[str, ControlLine]]) -> Row:
    cells = tuple(_cell(cluster, of_cluster.get(line.control_id)) for cluster, of_cluster in zip(clusters, lines, strict=True))
    return Row(control_id=line.control_id, code=line.code, title=line.title, severity=line.severity, cells=cells)


def _cell(cluster: Cluster, line: ControlLine | None) -> Cell:
    if cluster.overview is None:
        return Cell(cluster=cluster.name, state=_BY_ID[UNKNOWN])
    if line is None:
        return Cell(cluster=cluster.name, state=_BY_ID[ABSENT])
    # A standing that this release does not know is not known.
    state = _BY_ID.get(line.standing, _BY_ID[UNKNOWN])
    number = getattr(line.statuses, _STATUS_OF[state.id]) if state.id in _STATUS_OF and line.statuses else None
    return Cell(cluster=cluster.name, state=state, number=number)
