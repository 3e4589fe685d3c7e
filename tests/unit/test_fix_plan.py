"""The plan of ``kafka-audit fix``: which commands it has, in which order, and that it is a script which hostile names cannot break."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.catalogue.remediation import Change, Remediation
from kafka_audit.cli.fix import fix
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.report.fix_plan import Plan, read_plan
from kafka_audit.report.fix_script import render
from kafka_audit.store.layout import EvidenceRoot, seal_audit
from kafka_audit.store.signing import new_key

SHELLS = sorted({found for name in ("bash", "dash", "sh") if (found := shutil.which(name))})
ALTER = 'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --entity-type topics --entity-name {topic}'


def setting(code: str, key: str, *, decide: str | None = None, subject: str = "topic", impact: str = "None.") -> Control:
    """A control with one command, which sets ``key`` to a computed value."""
    change = Change(command=f"{ALTER} --add-config {key}={{value}}", does=f"Sets {key}.", decide=decide)
    remediation = Remediation(text="Do it.", changes=(change,), values={"value": "1"})
    return control(f"control_{code.lower().replace('-', '_')}", code, subject=subject, remediation=remediation, remediation_impact=impact)


RESET = control(
    "control_con_05",
    "CON-05",
    subject="group",
    remediation=Remediation(
        text="Look.",
        changes=(
            Change(
                command='kafka-consumer-groups.sh --bootstrap-server "$BOOTSTRAP" --reset-offsets --group {group} --to-earliest --dry-run',
                does="Shows it.",
                decide="look at the dry run.",
            ),
        ),
    ),
)


def plan_of(root: Path, *failures: tuple[Control, str, str | None], **changes: object) -> Plan:
    """The plan for failures, each with its control, its resource and the computed value."""
    controls = {one.id: one for one, _, _ in failures}
    fake = FakeAudit(root, tuple(controls.values()))
    rows = [
        finding(one, resource, remediation=None if value is None else f'{{"value": "{value}"}}', **changes)
        for one, resource, value in failures
    ]
    fake.settings([row for row in rows if row["subject"] != "group"])
    fake.lag([row for row in rows if row["subject"] == "group"])
    return read_plan(fake.audit, controls)


def commands(plan: Plan) -> list[str]:
    """The commands of the script that are not commented out, without the head."""
    return [line for line in render(plan).splitlines() if line.startswith("kafka-")]


def run(plan: Plan, folder: Path, shell: str) -> list[list[str]]:
    """The words of each command as a real shell runs it, with a program in the place of Kafka's own tools that writes them down."""
    tools = folder / "tools"
    tools.mkdir()
    for name in ("kafka-configs.sh", "kafka-consumer-groups.sh"):
        (tools / name).write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" >> {folder / 'said'}; printf '\\n\\0' >> {folder / 'said'}\n")
        (tools / name).chmod(0o755)
    (folder / "fix.sh").write_text(render(plan))
    (folder / "here").mkdir()
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "BOOTSTRAP": "b:9092", "LC_ALL": "C.UTF-8"}
    subprocess.run([shell, "-n", str(folder / "fix.sh")], check=True)
    subprocess.run([shell, str(folder / "fix.sh")], cwd=folder / "here", env=environment, check=True)
    assert list((folder / "here").iterdir()) == []
    said = (folder / "said").read_bytes().decode() if (folder / "said").exists() else ""
    return [call.split("\0")[:-1] for call in said.split("\n\0")[:-1]]


def test_commands_come_worst_first_with_what_they_repair_what_is_there_and_what_they_may_cost(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, (setting("TOP-06", "retention.ms", impact="Disks fill."), "b", "5"))
    text = render(plan)
    for line in (
        "# 1. TOP-06 (critical) b: Control top 06",
        "#    Present: 1",
        "#    Does: Sets retention.ms.",
        "#    Risk: Disks fill.",
        'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" $OPTIONS --alter --entity-type topics --entity-name b --add-config retention.ms=5',
    ):
        assert line in text.splitlines()
    low = setting("TOP-01", "max.message.bytes").model_copy(update={"severity": setting("TOP-01", "x").severity})
    ordered = plan_of(tmp_path / "two", (setting("TOP-06", "retention.ms"), "a", "5"), (low, "z", "6"), (low, "c", "6"))
    assert [step.reasons[0].resource for step in ordered.steps] == ["c", "z", "a"]


@pytest.mark.parametrize(
    ("key", "values", "strongest"),
    [
        ("retention.ms", ("604800000", "86400000"), "604800000"),
        ("retention.ms", ("604800000", "-1"), "-1"),
        ("retention.bytes", ("9", "10"), "10"),
        ("min.insync.replicas", ("2", "3"), "3"),
        ("message.timestamp.after.max.ms", ("3600000", "60000"), "60000"),
        ("cleanup.policy", ("delete", "delete"), "delete"),
    ],
)
def test_a_setting_that_several_controls_change_is_set_once_to_the_strongest_value(
    key: str, values: tuple[str, str], strongest: str, tmp_path: Path
) -> None:
    first, second = setting("TOP-05", key), setting("TOP-06", key)
    plan = plan_of(tmp_path, (first, "orders", values[0]), (second, "orders", values[1]), (second, "other", values[1]))
    assert [one.rsplit(" ", 1)[1] for one in commands(plan) if " orders " in one] == [f"{key}={strongest}"]
    assert len(plan.steps) == 2
    assert {reason.code for step in plan.steps for reason in step.reasons if reason.resource == "orders"} == {"TOP-05", "TOP-06"}


def test_controls_that_contradict_each_other_are_left_to_a_person(tmp_path: Path) -> None:
    first, second = setting("TOP-05", "cleanup.policy"), setting("TOP-06", "cleanup.policy")
    plan = plan_of(tmp_path, (first, "orders", "delete"), (second, "orders", "compact"))
    assert commands(plan) == []
    assert [step.value for step in plan.steps] == ["delete", "compact"]
    assert render(plan).count("run at most one of these commands") == 2


def test_what_a_person_decides_is_commented_out_and_comes_last(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, (setting("TOP-01", "cleanup.policy", decide="records go."), "a", "delete"), (setting("TOP-06", "x.ms"), "b", "1")
    )
    lines = render(plan).splitlines()
    assert len(commands(plan)) == 1
    decided = lines.index(
        '# kafka-configs.sh --bootstrap-server "$BOOTSTRAP" $OPTIONS --alter --entity-type topics --entity-name a --add-config cleanup.policy=delete'
    )
    assert lines[decided - 1] == "#    Decide first: records go."
    assert decided > lines.index(commands(plan)[0])


def test_failures_without_a_command_are_listed_and_waived_ones_are_left_out(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, (setting("TOP-06", "retention.ms"), "orders", None))
    assert (commands(plan), [(one.code, one.resources) for one in plan.left]) == ([], [("TOP-06", ("orders",))])
    assert "# TOP-06 orders: Control top 06" in render(plan).splitlines()
    waived = plan_of(tmp_path / "two", (setting("TOP-06", "retention.ms"), "orders", "5"), waiver="W-1")
    assert (commands(waived), waived.left, waived.waived) == ([], (), 1)
    assert "# ---- Failures that are waived, and left out: 1." in render(waived)


def test_two_names_that_no_shell_can_pass_stay_two_resources(tmp_path: Path) -> None:
    one = setting("TOP-06", "retention.ms")
    plan = plan_of(tmp_path, (one, "a\n", "5"), (one, "b\n", "7"))
    assert [(step.value, [reason.resource for reason in step.reasons]) for step in plan.steps] == [("5", ["a\n"]), ("7", ["b\n"])]
    plan = plan_of(tmp_path / "two", (RESET, "a\n", None), (RESET, "b\n", None))
    assert [[reason.resource for reason in step.reasons] for step in plan.steps] == [["a\n"], ["b\n"]]


@pytest.mark.parametrize("value", ["1,unclean.leader.election.enable=true", "[1],a=b", "[1", "[[1]]", "1]"])
def test_a_value_that_would_set_another_setting_too_gives_no_command(value: str, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, (setting("TOP-06", "retention.ms"), "orders", value))
    assert (plan.steps, [one.resources for one in plan.left]) == ((), [("orders",)])


@pytest.mark.parametrize("values", ["[]", "null", "{", '{"value": 5}', '{"value": {"a": "b"}}', "[" * 100_000])
def test_findings_that_no_job_wrote_are_refused(values: str, tmp_path: Path) -> None:
    one = setting("TOP-06", "retention.ms")
    fake = FakeAudit(tmp_path, (one,))
    fake.settings([finding(one, "orders", remediation=values)])
    with pytest.raises(IntegrityError, match="have values for commands that this release does not write"):
        read_plan(fake.audit, {one.id: one})


def test_findings_of_a_control_that_the_audit_did_not_keep_are_refused(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, ())
    fake.settings([finding(setting("TOP-06", "retention.ms"), "orders", remediation='{"value": "5"}')])
    with pytest.raises(IntegrityError, match="is no control of it"):
        read_plan(fake.audit, {})


def test_an_audit_that_judged_nothing_gives_no_empty_plan(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="has no findings"):
        read_plan(FakeAudit(tmp_path, ()).audit, {})


HOSTILE = (
    *(name for name in HOSTILE_GROUPS if "\0" not in name),
    *(
        "-rf",
        "--help",
        "a\\",
        "a\nkafka-configs.sh --ran",
        "'\n>ran #",
        "$(>ran)",
        '"; >ran; "',
        "`>ran`",
        "\u2028>ran",
        "\x85>ran",
        "a\r>ran",
    ),
)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_data_in_every_line_of_the_script(name: str, shell: str, tmp_path: Path) -> None:
    """In commands, comments, commented-out commands, what was observed, and lists of failures without a command."""
    ready, decided = setting("TOP-06", "retention.ms"), setting("TOP-07", "cleanup.policy", decide="d")
    nothing = setting("TOP-08", "max.message.bytes")
    failures = [(ready, name, "5"), (decided, name, "delete"), (nothing, name, None), (RESET, name, None)]
    plan = plan_of(tmp_path / "audit", *failures, observed=name)
    words = ["--bootstrap-server", "b:9092", "--alter", "--entity-type", "topics", "--entity-name", name, "--add-config", "retention.ms=5"]
    assert run(plan, tmp_path, shell) == [words]


@pytest.mark.parametrize("name", ["a line break at its end\n", "nul\0", "x" * 1001])
def test_a_name_that_no_shell_can_pass_is_for_a_person_to_fill_in(name: str, tmp_path: Path) -> None:
    plan = plan_of(tmp_path / "audit", (setting("TOP-06", "retention.ms"), name, "5"), observed=name)
    assert "#    Decide first: set $TOPIC to the name, which cannot be printed as a word of a shell." in render(plan).splitlines()
    assert '# kafka-configs.sh --bootstrap-server "$BOOTSTRAP" $OPTIONS --alter --entity-type topics --entity-name "$TOPIC"' in render(plan)
    assert run(plan, tmp_path, SHELLS[0]) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_options_of_an_administrator_reach_every_command_and_without_a_broker_nothing_runs(shell: str, tmp_path: Path) -> None:
    script = render(plan_of(tmp_path, (setting("TOP-06", "retention.ms"), "orders", "5"))).replace("kafka-configs.sh", "printf '%s '")
    (tmp_path / "fix.sh").write_text(script)
    environment = {"PATH": "/usr/bin:/bin", "BOOTSTRAP": "b:1", "OPTIONS": "--command-config admin.properties"}
    done = subprocess.run([shell, str(tmp_path / "fix.sh")], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("--bootstrap-server b:1 --command-config admin.properties --alter ")
    done = subprocess.run([shell, str(tmp_path / "fix.sh")], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "set it to HOST:PORT of a broker" in done.stderr


NAME = "caf\u00e9"


@pytest.fixture
def sealed(tmp_path: Path) -> FakeAudit:
    """A sealed audit in which a shipped control fails, with the controls that it kept."""
    (shipped,) = [one for one in load_catalogue().controls if one.code == "TOP-06"]
    fake = FakeAudit(tmp_path / "root", (shipped,))
    fake.settings([finding(shipped, NAME, remediation='{"retention_ms": "86400000", "retention_bytes": null}')])
    fake.lag([])
    shutil.copytree(shipped_controls(), fake.audit.inputs / "controls", ignore=shutil.ignore_patterns("__*"))
    seal_audit(EvidenceRoot(path=tmp_path / "root"), "orders-prod", fake.audit.path.name, {})
    return fake


def test_the_command_prints_the_plan_of_a_sealed_audit_by_the_controls_that_it_kept(
    sealed: FakeAudit, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path for path in sealed.audit.path.rglob("*"))
    fix(sealed.audit.path)
    said = capsys.readouterr().out
    assert [line for line in said.splitlines() if line.startswith("kafka-")] == [
        f"kafka-configs.sh --bootstrap-server \"$BOOTSTRAP\" $OPTIONS --alter --entity-type topics --entity-name '{NAME}' --add-config "
        "retention.ms=86400000"
    ]
    assert sorted(path for path in sealed.audit.path.rglob("*")) == before


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_names_are_printed_in_kafkas_encoding_whatever_that_of_the_terminal_is(encoding: str, sealed: FakeAudit) -> None:
    command = [sys.executable, "-m", "kafka_audit.cli", "fix", str(sealed.audit.path)]
    done = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert f"--entity-name '{NAME}'".encode() in done.stdout


def test_with_a_key_only_an_audit_that_it_signed_is_printed(sealed: FakeAudit, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public = new_key(tmp_path / "seal.key")
    with pytest.raises(IntegrityError, match="nobody vouches for the manifest"):
        fix(sealed.audit.path, [public])
    assert capsys.readouterr().out == ""


def test_no_plan_is_printed_of_an_audit_that_was_changed_or_of_anything_else(
    sealed: FakeAudit, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError, match="there is no folder"):
        fix(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match="is a sealed snapshot: name the folder of an audit"):
        fix(sealed.snapshot.path)
    with pytest.raises(ConfigurationError, match="is not the folder of an audit"):
        fix(sealed.audit.settings)
    (sealed.audit.settings / "history.json").write_text("{}")
    with pytest.raises(IntegrityError, match="does not match its manifest"):
        fix(sealed.audit.path)
    assert capsys.readouterr().out == ""
