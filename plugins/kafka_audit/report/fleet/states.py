"""What a cell of the matrix says: how a control stands in the audit of a cluster, or that nothing is known of it."""

from dataclasses import dataclass

from kafka_audit.report.control_status import Standing
from kafka_audit.report.fleet.matrix import FleetCluster, FleetControl

UNKNOWN = "unknown"
ABSENT = "not_in_audit"
WAIVED = "fail_waived"


@dataclass(frozen=True, kw_only=True)
class State:
    """One state of a cell: the word for programs, the words for people, what it means, and how it is drawn.

    ``kind`` names its colours. ``letter`` stands for the words where columns are narrow. ``numbered``: whether the number of results that
    stand so is shown beside it.
    """

    id: str
    words: str
    means: str
    kind: str
    letter: str
    numbered: bool = False


STATES = (
    State(
        id=Standing.FAIL.value,
        words="fails",
        means="on this many resources, waived ones included; below, how many are waived",
        kind="fail",
        letter="F",
        numbered=True,
    ),
    State(id=WAIVED, words="waived", means="fails, and a waiver covers every failure", kind="waived", letter="W", numbered=True),
    State(
        id=Standing.ERROR.value,
        words="error",
        means="nothing fails, but the rule raised an error on this many resources",
        kind="error",
        letter="E",
        numbered=True,
    ),
    State(
        id=Standing.NOT_ASSESSED.value,
        words="not assessed",
        means="nothing fails, but evidence is missing for this many results",
        kind="gap",
        letter="N",
        numbered=True,
    ),
    State(id=Standing.DID_NOT_RUN.value, words="did not run", means="the audit has no results of this control", kind="idle", letter="D"),
    State(id=UNKNOWN, words="not known", means="the cluster has no audit that can be used", kind="unknown", letter="?"),
    State(
        id=ABSENT, words="not in audit", means="the audit was made without this control", kind="absent", letter="\N{MULTIPLICATION SIGN}"
    ),
    State(
        id=Standing.IN_PART.value,
        words="passes in part",
        means="passes, and results were set aside for a recorded reason",
        kind="part",
        letter="P*",
    ),
    State(id=Standing.PASS.value, words="passes", means="all that applies was assessed and passes", kind="pass", letter="P"),
    State(
        id=Standing.NOT_APPLICABLE.value,
        words="not applicable",
        means="there was nothing to judge",
        kind="none",
        letter="\N{EN DASH}",
    ),
)
"""All states, worst and unknown ones first. ``unfit`` is not among them: nothing of a void audit is shown."""

_BY_ID = {state.id: state for state in STATES}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a cell shows: its state, the number of results beside it or None, and how many of the failures are waived."""

    state: State
    number: int | None
    waived: int


def state_of(cluster: FleetCluster, control: FleetControl) -> str:
    """The state of a control in the newest audit of a cluster, by its word for programs."""
    if not cluster.audited:
        return UNKNOWN
    cell = cluster.cells.get(control.control_id)
    if cell is None:
        return ABSENT
    return WAIVED if cell.all_waived else cell.standing.value


def shown(cluster: FleetCluster, control: FleetControl) -> Shown:
    """What the cell of a control and a cluster shows; waivers are counted only where failures are left that no waiver covers."""
    state, found = _BY_ID[state_of(cluster, control)], cluster.cells.get(control.control_id)
    waived = found.counts.waived if found and found.counts and state.id == Standing.FAIL.value else 0
    return Shown(state=state, number=found.number if found and state.numbered else None, waived=waived)
