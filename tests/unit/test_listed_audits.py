"""The verdict in the list of audits."""

import os
from pathlib import Path

import pytest

from kafka_audit.audit.listing import MOST_OF_REPORT, MOST_OF_RUN, FoundAudit, find_audit, may_read_newest, newest_audits, read_audit
from kafka_audit.audit.request import DAG_ID
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot

ID = "20261120T120000Z-0000000000000000"


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


def test_a_file_that_is_too_long_for_a_page_is_not_read(tmp_path: Path) -> None:
    audit = EvidenceRoot(path=tmp_path).audit("orders", ID)
    write_json(audit.run_file, {"dag_id": DAG_ID, "run_id": "r"})
    write_json(audit.report / "report.json", {"verdict": "PASSED"})
    found = find_audit(EvidenceRoot(path=tmp_path), "orders", ID, lambda _: True)
    assert found is not None and read_audit(found).verdict == "PASSED"
    _lengthen(audit.report / "report.json", MOST_OF_REPORT)
    shown = read_audit(found)
    assert shown.verdict == "ERROR" and "longer than" in shown.reasons[0]
    _lengthen(audit.run_file, MOST_OF_RUN)
    assert find_audit(EvidenceRoot(path=tmp_path), "orders", ID, lambda _: True) is None


def _lengthen(path: Path, size: int) -> None:
    """The same JSON with spaces behind it, of more than ``size`` bytes."""
    with path.open("ab") as stream:
        stream.write(b" " * size)


def test_folders_that_are_no_audits_do_not_push_audits_out_of_the_list(tmp_path: Path) -> None:
    root = EvidenceRoot(path=tmp_path)
    write_json(root.audit("orders", ID).run_file, {"dag_id": DAG_ID, "run_id": "r"})
    for number in range(3):
        (root.path / "audits" / "orders" / f"zzz-{number}").mkdir()
    listed = newest_audits(root, lambda _: True, looked_at=2)
    assert ([one.audit_id for one in listed.audits], listed.cut) == ([ID], False)


def test_a_pipe_in_place_of_a_file_makes_no_page_wait(tmp_path: Path) -> None:
    (tmp_path / "failures").mkdir()
    (tmp_path / "report").mkdir()
    os.mkfifo(tmp_path / "report" / "report.json")
    found = read_audit(FoundAudit(cluster="a", audit_id="b", folder=tmp_path, dag_id="c", run_id="d"))
    assert found.verdict == "UNFINISHED"


def test_the_newest_audit_of_a_dag_that_may_not_be_read_is_not_measured_for_the_reader_of_an_older_one(tmp_path: Path) -> None:
    root, older = EvidenceRoot(path=tmp_path), ID.replace("2026", "2025")
    write_json(root.audit("orders", older).run_file, {"dag_id": DAG_ID, "run_id": "r"})
    assert may_read_newest(root, "orders", lambda dag_id: dag_id == DAG_ID)
    write_json(root.audit("orders", ID).run_file, {"dag_id": f"{DAG_ID}__orders", "run_id": "r"})
    assert not may_read_newest(root, "orders", lambda dag_id: dag_id == DAG_ID)
    assert may_read_newest(root, "orders", lambda _: True)
