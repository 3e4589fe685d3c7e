"""``kafka-audit report``: the report of a sealed audit again, from its own files."""

import json
import zipfile
from pathlib import Path

import pytest
from packed_audits import sealed_audit
from report_audit import WHEN
from typer.testing import CliRunner, Result

from kafka_audit.audit.check import check_audit
from kafka_audit.audit.formats import REPORT_FILES
from kafka_audit.cli.main import app
from kafka_audit.errors import AuditError, CollectionError
from kafka_audit.report import formats as written_formats
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import tree_files

EVERY_FORMAT = ",".join(REPORT_FILES)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["report", *(str(one) for one in arguments)])


def refused(*arguments: object) -> tuple[int, str]:
    problem = run(*arguments).exception
    assert isinstance(problem, AuditError)
    return problem.exit_code, str(problem)


def test_the_same_release_writes_the_same_bytes_and_leaves_the_audit_as_it_was(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    before = tree_files(audit)
    done = run(audit, "--to", tmp_path / "out", "--formats", EVERY_FORMAT)
    assert done.exit_code == 0, done.output
    written = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert set(written) == {one.file for one in REPORT_FILES.values()}
    for path in (audit / "report").iterdir():
        assert written[path.name] == path.read_bytes()
    assert tree_files(audit) == before
    assert str(tmp_path / "out" / "report.html") in done.output


def test_only_the_formats_asked_for_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = sealed_audit(tmp_path / "root")
    monkeypatch.chdir(tmp_path)
    assert run(audit, "--formats", "junit").exit_code == 0
    assert [path.name for path in Path(f"report-{audit.name}").iterdir()] == ["junit.xml"]


def test_the_report_is_of_the_time_of_the_audits_own_report(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    run(audit, "--to", tmp_path / "out", "--formats", "json")
    value = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (value["verdict"], value["generated_at"]) == ("FAILED", WHEN.isoformat())


@pytest.mark.parametrize("where", ["report", "inputs/policy/new", "."])
def test_nothing_is_written_into_the_sealed_audit(tmp_path: Path, where: str) -> None:
    audit = sealed_audit(tmp_path / "root")
    before = tree_files(audit)
    code, said = refused(audit, "--to", audit / where)
    assert (code, "among sealed evidence" in said) == (2, True)
    assert tree_files(audit) == before


@pytest.mark.parametrize("where", ["root/audits/orders-prod/mine", "root/evidence/x", "link/out"])
def test_nothing_is_written_among_sealed_folders_also_through_a_link(tmp_path: Path, where: str) -> None:
    audit = sealed_audit(tmp_path / "root")
    (tmp_path / "link").symlink_to(tmp_path / "root" / "audits")
    assert refused(audit, "--to", tmp_path / where)[0] == 2
    assert not (tmp_path / where).exists()


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "junit.xml").write_text("mine")
    code, said = refused(audit, "--to", tmp_path / "out", "--formats", "html,junit")
    assert (code, "junit.xml is there already" in said) == (2, True)
    assert [(path.name, path.read_text()) for path in (tmp_path / "out").iterdir()] == [("junit.xml", "mine")]


@pytest.mark.parametrize("broken", ["settings/findings.parquet", "inputs/controls", "snapshot"])
def test_an_audit_of_which_something_was_changed_is_not_rendered(tmp_path: Path, broken: str) -> None:
    audit = sealed_audit(tmp_path / "root")
    folder = next((tmp_path / "root" / "evidence" / "orders-prod").iterdir()) if broken == "snapshot" else audit / broken
    file = next(path for path in sorted(folder.rglob("*")) if path.suffix in {".parquet", ".yaml"})
    file.write_bytes(file.read_bytes() + b"#")
    code, said = refused(audit, "--to", tmp_path / "out")
    assert (code, "was changed" in said) == (5, True)
    assert not (tmp_path / "out").exists()


def test_an_audit_that_is_not_sealed_is_not_rendered(tmp_path: Path) -> None:
    code, said = refused(sealed_audit(tmp_path / "root", seal=False), "--to", tmp_path / "out")
    assert (code, "it is not finished" in said) == (5, True)


def test_what_is_no_audit_below_a_root_is_named(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    snapshot = next((tmp_path / "root" / "evidence" / "orders-prod").iterdir())
    for folder, why in (
        (tmp_path / "none", "there is no folder"),
        (snapshot, "folder of a snapshot, not of an audit"),
        (audit.parent, "not the folder of an audit"),
    ):
        code, said = refused(folder, "--to", tmp_path / "out")
        assert (code, why in said) == (2, True)
    (tmp_path / "linked").symlink_to(audit)
    assert refused(tmp_path / "linked", "--to", tmp_path / "out")[0] == 5


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    code, said = refused(sealed_audit(tmp_path / "root"), "--formats", "docx")
    assert (code, said.startswith("--formats: 'docx' is no format")) == (2, True)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    audit = sealed_audit(tmp_path / "root")
    (tmp_path / "file").touch()
    code, said = refused(audit, "--to", tmp_path / "file" / "out")
    assert (code, "cannot write" in said) == (1, True)


def without_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no PDF can be set."""

    def render(_: object) -> bytes:
        raise CollectionError("no font")

    monkeypatch.setattr(written_formats, "RENDERERS", {**written_formats.RENDERERS, "pdf": render})


def test_an_audit_that_was_sealed_without_its_pdf_says_so_and_the_pdf_can_be_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        without_pdf(broken)
        audit = sealed_audit(tmp_path / "root")
    assert not (audit / "report" / "report.pdf").exists()
    expected = [{"format": "pdf", "file": "report.pdf", "reason": "CollectionError: no font"}]
    assert read_json(audit / "manifest.json")["not_written"] == read_json(audit / "report" / "report.json")["not_written"] == expected
    notes = [text for state, text in check_audit(audit, EvidenceRoot(path=tmp_path / "root")).lines if state == "note"]
    assert any(
        "was sealed without one format: report.pdf could not be written and is missing (CollectionError: no font)" in one for one in notes
    )
    done = run(audit, "--to", tmp_path / "out", "--formats", "pdf,html,json")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "report.pdf").read_bytes().startswith(b"%PDF")
    for name in ("report.html", "report.json"):
        assert (tmp_path / "out" / name).read_bytes() == (audit / "report" / name).read_bytes()


def test_a_format_that_cannot_be_written_again_is_named_and_the_others_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit = sealed_audit(tmp_path / "root")
    without_pdf(monkeypatch)
    code, said = refused(audit, "--to", tmp_path / "out", "--formats", "pdf,html,junit")
    assert (code, "report.pdf could not be written and is missing (CollectionError: no font)" in said) == (1, True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"report.html", "junit.xml"}
    package = tmp_path / "audit.zip"
    problem = CliRunner().invoke(app, ["export", str(audit), "--to", str(package)]).exception
    assert isinstance(problem, AuditError)
    with zipfile.ZipFile(package) as zipped:
        names = {name.split("/", 1)[1] for name in zipped.namelist()}
        (readme,) = (zipped.read(name).decode() for name in zipped.namelist() if name.endswith("/README.txt"))
    assert "reports/report.html" in names
    assert "reports/report.pdf" not in names
    assert "    Missing: report.pdf could not be written and is missing (CollectionError: no font).\n" in readme
