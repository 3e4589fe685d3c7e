"""Counts all results of an audit by tier, severity, waiver and loosened requirement; lists the policy's waivers and attestations."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer, computed_field
from pydantic.dataclasses import dataclass

from kafka_audit.findings import COUNTED_AS, Severity, Status
from kafka_audit.policy.attestations import Attestation, newest
from kafka_audit.policy.waivers import Waiver, WaiverState, is_future
from kafka_audit.report.frozen import EXACT
from kafka_audit.report.rows import batches

SEVERITIES = [severity.value for severity in Severity]
"""The names of severities, worst first."""

_NOT_ALL = 0.999999
_JUDGED = (Status.PASS.value, Status.FAIL.value)


class Kind(NamedTuple):
    """The key by which results are counted. ``loosened``: what the tier loosened; ``waiver``: the id of a waiver in force."""

    control_id: str
    code: str
    status: str
    severity: str
    tier: str | None
    loosened: str | None
    waiver: str | None


Tally = Mapping[Kind, int]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class AssessedShare:
    """How many of the applicable results were assessed; ``ratio`` is None if nothing applies, never 1, and 1 only if none is missing."""

    assessed: int
    applicable: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ratio(self) -> float | None:
        if not self.applicable:
            return None
        return 1.0 if self.assessed == self.applicable else min(round(self.assessed / self.applicable, 6), _NOT_ALL)


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Results:
    """The number of results in each status. ``waived`` counts failures; ``loosened`` counts passes and failures.

    ``still_open``: those of not_assessed that only a person can attest, and nobody has; they do not count in the coverage.
    """

    passed: int = 0
    failed: int = 0
    errored: int = 0
    not_assessed: int = 0
    not_applicable: int = 0
    waived: int = 0
    loosened: int = 0
    still_open: int = 0

    @property
    def assessed(self) -> int:
        return self.passed + self.failed

    @property
    def applicable(self) -> int:
        return self.passed + self.failed + self.errored + self.not_assessed - self.still_open

    @property
    def coverage(self) -> AssessedShare:
        return AssessedShare(assessed=self.assessed, applicable=self.applicable)


def read_tally(path: Path, waivers: Collection[str]) -> tuple[Counter[Kind], Counter[str]]:
    """Count a findings folder by kind, and the findings by waiver id that name a waiver not in force (``waivers`` are the ids in force)."""
    found: Counter[Kind] = Counter()
    unfounded: Counter[str] = Counter()
    for table in batches(path, Kind._fields):
        for row in table.group_by(list(Kind._fields)).aggregate([([], "count_all")]).to_pylist():
            kind = Kind(*(row[name] for name in Kind._fields))
            if kind.waiver is not None and (kind.waiver not in waivers or kind.status != Status.FAIL.value):
                unfounded[kind.waiver] += row["count_all"]
                kind = kind._replace(waiver=None)
            found[kind] += row["count_all"]
    return found, unfounded


def results_of(kinds: Iterable[tuple[Kind, int]], manual: Collection[str] = ()) -> Results:
    """Add up the counts of some kinds of results; ``manual``: the ids of the controls that only a person can attest."""
    by_status: Counter[str] = Counter()
    waived = loosened = still_open = 0
    for kind, number in kinds:
        by_status[kind.status] += number
        waived += number if kind.waiver is not None else 0
        loosened += number if kind.loosened is not None and kind.status in _JUDGED else 0
        still_open += number if kind.status == Status.NOT_ASSESSED.value and kind.control_id in manual else 0
    counts = {name: by_status[status.value] for status, name in COUNTED_AS.items()}
    return Results(**counts, waived=waived, loosened=loosened, still_open=still_open)


def rank(severity: str) -> int:
    """The position of a severity in the order, 0 for critical; unknown names come last."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)


def by_severity(tally: Tally) -> dict[str, Results]:
    """The results by their own severity, worst first."""
    names = sorted({kind.severity for kind in tally}, key=rank)
    return {name: results_of((kind, number) for kind, number in tally.items() if kind.severity == name) for name in names}


def by_tier(tally: Tally, tiers: Collection[str], manual: Collection[str] = ()) -> list[tuple[str, Results]]:
    """The results of each tier, in the policy's order; tiers that only findings name come last. ``manual``: as in :func:`results_of`."""
    names = [*tiers, *sorted({str(kind.tier) for kind in tally} - set(tiers))]
    return [(name, results_of(((kind, number) for kind, number in tally.items() if str(kind.tier) == name), manual)) for name in names]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class TierResults(Results):
    """The results of one tier, as ``report.json`` lists them."""

    tier: str


def _listed_tiers(tiers: Sequence[tuple[str, Results]]) -> tuple[TierResults, ...]:
    return tuple(TierResults(tier=tier, **asdict(results)) for tier, results in tiers)


ResultsByTier = Annotated[tuple[tuple[str, Results], ...], PlainSerializer(_listed_tiers, return_type=tuple[TierResults, ...])]


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Loosened:
    """The results of one control in one tier that were judged by a looser value than the catalogue's; ``loosened`` says which."""

    code: str
    tier: str
    loosened: str
    passed: int
    failed: int


def loosened_results(tally: Tally) -> tuple[Loosened, ...]:
    """Every kind of loosened result, by code and tier."""
    groups: dict[tuple[str, str, str], Counter[str]] = {}
    for kind, number in tally.items():
        if kind.loosened is not None and kind.status in _JUDGED:
            groups.setdefault((kind.code, str(kind.tier), kind.loosened), Counter())[kind.status] += number
    return tuple(
        Loosened(code=code, tier=tier, loosened=what, passed=found[Status.PASS.value], failed=found[Status.FAIL.value])
        for (code, tier, what), found in sorted(groups.items())
    )


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Acceptance:
    """Who accepted a failure, and until when (ISO time)."""

    id: str
    owner: str
    approver: str
    ticket: str
    expires: str


@dataclass(frozen=True, kw_only=True, config=EXACT)
class WaiverUse(Acceptance):
    """One waiver of the policy, its times as text. ``status``: used, unused, expired or not yet approved; ``covered``: failures."""

    control: str
    resource: str
    justification: str
    approved_on: str
    status: str
    covered: int

    @property
    def acceptance(self) -> Acceptance:
        return Acceptance(id=self.id, owner=self.owner, approver=self.approver, ticket=self.ticket, expires=self.expires)


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Unfounded:
    """A waiver that findings name although it was not in force, and the number of these findings."""

    id: str
    findings: int


def _listed_unfounded(pairs: Sequence[tuple[str, int]]) -> tuple[Unfounded, ...]:
    return tuple(Unfounded(id=waiver_id, findings=number) for waiver_id, number in pairs)


@dataclass(frozen=True, kw_only=True, config=EXACT)
class WaiverTable:
    """``listed``: the policy's waivers. ``unfounded``: (id, number of findings) of waivers that findings name but were not in force."""

    listed: tuple[WaiverUse, ...] = ()
    unfounded: Annotated[tuple[tuple[str, int], ...], PlainSerializer(_listed_unfounded, return_type=tuple[Unfounded, ...])] = ()

    def find(self, waiver_id: str | None) -> WaiverUse | None:
        """The waiver with this id if it covers failures of this audit, else None."""
        return next((one for one in self.listed if one.id == waiver_id and one.status == "used"), None)


def waiver_table(waivers: Sequence[Waiver], tally: Tally, unfounded: Mapping[str, int], at: datetime) -> WaiverTable:
    """Make the table from the counted results; ``at`` is when the audit began."""
    covered: Counter[str] = Counter()
    for kind, number in tally.items():
        if kind.waiver is not None:
            covered[kind.waiver] += number
    listed = tuple(_use(waiver, covered[waiver.id], waiver.state(at)) for waiver in waivers)
    return WaiverTable(listed=listed, unfounded=tuple(sorted(unfounded.items())))


@dataclass(frozen=True, kw_only=True, config=EXACT)
class AttestationUse:
    """One attestation of the policy, its times as text.

    ``status``: counts (it decides its control), superseded (a later one of the same control counts), expired or not yet given.
    """

    id: str
    control: str
    attested_by: str
    attested_on: str
    expires: str
    statement: str
    outcome: str
    file: str
    sha256: str
    status: str


def attestation_table(attestations: list[Attestation], at: datetime) -> tuple[AttestationUse, ...]:
    """The policy's attestations; ``at`` is when the snapshot was taken."""
    deciding = newest(attestations, at)
    return tuple(
        AttestationUse(
            **{**one.model_dump(mode="json"), "expires": one.expires.isoformat()},
            status=_standing(one, decides=deciding.get(one.control) is one, at=at),
        )
        for one in attestations
    )


def _standing(one: Attestation, *, decides: bool, at: datetime) -> str:
    if is_future(one.attested_on, at):
        return "not yet given"
    return "expired" if not one.in_force(at) else "counts" if decides else "superseded"


def _use(waiver: Waiver, covered: int, state: WaiverState) -> WaiverUse:
    words = ("id", "control", "resource", "owner", "approver", "ticket", "justification")
    used = "used" if covered else "unused"
    return WaiverUse(
        **{word: getattr(waiver, word) for word in words},
        approved_on=waiver.approved_on.isoformat(),
        expires=waiver.expires.isoformat(),
        status=used if state is WaiverState.IN_FORCE else state.value,
        covered=covered,
    )
