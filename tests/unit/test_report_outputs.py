"""The files of a report: JSON that matches its schema, JUnit, and the same bytes for the same audit."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from lag_rows import group_sla, lag_bucket, series_table, sla_table
from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding, group_partition

from kafka_audit import report as package
from kafka_audit.audit.formats import DEFAULT_FORMATS, REPORT_FILES
from kafka_audit.errors import CollectionError
from kafka_audit.report import read_report, write_report
from kafka_audit.report.json_report import as_json
from kafka_audit.report.json_report import render as render_json
from kafka_audit.report.junit import render as render_junit
from kafka_audit.report.model import SCHEMA_VERSION

TOPIC = control("replication_factor_sufficient", "TOP-01")
PASSING = control("unclean_leader_election_disabled", "TOP-04")
EMPTY = control("log_dirs_healthy", "REP-08", subject="broker")
GROUP = control("lag_within_sla", "CON-01", subject="group")


def audit(root: Path, failures: int = 2) -> FakeAudit:
    fake = FakeAudit(root, (GROUP, EMPTY, TOPIC, PASSING))
    rows = [finding(TOPIC, f"t{number:03}") for number in range(failures)]
    rows += [finding(TOPIC, "denied", "not_assessed", reason="no permission"), finding(TOPIC, "odd", "error", reason="rule raised")]
    rows += [finding(PASSING, "a", "pass"), finding(PASSING, "b", "pass")]
    fake.settings(rows)
    partitions = [group_partition(group, "t", 0, lost=1, status=group, status_reason=group, time_to_loss_ms=1) for group in HOSTILE_GROUPS]
    slas = sla_table([group_sla(group, sla=group) for group in HOSTILE_GROUPS])
    series = series_table([lag_bucket(group, hour) for group in HOSTILE_GROUPS for hour in (0, 2)])
    fake.lag([finding(GROUP, group) for group in HOSTILE_GROUPS], partitions, group_slas=slas, lag_series=series)
    fake.gates()
    return fake


def junit(fake: FakeAudit, **options: int) -> ET.Element:
    return ET.fromstring(render_junit(read_report(*fake.inputs.args, **fake.inputs.kwargs, **options)))


def report_json(fake: FakeAudit, **options: int) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(render_json(read_report(*fake.inputs.args, **fake.inputs.kwargs, **options)))
    return loaded


def written(fake: FakeAudit) -> Path:
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    return fake.audit.report


def test_a_file_of_each_format_is_written(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    assert (
        {path.name for path in written(fake).iterdir()}
        == {REPORT_FILES[name].file for name in DEFAULT_FORMATS}
        >= {"report.sarif", "junit.xml"}
    )


def test_the_same_inputs_give_the_same_bytes_and_replace_what_was_there(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    first = {path.name: path.read_bytes() for path in written(fake).iterdir()}
    (fake.audit.report / "stale.html").touch()
    second = {path.name: path.read_bytes() for path in written(fake).iterdir()}
    assert first == second


def test_a_disk_that_refuses_the_files_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = audit(tmp_path)
    write_report(*fake.inputs.args, **fake.inputs.kwargs)
    page = fake.audit.report / "report.html"
    before = page.read_bytes()

    open_file = Path.open

    def full(path: Path, mode: str = "r", **named: Any) -> Any:
        if mode == "xb":
            raise OSError(28, "No space left on device")
        return open_file(path, mode, **named)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(CollectionError, match="disk is full"):
        write_report(*fake.inputs.args, **fake.inputs.kwargs)
    assert page.read_bytes() == before


def test_the_json_is_valid_against_its_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    schema = json.loads((Path(package.__path__[0]) / "report.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert schema["properties"]["schema_version"]["const"] == SCHEMA_VERSION
    complete, bare = audit(tmp_path / "complete"), FakeAudit(tmp_path / "bare", (TOPIC,))
    for fake in (complete, bare):
        assert [error.message for error in validator.iter_errors(report_json(fake))] == []
    assert list(validator.iter_errors({**report_json(bare), "surprise": 1}))


def test_the_json_says_verdict_coverage_and_truncation(tmp_path: Path) -> None:
    value = report_json(audit(tmp_path, failures=9), limit=3)
    assert (value["verdict"], value["exit_code"], value["truncated"]) == ("FAILED", 3, True)
    assert value["coverage"] == {"assessed": 18, "applicable": 20, "ratio": 0.9}
    of_topic = [one for one in value["findings"] if one["code"] == "TOP-01" and one["status"] == "fail"]  # type: ignore[attr-defined]
    assert [one["resource"] for one in of_topic] == ["t000", "t001", "t002"]
    assert of_topic[0]["evidence"] == {"replicas": [1], "partition": 0}


def test_coverage_of_nothing_is_null_and_never_1(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, ())
    assert as_json(read_report(*fake.inputs.args, **fake.inputs.kwargs))["coverage"]["ratio"] is None


def test_hostile_names_are_whole_in_the_json_and_inert_when_it_is_printed(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    text = render_json(read_report(*fake.inputs.args, **fake.inputs.kwargs))
    assert re.fullmatch(r"[\n -~]*", text)
    named = {one["group_id"] for one in json.loads(text)["findings"]}
    assert set(HOSTILE_GROUPS) <= named


def test_the_gates_are_tests_of_their_own_so_that_all_skipped_is_never_green(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    root = junit(fake)
    gates = next(suite for suite in root if suite.get("name") == "gate")
    assert [(case.get("name"), [child.tag for child in case]) for case in gates] == [
        ("verdict", ["failure"]),
        ("evidence gate", ["error"]),
        ("findings gate", ["error"]),
    ]
    assert root.find("testsuite[@name='topic']/testcase/skipped").get("message") == "not assessed: the control did not run"  # type: ignore[union-attr]


def test_each_subject_is_a_suite_and_each_status_its_own_kind_of_case(tmp_path: Path) -> None:
    root = junit(audit(tmp_path))
    assert [suite.get("name") for suite in root] == ["gate", "broker", "group", "topic"]
    topic = next(suite for suite in root if suite.get("name") == "topic")
    kinds = [(case.get("name"), case[0].tag if len(case) else "passed") for case in topic]
    assert kinds == [
        ("t000", "failure"),
        ("t001", "failure"),
        ("odd", "error"),
        ("denied", "skipped"),
        ("Unclean leader election disabled (2 passed)", "passed"),
    ]
    assert topic.find("testcase[@name='denied']/skipped").get("message") == "not assessed: no permission"  # type: ignore[union-attr]
    assert (topic.get("tests"), topic.get("failures"), topic.get("errors"), topic.get("skipped")) == ("5", "2", "1", "1")
    broker = next(suite for suite in root if suite.get("name") == "broker")
    assert broker.find("testcase/skipped").get("message") == "not applicable: nothing in scope to judge"  # type: ignore[union-attr]


def test_failures_beyond_the_bound_stay_failures_in_the_suite(tmp_path: Path) -> None:
    root = junit(audit(tmp_path, failures=9), limit=3)
    names = [case.get("name") or "" for case in root.iter("testcase") if case.find("failure") is not None]
    assert "6 more resources, failing, that are not listed" in names


def test_the_xml_holds_no_character_that_xml_forbids_or_that_hides(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    text = render_junit(read_report(*fake.inputs.args, **fake.inputs.kwargs))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u034f\U000e0100\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]", text)
    names = [case.get("name") for case in ET.fromstring(text).iter("testcase")]
    assert r"two\nlines\tand\r\u001b[31mred\u0000\u0085" in names
