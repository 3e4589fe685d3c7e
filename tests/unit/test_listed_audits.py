"""The verdict in the list of audits."""

from pathlib import Path

import pytest

from kafka_audit.audit.listing import FoundAudit, read_audit
from kafka_audit.store.durable_files import write_json


@pytest.mark.parametrize(
    ("reported", "failed", "shown"),
    [
        *(("PASSED", False, "PASSED"), ("PASSED", True, "ERROR"), ("FAILED", True, "ERROR"), ("VOID", True, "VOID")),
        *((None, True, "ERROR"), (None, False, "UNFINISHED")),
    ],
)
def test_an_audit_of_which_a_step_failed_is_not_listed_with_the_verdict_of_its_report(
    tmp_path: Path, reported: str | None, failed: bool, shown: str
) -> None:
    if reported:
        write_json(tmp_path / "report" / "report.json", {"verdict": reported})
    if failed:
        write_json(tmp_path / "failures" / "report.json", {"step": "report", "exit_code": 1, "error": "OSError", "message": "disk full"})
    found = read_audit(FoundAudit(cluster="a", audit_id="b", folder=tmp_path, dag_id="c", run_id="d"))
    assert (found.verdict, found.sealed) == (shown, False)
