"""What a cell of the matrix says: how a control stands in the audit of a cluster, or that nothing is known of it."""

from dataclasses import dataclass

from kafka_audit.report.control_status import Standing
from kafka_audit.report.fleet.matrix import FleetCluster, FleetControl

UNKNOWN = "unknown"
ABSENT = "not_in_audit"
WAIVED = "fail_waived"


@dataclass(frozen=True, kw_only=True)
class State:
    """One state of a cell: the word for programs, the words for people, what it means."""

    id: str
    words: str
    means: str


STATES = (
    State(id=Standing.FAIL.value, words="fails", means="on this many resources, waived ones included; below, how many are waived"),
    State(id=WAIVED, words="waived", means="fails, and a waiver covers every failure"),
    State(id=Standing.ERROR.value, words="error", means="nothing fails, but the rule raised an error on this many resources"),
    State(id=Standing.NOT_ASSESSED.value, words="not assessed", means="nothing fails, but evidence is missing for this many results"),
    State(id=Standing.DID_NOT_RUN.value, words="did not run", means="the audit has no results of this control"),
    State(id=UNKNOWN, words="not known", means="the cluster has no audit that can be used"),
    State(id=ABSENT, words="not in audit", means="the audit was made without this control"),
    State(id=Standing.PASS.value, words="passes", means="all that applies was assessed and passes"),
    State(id=Standing.NOT_APPLICABLE.value, words="not applicable", means="there was nothing to judge"),
)
"""All states, worst and unknown ones first. ``unfit`` is not among them: nothing of a void audit is shown."""


def state_of(cluster: FleetCluster, control: FleetControl) -> str:
    """The state of a control in the newest audit of a cluster, by its word for programs."""
    if not cluster.audited:
        return UNKNOWN
    cell = cluster.cells.get(control.control_id)
    if cell is None:
        return ABSENT
    return WAIVED if cell.all_waived else cell.standing.value
