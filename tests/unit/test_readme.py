"""The commands in the README exist, and its figures about the product are true."""

import re
import shlex
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from kafka_audit import errors
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.cli.main import app
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.connection_file import read_keys

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMANDS = sorted({line.strip().split("#")[0].strip() for line in README.splitlines() if line.startswith("    .venv/bin/kafka-audit ")})


def test_there_are_examples_to_check() -> None:
    assert COMMANDS


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_in_the_readme_is_accepted_by_the_command_line(line: str) -> None:
    command, arguments = get_command(app), shlex.split(line)[1:]
    while hasattr(command, "commands"):
        name = arguments.pop(0)
        command = command.commands[name]
    assert command.make_context(name, arguments, resilient_parsing=False).params


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z-]+)", README))))
def test_every_make_target_in_the_readme_exists(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


def test_the_connection_file_in_the_readme_is_a_valid_one(tmp_path: Path) -> None:
    text = README.split("```properties\n")[1].split("```")[0]
    path = tmp_path / "prod.properties"
    certificate = tmp_path / "ca.pem"
    certificate.write_text("")
    path.write_text(text.replace("/etc/kafka/ca.pem", str(certificate)))
    settings = ConnectionSettings.from_mapping(read_keys(path), where=str(path))
    assert settings.client_arguments()["sasl_mechanism"] == "SCRAM-SHA-512"


def test_the_readme_has_every_exit_code_of_the_product() -> None:
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.AuditError)}
    stated = {int(code) for code in re.findall(r"^\| (\d) \|", README, re.MULTILINE)}
    assert stated == codes | {0}


def test_the_readme_counts_the_controls_that_are_shipped() -> None:
    (count,) = re.findall(r"^(\d+) controls are shipped", README, re.MULTILINE)
    assert int(count) == len(load_catalogue().controls)


def test_every_command_is_in_the_readme() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    assert [name for name in group.commands if name != "version" and f"kafka-audit {name}" not in README] == []


def test_every_variable_of_the_product_is_in_the_readme() -> None:
    files = (ROOT / "plugins").rglob("*.py")
    names = {name for file in files for name in re.findall(r'"(KAFKA_AUDIT_[A-Z_]+)"', file.read_text(encoding="utf-8"))}
    assert (
        sorted(name for name in names - {"KAFKA_AUDIT_AIRFLOW"} if not re.search(rf"`{name}[`=]", README)) == []
    )  # that one marks a process


def test_every_document_is_in_the_readme() -> None:
    assert [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f"](docs/{path.name})" not in README] == []


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_every_linked_file_exists(path: Path) -> None:
    links = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).is_file()] == []


def test_every_picture_is_shown_with_words_for_those_who_do_not_see_it() -> None:
    shown = [
        (text, (path.parent / link).resolve())
        for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for text, link in re.findall(r"!\[([^]]*)\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    ]
    assert {path for _, path in shown} == set((ROOT / "docs").rglob("*.png"))
    assert [path.name for text, path in shown if len(text) < 20] == []
    assert [path.name for _, path in shown if path.parent.name == "images" and path.stat().st_size > 150_000] == []
