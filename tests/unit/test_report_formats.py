"""The formats of a report: which there are, which are written, and what happens to one that there is not."""

import json
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from report_audit import FakeAudit, control, finding
from rich.console import Console
from typer.testing import CliRunner

from kafka_audit.airflow.run_dag import AuditRun
from kafka_audit.audit.formats import ALWAYS, DEFAULT_FORMATS, REPORT_FILES, read_formats
from kafka_audit.audit.outcome import STEPS, audit_outcome
from kafka_audit.cli.audit import print_summary
from kafka_audit.cli.main import app
from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError, UnforeseenError
from kafka_audit.report import csv_findings, pdf, read_report, write_report
from kafka_audit.report import formats as written_formats
from kafka_audit.report.formats import RENDERERS
from kafka_audit.report.pdf import typesetter
from kafka_audit.store.durable_files import write_json

TOPIC = control("replication_factor_sufficient", "TOP-01")


def test_the_list_that_forms_and_pages_show_is_the_list_of_what_can_be_written() -> None:
    assert {*RENDERERS, "csv"} == set(REPORT_FILES)
    assert set(ALWAYS) <= set(DEFAULT_FORMATS) <= set(REPORT_FILES)
    assert len({one.file for one in REPORT_FILES.values()}) == len(REPORT_FILES)


def test_a_report_is_written_in_the_formats_asked_for_and_always_as_page_and_json(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.settings([finding(TOPIC, "a")])
    for formats, files in (((), {"report.html", "report.json"}), (("junit",), {"report.html", "report.json", "junit.xml"})):
        write_report(*fake.inputs.args, **fake.inputs.kwargs, formats=formats)
        page = fake.audit.report / "report.html"
        assert {path.name for path in page.parent.iterdir()} == files


def test_formats_are_read_from_a_list_with_commas_in_the_order_of_the_table() -> None:
    assert read_formats(" junit, html,junit") == ("html", "junit")


@pytest.mark.parametrize("text", ["html,docx", "", "html,,json", "HTML"])
def test_a_format_that_there_is_not_is_refused_before_anything_is_read(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no format of a report: write some of html, .*junit"):
        read_formats(text)
    done = CliRunner().invoke(app, ["audit", "--bootstrap", "127.0.0.1:1", "--formats", text])
    assert isinstance(done.exception, ConfigurationError)
    assert "--formats: " in str(done.exception)
    assert done.exception.exit_code == 2


def raising(problem: Exception) -> Callable[..., bytes]:
    def render(*_: object) -> bytes:
        raise problem

    return render


def break_format(monkeypatch: pytest.MonkeyPatch, name: str, problem: Exception) -> None:
    """From now on what writes this format raises."""
    if name == "csv":
        monkeypatch.setattr(csv_findings, "write", raising(problem))
    else:
        monkeypatch.setattr(written_formats, "RENDERERS", {**RENDERERS, name: raising(problem)})


def an_audit(root: Path, status: str = "fail") -> FakeAudit:
    fake = FakeAudit(root, (TOPIC,))
    fake.settings([finding(TOPIC, "a", status)])
    fake.lag([])
    fake.gates(findings=("FAIL", 3) if status == "fail" else ("PASS", 0))
    return fake


def report_json(fake: FakeAudit) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((fake.audit.report / "report.json").read_text())
    return value


@pytest.mark.parametrize("broken", [name for name in REPORT_FILES if name != "json"])
def test_a_format_that_cannot_be_written_costs_itself_alone_and_the_others_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    fake = an_audit(tmp_path)
    break_format(monkeypatch, broken, ValueError("no such \u202eglyph"))
    write_report(*fake.inputs.args, **fake.inputs.kwargs, formats=REPORT_FILES)
    missing = REPORT_FILES[broken].file
    assert {path.name for path in fake.audit.report.iterdir()} == {one.file for one in REPORT_FILES.values()} - {missing}
    said = report_json(fake)
    assert said["not_written"] == [{"format": broken, "file": missing, "reason": r"ValueError: no such \u202eglyph"}]
    assert (said["verdict"], said["exit_code"]) == ("FAILED", 3)
    for reader in {"html", "markdown"} - {broken}:
        text = (fake.audit.report / REPORT_FILES[reader].file).read_text().replace("\\", "")
        assert f"{missing} could not be written" in text
    assert f"{missing} could not be written and is missing (ValueError" in caplog.text
    assert "Traceback" in caplog.text
    assert "\u202e" not in caplog.text


@pytest.mark.parametrize("broken", ["pdf", "html"])
@pytest.mark.parametrize(("status", "verdict"), [("fail", ("FAILED", 3)), ("pass", ("PASSED", 0))])
def test_the_verdict_stays_and_the_outcome_names_the_missing_format_and_how_to_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, verdict: tuple[str, int], broken: str
) -> None:
    fake = an_audit(tmp_path, status)
    break_format(monkeypatch, broken, CollectionError("report could not be set (no font)"))
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    write_json(fake.audit.path / "manifest.json", {})
    outcome = audit_outcome(fake.audit, fake.snapshot, dict.fromkeys(STEPS, "success"))
    assert (outcome.verdict, outcome.exit_code) == verdict
    assert outcome.report == fake.audit.report / ("report.json" if broken == "html" else "report.html")
    missing, again = outcome.notices
    assert missing == f"report.{broken} could not be written and is missing (CollectionError: report could not be set (no font))."
    assert again == f"To try again: kafka-audit report {fake.audit.path} --formats {broken}"
    assert f"Not complete: {missing}" in str(outcome)
    terminal = StringIO()
    facts = {"audit": None, "log": tmp_path, "step_seconds": {}, "total_seconds": 1.0}
    print_summary(AuditRun(**vars(outcome), **facts), Console(file=terminal, width=400))
    assert f"Not complete: {missing}" in terminal.getvalue()


def test_two_formats_that_fail_are_both_named_by_each_of_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = an_audit(tmp_path)
    broken = dict.fromkeys(("pdf", "sarif"), raising(RuntimeError("out of order")))
    monkeypatch.setattr(written_formats, "RENDERERS", {**RENDERERS, **broken})
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    page = fake.audit.report / "report.html"
    assert [one["file"] for one in report_json(fake)["not_written"]] == ["report.pdf", "report.sarif"]
    assert all(f"{file} could not be written" in page.read_text() for file in ("report.pdf", "report.sarif"))


def test_without_its_json_there_is_no_report_because_outcome_and_later_formats_are_read_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = an_audit(tmp_path)
    break_format(monkeypatch, "json", TypeError("no JSON"))
    with pytest.raises(UnforeseenError, match=r"report\.json could not be written .*no JSON"):
        write_report(*fake.inputs.args, **fake.inputs.kwargs)
    assert not fake.audit.report.exists()


@pytest.mark.parametrize("broken", ["pdf", "csv"])
def test_results_that_are_broken_cost_the_whole_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    fake = an_audit(tmp_path)
    break_format(monkeypatch, broken, IntegrityError("findings.parquet was changed"))
    with pytest.raises(IntegrityError):
        write_report(*fake.inputs.args, **fake.inputs.kwargs, formats=REPORT_FILES)
    assert not fake.audit.report.exists()


def test_a_typesetter_that_cannot_be_loaded_costs_the_pdf_only() -> None:
    run = (
        "import sys; sys.path[:0] = sys.argv[1:3]; sys.modules['typst'] = None\n"
        "from kafka_audit.report import html, formats\n"
        "from kafka_audit.report.pdf.typesetter import typeset\n"
        "try: typeset('report.typ', {}, title='', keywords=(), made_at=None, file='report.pdf', source='report.json')\n"
        "except Exception as problem: print(type(problem).__name__, problem)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", run, str(root / "plugins"), str(root)], capture_output=True, text=True, check=True)
    assert "CollectionError report.pdf could not be set: typst cannot be loaded (import of typst halted" in done.stdout


def test_a_template_or_a_font_that_is_missing_costs_the_pdf_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = an_audit(tmp_path / "root")
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "report.typ").write_text('#import "style.typ": *')
    monkeypatch.setattr(typesetter, "TEMPLATES", tmp_path / "templates")
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    (one,) = report_json(fake)["not_written"]
    assert (one["format"], "report.pdf could not be set (file not found" in one["reason"]) == ("pdf", True)


def test_a_panic_of_the_typesetter_costs_the_pdf_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        """As pyo3 raises it: no Exception."""

    def panic(*_: object, **__: object) -> None:
        raise PanicException("index out of bounds")

    fake = an_audit(tmp_path)
    monkeypatch.setattr("typst.Compiler", panic)
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    with pytest.raises(CollectionError, match="index out of bounds"):
        pdf.render(report)
