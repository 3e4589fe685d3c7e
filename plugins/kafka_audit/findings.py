"""The values of a finding's fields (status, severity, kind of evidence), used by every step from the rule to the report."""

from collections.abc import Mapping
from enum import StrEnum


class Status(StrEnum):
    """Verdict of one control on one resource. Missing evidence is NOT_ASSESSED, an empty population NOT_APPLICABLE."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"
    NOT_ASSESSED = "not_assessed"
    NOT_APPLICABLE = "not_applicable"


COUNTED_AS: Mapping[Status, str] = {
    Status.PASS: "passed",
    Status.FAIL: "failed",
    Status.ERROR: "errored",
    Status.NOT_ASSESSED: "not_assessed",
    Status.NOT_APPLICABLE: "not_applicable",
}
"""The columns of a summary that count the findings in each status."""


class Severity(StrEnum):
    """What a failure costs, worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for critical up to 4 for info, for ordering."""
        return list(Severity).index(self)

    def at_least(self, other: "Severity") -> bool:
        """Whether this severity is as bad as ``other`` or worse."""
        return self.rank <= other.rank


class EvidenceClass(StrEnum):
    """How a verdict is known: read from the cluster, following from what was read, said by an owner, or attested by a person.

    A control is MANUAL when no machine can see what it asks. It is open until a person attests it and files evidence: that result is
    ATTESTED, never observed.
    """

    OBSERVED = "observed"
    INFERRED = "inferred"
    DECLARED = "declared"
    MANUAL = "manual"
    ATTESTED = "attested"


class Verdict(StrEnum):
    """What a gate says of a rule or of a whole suite. VACUOUS: nothing was tested."""

    PASS = "PASS"
    FAIL = "FAIL"
    VACUOUS = "VACUOUS"
    ERROR = "ERROR"
