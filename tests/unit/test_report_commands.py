"""Commands with hostile names, executed by a real shell."""

import shutil
import subprocess
from pathlib import Path

import pytest
from report_audit import HOSTILE_GROUPS
from test_catalogue import refusal, write

from kafka_audit.catalogue.remediation import Change, Remediation
from kafka_audit.catalogue.shell_template import takes_quoted_names
from kafka_audit.report.commands import commands_of, fill, first_and_further, no_change_for, shell_word

DESCRIBE = 'kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP" --describe --group {group}'
BASH = shutil.which("bash")
SHELLS = [shell for shell in (BASH, shutil.which("dash"), shutil.which("sh")) if shell]


def words_of(command: str | None, shell: str) -> list[str]:
    """The words that a real shell makes of a command, without running it."""
    done = subprocess.run(
        [shell, "-c", f"set -f; set -- {command}; printf '%s\\0' \"$@\""],
        capture_output=True,
        check=True,
        env={"BOOTSTRAP": "b:9092", "GROUP": "?", "LC_ALL": "C.UTF-8"},
    )
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "group",
    [
        *(name for name in HOSTILE_GROUPS if "\0" not in name),
        *("-x", "-x\n%s\\n'$(id)", "~root", "*", "a\\'b\nc", "#", "!x", "{topic}", "\n\nx", "50%\t\\033"),
    ],
)
def test_a_real_shell_reads_every_hostile_name_as_one_word(group: str, shell: str) -> None:
    assert words_of(fill(DESCRIBE, {"group": group}), shell)[-1] == group
    assert len(words_of(fill(DESCRIBE, {"group": group}), shell)) == 6


def test_ordinary_names_are_not_quoted() -> None:
    assert (
        fill("describe {topic}:{partition} on {broker}", {"topic": "orders.v1", "partition": "3", "broker": "1"})
        == "describe orders.v1:3 on 1"
    )


def test_names_with_quotes_are_quoted_as_shlex_does() -> None:
    assert shell_word("it's") == "'it'\"'\"'s'"


def test_names_with_invisible_characters_are_readable_in_the_command() -> None:
    assert shell_word("pay\u202egnp\n.\u034f") == "\"$(printf 'pay\\342\\200\\256gnp\\012.\\315\\217')\""


@pytest.mark.parametrize("name", ["nul\0", "x" * 1001, "a line break at its end\n"])
def test_a_name_that_no_shell_can_pass_becomes_a_variable(name: str) -> None:
    assert fill(DESCRIBE, {"group": name}).endswith('--group "$GROUP"')


def test_an_absent_name_becomes_a_variable() -> None:
    assert fill("describe --topic {topic}", {}) == 'describe --topic "$TOPIC"'


def test_a_name_that_looks_like_a_placeholder_stays_a_name() -> None:
    assert fill("{group} {topic}", {"group": "{topic}", "topic": "orders"}) == "'{topic}' orders"


def test_a_placeholder_inside_quotes_is_filled_only_with_harmless_names() -> None:
    template = """echo '{"topic":"{topic}"}'"""
    assert fill(template, {"topic": "orders"}) == """echo '{"topic":"orders"}'"""
    assert "rm -rf" not in fill(template, {"topic": "'; rm -rf ~; '"})


_BASH = (
    "echo --group '{group}' --describe",
    'echo "{group}"',
    "echo `echo {group}`",
    "cat <<E\n{group}\nE",
    "echo \\{group}",
    "echo $'{group}'",
)


@pytest.mark.skipif(BASH is None, reason="bash is not installed, so commands cannot be tried on a real shell")
@pytest.mark.parametrize("template", _BASH)
@pytest.mark.parametrize(
    "group",
    [";>ran;", "$(>ran)", "`>ran`", "|>ran|", "';>ran;'", '";>ran;"', "\\';>ran;'", "\\`>ran\\`"],
)
def test_no_name_runs_a_command_whatever_quotes_the_template_has(template: str, group: str, tmp_path: Path) -> None:
    assert BASH
    subprocess.run([BASH, "--norc", "-c", fill(template, {"group": group})], cwd=tmp_path, capture_output=True, check=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("template", [*_BASH, "echo a\"b'{group}", "echo # {group}", "echo $((1 + {group}))", "echo '{group}"])
def test_a_control_may_not_quote_a_placeholder_itself(template: str, tmp_path: Path) -> None:
    write(tmp_path, remediation={"text": "Do it.", "commands": [template.replace("{group}", "{topic}")]})
    assert "remediation.commands: " in refusal(tmp_path)
    assert "has a placeholder inside of quotes" in refusal(tmp_path)


@pytest.mark.parametrize("template", [DESCRIBE, "echo 'a b' {group} \"c 'd\" {group}:x", "echo 'it' # no name here", "a \\' {group} \\' b"])
def test_other_quotes_may_stand_beside_a_placeholder(template: str) -> None:
    assert takes_quoted_names(template)


def test_each_command_is_printed_once_first_resource_first() -> None:
    looks = Remediation(text="t", commands=("list", "describe {topic}"))
    first, further = first_and_further(commands_of(looks, {"topic": topic}) for topic in ("a", "a", "b"))
    assert (first, further) == (["list", "describe a"], ["describe b"])


RAISE = Change(command="set --add-config retention.ms={retention_ms} {topic}", does="Raises it.")


def test_a_command_without_its_value_is_left_out_and_not_printed_with_a_variable() -> None:
    fix = Remediation(text="t", commands=("describe {topic}",), changes=(RAISE,), values={"retention_ms": "1"})
    assert list(commands_of(fix, {"topic": "a", "retention_ms": "-1"})) == ["describe a", "set --add-config retention.ms=-1 a"]
    assert list(commands_of(fix, {"topic": "a"})) == ["describe a"]
    assert no_change_for(fix, {"topic": "a"})
    assert not no_change_for(fix, {"topic": "a", "retention_ms": "5"})


def test_a_computed_value_is_quoted_like_a_name() -> None:
    assert fill(RAISE.command, {"topic": "a", "retention_ms": "[x;>ran]"}) == "set --add-config retention.ms='[x;>ran]' a"


def test_what_a_person_decides_is_printed_as_a_comment_of_one_line_before_its_command() -> None:
    fix = Remediation(text="t", changes=(Change(command="abort {topic}", does="Aborts.", decide="look\nrm -rf first"),))
    assert list(commands_of(fix, {"topic": "a"})) == ["# Decide first: look rm -rf first\nabort a"]
