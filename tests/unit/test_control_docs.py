"""docs/controls.md equals what is generated from the catalogue, and covers all of it."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.cli.controls_page import as_markdown
from kafka_audit.cli.main import app, main
from kafka_audit.policy import load_policy

PAGE = Path(__file__).parents[2] / "docs" / "controls.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == as_markdown(load_catalogue(), load_policy().frameworks), "run `make docs`"


def test_the_command_prints_the_page_or_writes_it(tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["controls", "docs"])
    written = CliRunner().invoke(app, ["controls", "docs", "--write", str(tmp_path / "page.md")])
    assert (printed.exit_code, written.exit_code) == (0, 0)
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == printed.output


@pytest.mark.parametrize("place", ["nowhere/page.md", "."])
def test_a_page_that_cannot_be_written_is_one_error(tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(lambda: app(["controls", "docs", "--write", str(tmp_path / place)], standalone_mode=False))
    assert ended.value.code == 2
    assert re.fullmatch(
        rf"kafka-audit: {re.escape(str(tmp_path / place))}: cannot be written \(.*\); name a file in an existing folder .*\n",
        capsys.readouterr().err,
    )


def test_every_control_has_a_section_with_its_rule_its_fix_and_what_it_supports() -> None:
    catalogue, frameworks = load_catalogue(), load_policy().frameworks
    sections = as_markdown(catalogue, frameworks).split("\n## ")[1:]
    assert [section.split(" ")[0] for section in sections] == [control.code for control in catalogue.controls]
    for control, section in zip(catalogue.controls, sections, strict=True):
        assert control.pass_when in section
        assert all(command in section for command in control.remediation.commands)
        assert all(change.command in section for change in control.remediation.changes)
        assert all(f"`{{{name}}}`" in section and sql in section for name, sql in control.remediation.values.items())
        assert all(f"| `{name}` |" in section for name in control.parameters)
        for framework in frameworks:
            assert (framework.title in section) is any(control.code in one.supported_by for one in framework.requirements)


def test_what_markdown_would_read_as_markup_is_text() -> None:
    catalogue = load_catalogue()
    control = catalogue.controls[0].model_copy(update={"title": "a <b> `c` [d](e) | __f__", "pass_when": "x = '```'"})
    page = as_markdown(type(catalogue)(controls=(control,), sha256=catalogue.sha256), ())
    assert r"a \<b\> \`c\` \[d\](e) \| \_\_f\_\_" in page
    assert "````sql\nx = '```'\n````" in page


def test_a_plain_web_address_stays_a_link_and_nothing_else_becomes_one() -> None:
    catalogue = load_catalogue()
    references = (
        "KIP_1 - https://kafka.apache.org/documentation/#a_b.c",
        "[x](javascript://alert(1))",
        "<svg/onload=alert(1)>://",
        "https://a/[x](data:b)",
    )
    control = catalogue.controls[0].model_copy(update={"references": references})
    page = as_markdown(type(catalogue)(controls=(control,), sha256=catalogue.sha256), ())
    assert r"- KIP\_1 - https://kafka.apache.org/documentation/#a_b.c" in page
    assert r"- \[x\](javascript://alert(1))" in page
    assert r"- \<svg/onload=alert(1)\>://" in page
    assert r"- https://a/\[x\](data:b)" in page
