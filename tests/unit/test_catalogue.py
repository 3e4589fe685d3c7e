"""The catalogue loader: what it accepts, and that it refuses everything else with one clear message."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cli.main import app, main
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import Status

GOOD: dict[str, Any] = {
    "id": "isr_is_whole",
    "code": "TST-01",
    "title": "T",
    "subject": "partition",
    "severity": "high",
    "evidence": "observed",
    "needs": ["partitions"],
    "pass_when": "isr_count >= replication_factor",
    "observed": "concat(isr_count, ' in sync')",
    "expected": "all",
    "rationale": "r",
    "failure_scenario": "f",
    "remediation": {"text": "t", "commands": ["kafka-topics.sh --describe --topic {topic} --partition {partition}"]},
    "remediation_impact": "none",
    "references": ["KIP-966"],
    "false_positives": "none known",
    "examples": [
        {"name": "whole", "row": {"isr_count": 3, "replication_factor": 3}, "status": "pass"},
        {"name": "not whole", "row": {"isr_count": 2, "replication_factor": 3}, "status": "fail"},
        {"name": "unread", "row": {"errors": {"partitions": "refused"}}, "status": "not_assessed", "reason": "refused"},
    ],
}
PARAMETERS = {"least": {"default": 2, "stricter": "higher", "meaning": "replicas in sync"}}


def write(folder: Path, name: str = "isr_is_whole", **changes: Any) -> Path:
    path = folder / f"{name}.yaml"
    fields = {key: value for key, value in {**GOOD, "id": name, **changes}.items() if value is not None}
    path.write_text(yaml.safe_dump(fields))
    return path


def refusal(*folders: Path) -> str:
    with pytest.raises(ConfigurationError) as problem:
        load_catalogue(folders)
    assert problem.value.exit_code == 2
    return str(problem.value)


def test_a_file_that_was_changed_is_read_again_and_one_that_was_not_is_not(tmp_path: Path) -> None:
    write(tmp_path)
    (first,) = load_catalogue([tmp_path]).controls
    assert load_catalogue([tmp_path]).controls[0] is first
    write(tmp_path, title="Another")
    assert [control.title for control in load_catalogue([tmp_path]).controls] == ["Another"]
    write(tmp_path, code="not a code")
    assert "code" in refusal(tmp_path)


def test_a_good_control_is_loaded_with_everything_it_reads(tmp_path: Path) -> None:
    write(
        tmp_path, observed="concat(isr_count, topic, policy.tier, errors['partitions'])", expected="sql: concat('all ', replication_factor)"
    )
    control = load_catalogue([tmp_path]).controls[0]
    assert [reference.label for reference in control.decides_on] == ["isr_count", "replication_factor"]
    assert [reference.label for reference in control.reads] == ["isr_count", "replication_factor", "topic", "policy.tier"]
    assert control.expected_sql == "concat('all ', replication_factor)"
    assert control.false_positives == ("none known",)
    assert control.example_row(control.examples[0])["isr"] is None
    assert control.example_row(control.examples[0])["errors"] == {}


def test_the_shipped_controls_load_in_the_order_of_their_codes() -> None:
    catalogue = load_catalogue()
    codes = [control.code for control in catalogue.controls]
    assert codes == sorted(codes)
    assert len(catalogue.controls) == len(list(shipped_controls().glob("*.yaml")))
    assert {control.id for control in catalogue.of_part("lag")} | {control.id for control in catalogue.of_part("settings")} == {
        control.id for control in catalogue.controls
    }
    for control in catalogue.controls:
        assert {Status.PASS, Status.FAIL, Status.NOT_ASSESSED} <= {example.status for example in control.examples}


def test_an_own_folder_adds_to_the_catalogue_and_a_folder_named_twice_is_read_once(tmp_path: Path) -> None:
    write(tmp_path)
    shipped = load_catalogue()
    both = load_catalogue([shipped_controls(), tmp_path, shipped_controls()])
    assert len(both.controls) == len(shipped.controls) + 1
    assert both.sha256 != shipped.sha256


def test_the_hash_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        write(folder)
        write(folder, "other", code="TST-02")
    assert load_catalogue([first]).sha256 == load_catalogue([second]).sha256
    before = load_catalogue([first]).sha256
    write(first, title="Another title")
    assert load_catalogue([first]).sha256 != before


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "unknown field": ({"severtiy": "high"}, "severtiy: is not a known field"),
    "missing field": ({"rationale": None}, "rationale: is missing"),
    "unknown subject": ({"subject": "disk"}, "subject: is not a subject: write one of topic, partition"),
    "unknown severity": ({"severity": "urgent"}, "severity: Input should be 'critical', 'high'"),
    "unknown dataset": ({"needs": ["partitionz"]}, "partitionz is not a dataset: write some of acls, broker_configs"),
    "no dataset": ({"needs": []}, "needs: Tuple should have at least 1 item"),
    "malformed code": ({"code": "TST-1"}, "code: String should match pattern"),
    "another file's name": ({"id": "other_name"}, "id: is 'other_name'; write 'isr_is_whole', the file's name"),
    "column of another subject": (
        {"pass_when": "lag = 0"},
        "pass_when: reads lag, which is not a column of subject partition; write one of resource",
    ),
    "rule that reads nothing": ({"pass_when": "1 = 1"}, "pass_when: reads no column"),
    "broken observed": ({"observed": "concat(isr_count"}, "observed: is not valid SQL"),
    "broken computed expectation": ({"expected": "sql: nothing_like_it"}, "expected: reads nothing_like_it"),
    "broken applicability": ({"applies_when": "rand() > 1 or isr_count > 0"}, "applies_when: calls rand(), which is not allowed"),
    "rule that calls Java": (
        {"pass_when": "reflect('java.lang.System', 'exit', isr_count) = ''"},
        "pass_when: calls reflect(), which is not allowed",
    ),
    "text that calls Java": (
        {"observed": "java_method('java.lang.System', 'getenv', topic)"},
        "observed: calls java_method(), which is not allowed",
    ),
    "unknown parameter": (
        {"pass_when": "isr_count >= parameters.leest", "parameters": PARAMETERS},
        "pass_when: reads parameters.leest, but there is no field leest; its fields are least",
    ),
    "parameter without a direction": (
        {"parameters": {"least": {"default": 2, "meaning": "replicas"}}},
        "parameters.least.stricter: is missing: add it",
    ),
    "evidence class of a row by an unknown column": (
        {"evidence_of_row": "if(read, 'observed', null)"},
        "evidence_of_row: reads read, which",
    ),
    "no failing example": ({"examples": [GOOD["examples"][0], GOOD["examples"][2]]}, "examples: none has status fail; add one"),
    "no unknown example": ({"examples": GOOD["examples"][:2]}, "examples: none has status not_assessed; add one"),
    "two examples of one name": ({"examples": [*GOOD["examples"], GOOD["examples"][0]]}, "examples: 'whole' stands there twice"),
    "example with an unknown column": (
        {"examples": [*GOOD["examples"], {"name": "x", "row": {"isrs": 1}, "status": "pass"}]},
        "examples.x: isrs: is not a column of subject partition",
    ),
    "example with text for a number": (
        {"examples": [*GOOD["examples"], {"name": "x", "row": {"isr_count": "3"}, "status": "pass"}]},
        "examples.x: isr_count: holds '3'; write a whole number of 32 bits",
    ),
    "example with a number too large": (
        {"examples": [*GOOD["examples"], {"name": "x", "row": {"isr_count": 2**31}, "status": "pass"}]},
        "isr_count: holds 2147483648; write a whole number of 32 bits",
    ),
    "example with true for a number": (
        {"examples": [*GOOD["examples"], {"name": "x", "row": {"isr": [True]}, "status": "pass"}]},
        "examples.x: isr[0]: holds True; write a whole number",
    ),
    "example with an unknown field": (
        {"examples": [*GOOD["examples"], {"name": "x", "row": {"policy": {"teir": "a"}}, "status": "pass"}]},
        "examples.x: policy.teir: is not a field; write one of tier",
    ),
    "command with a placeholder nothing fills": (
        {"remediation": {"text": "t", "commands": ["kafka-configs.sh --entity-name {broker}"]}},
        "remediation.commands: {broker} cannot be filled for subject partition; write one of {partition}, {topic}",
    ),
    "change with a second command": (
        {
            "remediation": {
                "text": "t",
                "changes": [{"command": "kafka-topics.sh --delete --topic {topic}; id", "does": "d", "decide": "d"}],
            }
        },
        "is not one command (a program",
    ),
    "change by another program, without a decision": (
        {"remediation": {"text": "t", "changes": [{"command": "curl x", "does": "d"}]}},
        "write in decide why a person decides",
    ),
    "change that deletes, without a decision": (
        {"remediation": {"text": "t", "changes": [{"command": "kafka-topics.sh --delete --topic {topic}", "does": "d"}]}},
        "write in decide why a person decides",
    ),
    "command that changes something among those that look": (
        {"remediation": {"text": "t", "commands": ["kafka-configs.sh --alter --entity-name {topic} --delete-config retention.ms"]}},
        "changes something; write it under changes, with what it does",
    ),
    "changing command with a fixed value": (
        {"remediation": {"text": "t", "changes": [{"command": "kafka-configs.sh --add-config retention.ms=604800000", "does": "d"}]}},
        "remediation.changes: 'retention.ms=604800000' sets a fixed value, which may be weaker than the present one",
    ),
    "changing command with two settings": (
        {
            "remediation": {
                "text": "t",
                "changes": [{"command": "x --add-config a={isr},b={isr}", "does": "d"}],
                "values": {"isr": "isr_count"},
            }
        },
        "or several settings at once",
    ),
    "changing command with a value that nothing computes": (
        {"remediation": {"text": "t", "changes": [{"command": "x --add-config a={isr}", "does": "d"}]}},
        "remediation.changes: {isr} cannot be filled for subject partition; write one of {partition}, {topic}",
    ),
    "value that no command uses": (
        {"remediation": {"text": "t", "values": {"isr": "isr_count"}}},
        "remediation.values: isr is used by no command of changes",
    ),
    "value with the name of a placeholder": (
        {"remediation": {"text": "t", "values": {"topic": "'x'"}, "changes": [{"command": "x {topic}", "does": "d"}]}},
        "remediation.values: topic is a name that rows fill themselves",
    ),
    "value of a column that does not exist": (
        {"remediation": {"text": "t", "values": {"isr": "isr_size"}, "changes": [{"command": "x {isr}", "does": "d"}]}},
        "remediation.values.isr: reads isr_size, which is not a column of subject partition",
    ),
    "value that no failing example shows": (
        {"remediation": {"text": "t", "values": {"isr": "isr_count"}, "changes": [{"command": "x {isr}", "does": "d"}]}},
        "examples: no failing one has a value for remediation.values.isr",
    ),
    "example with a value that nothing computes": (
        {"examples": [*GOOD["examples"], {"name": "x", "row": {"isr_count": 1}, "status": "fail", "values": {"isr": "1"}}]},
        "examples.x: values: isr is no name of remediation.values",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_control_is_refused_with_file_field_and_reason(case: str, tmp_path: Path) -> None:
    changes, expected = BAD[case]
    path = write(tmp_path)
    path.write_text(yaml.safe_dump({key: value for key, value in {**GOOD, **changes}.items() if value is not None}))
    message = refusal(tmp_path)
    assert str(path) in message
    assert expected in message


def test_a_key_that_no_snapshot_keeps_is_refused(tmp_path: Path) -> None:
    write(
        tmp_path,
        subject="topic",
        pass_when="config['retention.msec'].value = '1'",
        observed="topic",
        remediation={"text": "t"},
        examples=[],
    )
    assert "pass_when: reads config.retention.msec, a key that snapshots do not keep; write one of cleanup.policy" in refusal(tmp_path)


def test_a_quoted_boolean_is_asked_for_where_a_configuration_value_is_text(tmp_path: Path) -> None:
    rows = [{"name": "x", "row": {"config": {"unclean.leader.election.enable": False}}, "status": "pass"}]
    write(tmp_path, subject="topic", pass_when="is_internal", observed="topic", remediation={"text": "t"}, examples=rows)
    assert "config['unclean.leader.election.enable']: write a mapping with the fields value" in refusal(tmp_path)


def test_a_key_that_stands_twice_in_a_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text() + "severity: low\n")
    assert "key 'severity' stands there twice" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("text", "reason"), [("- a\n- b\n", "must be a mapping"), ("", "must be a mapping"), ("a: [", "is not valid YAML")]
)
def test_a_file_that_is_no_mapping_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    assert reason in refusal(tmp_path)


def test_all_bad_files_are_reported_at_once(tmp_path: Path) -> None:
    write(tmp_path, "first", severity="urgent")
    write(tmp_path, "second", code="TST-02", pass_when="lag = 0")
    (tmp_path / "third.yaml").write_text("a: [")
    write(tmp_path, "good", code="TST-04")
    message = refusal(tmp_path)
    assert all(name in message for name in ("first.yaml", "second.yaml", "third.yaml"))
    assert "good.yaml" not in message


def test_a_code_or_an_id_that_is_used_twice_is_refused_with_both_files(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    write(tmp_path / "own")
    write(tmp_path / "own", "other")
    message = refusal(own)
    assert f"{own / 'isr_is_whole.yaml'} and {own / 'other.yaml'}: code: 'TST-01' is used by each" in message.replace(
        f"{own / 'other.yaml'} and {own / 'isr_is_whole.yaml'}", f"{own / 'isr_is_whole.yaml'} and {own / 'other.yaml'}"
    )
    (own / "other.yaml").unlink()
    again = tmp_path / "again"
    again.mkdir()
    write(again, code="TST-09")
    assert "id: 'isr_is_whole' is used by each" in refusal(own, again)


def test_a_parameter_that_two_controls_of_a_subject_name_alike_is_refused(tmp_path: Path) -> None:
    for name, code in (("one", "TST-01"), ("two", "TST-02")):
        write(tmp_path, name, code=code, pass_when="isr_count >= parameters.least", parameters=PARAMETERS)
    assert "two.yaml: parameters.least: " in refusal(tmp_path)


@pytest.mark.parametrize("name", ["control.yml", "control.yaml.bak", "notes.txt", "folder", "Not-An-Id.yaml"])
def test_what_could_be_meant_as_a_control_is_not_left_out_in_silence(name: str, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_text("x")
    assert f"{tmp_path}: holds 1 entries that are not control files and would be left out" in refusal(tmp_path)


def test_checking_any_folder_does_not_tell_what_lies_in_it(tmp_path: Path) -> None:
    """Whoever may name a folder is not to learn the names of files in folders that only the auditor can read."""
    for name in ("customers.sql", "id_ed25519", "private-key.pem"):
        (tmp_path / name).write_text("secret")
    (tmp_path / "salaries").mkdir()
    message = refusal(tmp_path)
    assert "holds 4 entries" in message
    assert not any(name in message for name in ("customers", "id_ed", "private", "salaries"))


def test_an_alias_that_holds_itself_ends_with_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("id: x\nexamples: &a [*a, {row: *a}]\n")
    assert "x.yaml: " in refusal(tmp_path)


@pytest.mark.parametrize("default", [True, "2", ".nan", ".inf", 2**63, -(2**63) - 1])
def test_a_parameter_is_a_number_that_spark_has(default: Any, tmp_path: Path) -> None:
    one = {"least": {**PARAMETERS["least"], "default": default}}
    path = write(tmp_path, parameters=one, pass_when="isr_count >= parameters.least")
    if isinstance(default, str) and default.startswith("."):
        path.write_text(path.read_text().replace(f"'{default}'", default).replace(f'"{default}"', default))
        assert f"default: {default}" in path.read_text()
    expected = "a number is beyond 64 bits" if type(default) is int else "parameters.least.default"
    assert expected in refusal(tmp_path)


@pytest.mark.parametrize(
    "sql", ["map(topic) using 'id'", "exists(values 1)", "explain select 1", "transform()", "x ->", "case end", "a..b", "["]
)
@pytest.mark.parametrize("field", ["applies_when", "pass_when", "observed", "not_assessed_reason", "evidence_of_row"])
def test_malformed_sql_is_refused_with_its_field(field: str, sql: str, tmp_path: Path) -> None:
    path = write(tmp_path, **{field: sql})
    assert f"{path}: {field}: " in refusal(tmp_path)


def test_a_folder_without_controls_or_that_is_missing_is_refused(tmp_path: Path) -> None:
    assert "holds no control" in refusal(tmp_path)
    assert "is not a folder" in refusal(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    assert "is not a folder that can be read (Not a directory)" in refusal(tmp_path / "file")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("a\0b", "x" * 300, "circle"):
        assert "folder" in refusal(tmp_path / name)


def test_controls_check_counts_the_controls_of_each_folder(tmp_path: Path) -> None:
    write(tmp_path)
    done = CliRunner().invoke(app, ["controls", "check", str(tmp_path)])
    shipped = len(load_catalogue().controls)
    assert done.output.startswith(f"{shipped + 1} controls are valid, 1 of them from {tmp_path}; sha256 "), done.output
    alone = CliRunner().invoke(app, ["controls", "check"])
    assert alone.output.startswith(f"{shipped} controls are valid; sha256 ")


def test_controls_check_refuses_a_folder_without_controls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, empty = tmp_path / "own", tmp_path / "empty"
    own.mkdir()
    empty.mkdir()
    write(own)
    with pytest.raises(SystemExit) as ended:
        main(lambda: app(["controls", "check", str(own), str(empty)], standalone_mode=False))
    assert ended.value.code == 2
    assert f"{empty}: holds no control (*.yaml)" in capsys.readouterr().err


def test_a_control_that_takes_a_baseline_has_an_example_of_a_first_audit(tmp_path: Path) -> None:
    write(tmp_path, baseline_when="leader_changes is null")
    assert "baseline_when has none with first_audit: true and status not_applicable" in refusal(tmp_path)
    first = {"name": "first", "row": {"isr_count": 3}, "status": "not_applicable", "first_audit": True}
    write(tmp_path, baseline_when="leader_changes is null", examples=[*GOOD["examples"], first])
    control = load_catalogue([tmp_path]).controls[0]
    assert "leader_changes" in [reference.label for reference in control.reads]
    assert "leader_changes" not in [reference.label for reference in control.decides_on]
    write(tmp_path, baseline_when="no_such_column is null", examples=[*GOOD["examples"], first])
    assert "baseline_when" in refusal(tmp_path)


def test_a_control_that_only_an_owner_can_answer_has_an_example_of_nobody_answering(tmp_path: Path) -> None:
    examples = [*GOOD["examples"], {"name": "nobody", "row": {"isr_count": 3}, "status": "not_applicable"}]
    write(tmp_path, undeclared_when="policy.owner is null", examples=examples)
    assert "undeclared_when has none with status not_applicable and a reason" in refusal(tmp_path)
    write(tmp_path, undeclared_when="policy.owner is null", examples=[*examples[:-1], {**examples[-1], "reason": "PRD-05 asks"}])
    assert load_catalogue([tmp_path]).controls[0].undeclared_when == "policy.owner is null"
