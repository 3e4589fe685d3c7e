"""Lists the policy's waivers and the failures that each covers in one audit."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafka_audit.policy.waivers import Waiver, WaiverState
from kafka_audit.report.tally import Tally

USED = "used"
UNUSED = "unused"


@dataclass(frozen=True, kw_only=True)
class WaiverUse:
    """One waiver and the number of failures that it covers. ``status``: used, unused, expired or not yet approved."""

    id: str
    control: str
    resource: str
    owner: str
    approver: str
    ticket: str
    justification: str
    approved_on: str
    expires: str
    status: str
    covered: int


@dataclass(frozen=True, kw_only=True)
class WaiverTable:
    """``listed``: the policy's waivers. ``unfounded``: (id, number of findings) of waivers that findings name but were not in force."""

    listed: tuple[WaiverUse, ...] = ()
    unfounded: tuple[tuple[str, int], ...] = ()

    def find(self, waiver_id: str | None) -> WaiverUse | None:
        """The waiver with this id if it covers failures of this audit, else None."""
        return next((one for one in self.listed if one.id == waiver_id and one.status == USED), None)


def waiver_table(waivers: Sequence[Waiver], tally: Tally, unfounded: Mapping[str, int], at: datetime) -> WaiverTable:
    """Make the table from the counted results; ``at`` is when the audit began."""
    covered: Counter[str] = Counter()
    for kind, number in tally.items():
        if kind.waiver is not None:
            covered[kind.waiver] += number
    listed = tuple(_use(waiver, covered[waiver.id], waiver.state(at)) for waiver in waivers)
    return WaiverTable(listed=listed, unfounded=tuple(sorted(unfounded.items())))


def _use(waiver: Waiver, covered: int, state: WaiverState) -> WaiverUse:
    words = ("id", "control", "resource", "owner", "approver", "ticket", "justification")
    return WaiverUse(
        **{word: getattr(waiver, word) for word in words},
        approved_on=waiver.approved_on.isoformat(),
        expires=waiver.expires.isoformat(),
        status=state.value if state is not WaiverState.IN_FORCE else USED if covered else UNUSED,
        covered=covered,
    )
