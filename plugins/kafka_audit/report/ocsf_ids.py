"""The ids that OCSF 1.8.0 has for the statuses, severities, verdicts and changes of an audit, each with its caption."""

from collections.abc import Mapping

from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED, VOID
from kafka_audit.findings import Severity
from kafka_audit.report.comparison import Change
from kafka_audit.report.control_status import Standing

Id = tuple[int, str]
"""An id and its caption; 99 is Other, whose caption is ours."""

UNKNOWN: Id = (0, "Unknown")
PASS: Id = (1, "Pass")
WARNING: Id = (2, "Warning")
FAIL: Id = (3, "Fail")
ERROR: Id = (99, "Error")
NOT_APPLICABLE: Id = (99, "Not Applicable")

SEVERITIES: Mapping[str, Id] = {
    Severity.CRITICAL.value: (5, "Critical"),
    Severity.HIGH.value: (4, "High"),
    Severity.MEDIUM.value: (3, "Medium"),
    Severity.LOW.value: (2, "Low"),
    Severity.INFO.value: (1, "Informational"),
}
OF_STATUS: Mapping[str, Id] = {"fail": FAIL, "error": ERROR, "not_assessed": WARNING}
OF_STANDING: Mapping[Standing, Id] = {
    Standing.FAIL: FAIL,
    Standing.ERROR: ERROR,
    Standing.NOT_ASSESSED: WARNING,
    Standing.DID_NOT_RUN: WARNING,
    Standing.UNFIT: UNKNOWN,
    Standing.IN_PART: WARNING,
    Standing.PASS: PASS,
    Standing.NOT_APPLICABLE: NOT_APPLICABLE,
}
OF_VERDICT: Mapping[str, Id] = {PASSED: PASS, FAILED: FAIL, INCOMPLETE: WARNING, VOID: UNKNOWN}

NEW: Id = (1, "New")
SUPPRESSED: Id = (3, "Suppressed")
RESOLVED: Id = (4, "Resolved")
NO_ACTION: Id = (99, "No Action")
CREATE: Id = (1, "Create")
UPDATE: Id = (2, "Update")
CLOSE: Id = (3, "Close")
OF_CHANGE: Mapping[Change | None, tuple[Id, Id]] = {
    None: (NEW, CREATE),
    Change.NEW: (NEW, CREATE),
    Change.INCOMPARABLE: ((99, "Incomparable"), CREATE),
    Change.UNCHANGED: ((99, "Unchanged"), UPDATE),
    Change.WORSE: ((99, "Worse"), UPDATE),
    Change.RESOLVED: (RESOLVED, CLOSE),
}
