"""Groups a control's failures by cause, so that one cause on 400 partitions is one row with the list of partitions behind it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kafka_audit.report.results import Finding
from kafka_audit.report.tally import rank

_OWN = "\N{SYMBOL FOR SUBSTITUTE}"
_SHORTEST_NAME = 3
_OF_NAMES = frozenset("._-")


@dataclass(frozen=True, kw_only=True)
class Cause:
    """Findings that say the same of different resources; ``same_evidence`` has those whose evidence is the first one's, too.

    The same is: observed, expected and reason but for the resource's own names, severity, tier, loosened requirement and waiver.
    """

    findings: tuple[Finding, ...]
    same_evidence: frozenset[str]

    @property
    def first(self) -> Finding:
        """The finding whose texts stand for all."""
        return self.findings[0]

    @property
    def names_itself(self) -> bool:
        """Whether the findings differ by their resources' own names, so that the first one's texts are literally true of it alone."""
        said = {(one.observed, one.expected, one.reason) for one in self.findings}
        return len(said) > 1


def by_cause(findings: Sequence[Finding]) -> tuple[Cause, ...]:
    """The findings of one control by cause: the worst severity first, then the cause with the most resources, then the given order."""
    groups: dict[tuple[str | None, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_key(finding), []).append(finding)
    causes = [Cause(findings=tuple(found), same_evidence=_same_evidence(found)) for found in groups.values()]
    return tuple(sorted(causes, key=lambda one: (rank(one.first.severity), -len(one.findings))))


def same_expected(findings: Sequence[Finding]) -> str | None:
    """The expected value, if it is the same for all findings."""
    expected = {finding.expected or "" for finding in findings}
    return (expected.pop() or None) if len(expected) == 1 else None


def _key(finding: Finding) -> tuple[str | None, ...]:
    said = (without_own_names(value, finding) for value in (finding.observed, finding.expected, finding.reason))
    return (*said, finding.severity, finding.tier, finding.loosened, finding.waiver)


def _same_evidence(findings: Sequence[Finding]) -> frozenset[str]:
    first = without_own_names(findings[0].evidence, findings[0])
    return frozenset(one.resource for one in findings[1:] if without_own_names(one.evidence, one) == first)


def without_own_names(text: str | None, finding: Finding) -> str | None:
    """A text with the resource's own names replaced by one sign. Short names and numbers stay: in a text they may mean something else."""
    if not text:
        return text
    partition = f"{finding.topic}-{finding.partition}" if finding.topic and finding.partition is not None else None
    names = {one for one in (finding.resource, finding.topic, finding.group_id, partition) if one}
    for name in sorted(names, key=lambda one: (-len(one), one)):
        if name in text and len(name) >= _SHORTEST_NAME and not name.isdecimal():
            text = _replaced(text, name)
    return text


def _replaced(text: str, name: str) -> str:
    """The text with ``name`` replaced where it stands as a word of its own, not inside of a longer name."""
    pieces = text.split(name)
    made = pieces[0]
    for before, after in pairwise(pieces):
        inside = (before and _is_of_names(before[-1])) or (after and _is_of_names(after[0]))
        made += (name if inside else _OWN) + after
    return made


def _is_of_names(character: str) -> bool:
    return character.isalnum() or character in _OF_NAMES
