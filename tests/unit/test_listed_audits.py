"""The verdict in the list of audits, and that nothing of a sealed audit is shown that is not as it was sealed."""

import os
from pathlib import Path

import pytest

from kafka_audit.audit.listing import (
    MOST_OF_REPORT,
    MOST_OF_RUN,
    UNUSABLE,
    FoundAudit,
    find_audit,
    may_read_newest,
    newest_audits,
    read_audit,
    with_checked_report,
)
from kafka_audit.audit.request import DAG_ID
from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit

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
    assert (shown.verdict, shown.coverage) == ("NOT KNOWN", None)
    assert shown.reasons == ("report.json is longer than 4 MiB, too large to be read for this page: open the report",)
    write_json(audit.path / "failures" / "report.json", {"step": "report", "exit_code": 1, "error": "OSError", "message": "disk full"})
    assert read_audit(found).verdict == "ERROR"
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


@pytest.fixture
def failed(tmp_path: Path) -> FoundAudit:
    """A sealed audit that failed, with a note of a failed step."""
    root = EvidenceRoot(path=tmp_path)
    audit = root.audit("orders", ID)
    write_json(audit.run_file, {"dag_id": DAG_ID, "run_id": "r"})
    write_json(audit.report / "report.json", {"verdict": "VOID"})
    (audit.report / "report.html").write_text("<p>VOID</p>", encoding="utf-8")
    write_json(audit.path / "failures" / "verify.json", {"step": "verify", "exit_code": 1, "error": "OSError", "message": "disk full"})
    seal_audit(root, "orders", ID, {})
    found = find_audit(root, "orders", ID, lambda _: True)
    assert found is not None
    return found


def test_a_sealed_audit_that_is_as_it_was_sealed_is_shown(failed: FoundAudit) -> None:
    shown = with_checked_report(read_audit(failed))
    assert (shown.verdict, shown.sealed, shown.reasons) == ("VOID", True, ("Step verify failed: disk full",))
    assert failed.file("report", "report.html") == failed.folder / "report" / "report.html"


@pytest.mark.parametrize("name", ["report/report.json", "report/report.html", "failures/verify.json", "manifest.json"])
@pytest.mark.parametrize("gone", [False, True])
def test_a_sealed_audit_is_unusable_when_a_file_that_is_shown_was_changed_or_removed(failed: FoundAudit, name: str, gone: bool) -> None:
    path = failed.folder / name
    path.unlink()
    if not gone:
        path.write_text('{"verdict": "PASSED"}', encoding="utf-8")
    elif name == "manifest.json":
        path.symlink_to(failed.folder / "run.json")
    shown = with_checked_report(read_audit(failed))
    assert (shown.verdict, shown.sealed) == (UNUSABLE, True)
    assert [one for one in shown.reasons if name in one]
    assert len(set(shown.reasons)) == len(shown.reasons)
    if not name.startswith("failures"):
        with pytest.raises(IntegrityError):
            failed.file("report", "report.html" if name == "manifest.json" else name.removeprefix("report/"))


def test_a_file_that_was_added_after_the_audit_was_sealed_is_not_there(failed: FoundAudit) -> None:
    (failed.folder / "report" / "junit.xml").write_text("<testsuites/>", encoding="utf-8")
    assert failed.file("report", "junit.xml") is None and not failed.has("report", "junit.xml")
    write_json(failed.folder / "failures" / "report.json", {"step": "report", "message": "added"})
    assert read_audit(failed).reasons == ("Step verify failed: disk full",)


def test_the_manifest_of_another_clusters_audit_vouches_for_nothing(failed: FoundAudit) -> None:
    other = failed.folder.parents[1] / "payments" / ID
    other.parent.mkdir()
    failed.folder.rename(other)
    found = find_audit(EvidenceRoot(path=failed.folder.parents[2]), "payments", ID, lambda _: True)
    assert found is not None
    assert read_audit(found).verdict == UNUSABLE
