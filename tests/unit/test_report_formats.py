"""The formats of a report: which there are, which are written, and what happens to one that there is not."""

from pathlib import Path

import pytest
from report_audit import FakeAudit, control, finding
from typer.testing import CliRunner

from kafka_audit.audit.formats import ALWAYS, DEFAULT_FORMATS, REPORT_FILES, read_formats
from kafka_audit.cli.main import app
from kafka_audit.errors import ConfigurationError
from kafka_audit.report import write_report
from kafka_audit.report.formats import RENDERERS

TOPIC = control("replication_factor_sufficient", "TOP-01")


def test_the_list_that_forms_and_pages_show_is_the_list_of_what_can_be_written() -> None:
    assert {*RENDERERS, "csv"} == set(REPORT_FILES)
    assert set(ALWAYS) <= set(DEFAULT_FORMATS) <= set(REPORT_FILES)
    assert len({one.file for one in REPORT_FILES.values()}) == len(REPORT_FILES)


def test_a_report_is_written_in_the_formats_asked_for_and_always_as_page_and_json(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.settings([finding(TOPIC, "a")])
    for formats, files in (((), {"report.html", "report.json"}), (("junit",), {"report.html", "report.json", "junit.xml"})):
        page = write_report(*fake.inputs.args, **fake.inputs.kwargs, formats=formats)
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
