"""The report model: it cannot be changed, refuses what it does not know, and its JSON and schema are its own."""

import dataclasses
import json
from pathlib import Path

import pytest
from pydantic import ValidationError
from report_audit import FakeAudit, control, finding, group_partition

from kafka_audit.errors import IntegrityError
from kafka_audit.report import Report, read_report
from kafka_audit.report.comparison import Change, ChangedFinding, Comparison, TrendPoint
from kafka_audit.report.json_report import as_json, render
from kafka_audit.report.schema import FILE, schema
from kafka_audit.report.snapshot_view import UsedSnapshot

TOPIC = control("replication_factor_sufficient", "TOP-01")
COMPARISON = Comparison(
    previous_audit_id="20261119T231600Z-0badcafe0badcafe",
    previous_started_at="2026-11-19T23:16:00+00:00",
    previous_verdict="FAILED",
    counts={"new": 1, "unchanged": 1},
    listed=(
        ChangedFinding(
            change=Change.NEW,
            control_id=TOPIC.id,
            code=TOPIC.code,
            title=TOPIC.title,
            subject="topic",
            resource="b",
            severity="critical",
            severity_before=None,
            observed="1",
            observed_before=None,
        ),
    ),
    notes=("The policy was changed.",),
    changes={(TOPIC.id, "a"): Change.UNCHANGED, (TOPIC.id, "b"): Change.NEW, (TOPIC.id, "denied"): Change.NEW},
)
TREND = TrendPoint(
    audit_id="20261119T231600Z-0badcafe0badcafe",
    started_at="2026-11-19T23:16:00+00:00",
    verdict="FAILED",
    failed_by_severity={"critical": 1},
    coverage=None,
    lost_records=None,
    availability_percent=99.5,
)


def report(root: Path) -> Report:
    fake = FakeAudit(root, (TOPIC,))
    fake.settings([finding(TOPIC, "a"), finding(TOPIC, "b"), finding(TOPIC, "denied", "not_assessed", reason="no permission")])
    fake.lag([], [group_partition("billing", "t", 0, lag=5)])
    fake.gates()
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def parts(value: object) -> list[object]:
    """All dataclasses in a report, of which the policy and the controls are no part."""
    if isinstance(value, tuple):
        return [found for one in value for found in parts(one)]
    if not dataclasses.is_dataclass(value) or type(value).__module__.startswith("kafka_audit.policy"):
        return []
    return [value, *(found for one in dataclasses.fields(value) for found in parts(getattr(value, one.name)))]


def test_the_schema_that_is_kept_is_the_one_of_the_model() -> None:
    assert FILE.read_text() == schema(), "the report model was changed: run make docs and look at the difference"


def test_no_part_of_a_report_can_be_changed(tmp_path: Path) -> None:
    found = parts(dataclasses.replace(report(tmp_path), comparison=COMPARISON, trend=(TREND,)))
    assert {type(one).__name__ for one in found} >= {"Report", "Broker", "Finding", "GroupPartition", "ChangedFinding", "TrendPoint"}
    for one in found:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, dataclasses.fields(one)[0].name, None)  # type: ignore[arg-type]


def test_a_field_that_a_part_does_not_have_is_refused() -> None:
    with pytest.raises(ValidationError, match="surprise"):
        UsedSnapshot(snapshot_id="x", manifest_sha256="y", surprise=1)  # type: ignore[call-arg]


def test_a_value_of_another_type_is_a_broken_file_and_no_report(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.snapshot.manifest["files"]["brokers.parquet"]["bytes"] = "many"
    with pytest.raises(IntegrityError, match="HashedFile"):
        read_report(*fake.inputs.args, **fake.inputs.kwargs)


@pytest.mark.parametrize(
    "text",
    ["not json", "[" * 40 + "]" * 40, "[" * 100_000, '{"a": NaN}', '{"a": 1e999}', '{"a": "\\ud800"}', '{"\\ud800": 1}', "9" * 5000],
    ids=["text", "deep", "deeper", "nan", "infinite", "half a character", "half a name", "long number"],
)
def test_evidence_that_not_every_program_reads_as_json_is_text(tmp_path: Path, text: str) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.settings([finding(TOPIC, "a", evidence=text), finding(TOPIC, "b", evidence='{"replicas": [1, null, 0.5]}')])
    value = json.loads(render(read_report(*fake.inputs.args, **fake.inputs.kwargs)))
    assert [one["evidence"] for one in value["findings"]] == [text, {"replicas": [1, None, 0.5]}]


def test_the_json_holds_the_comparison_the_trend_and_the_change_of_each_failure(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    alone = report(tmp_path)
    value = as_json(dataclasses.replace(alone, comparison=COMPARISON, trend=(TREND,)))
    assert [(one["resource"], one["change"]) for one in value["findings"]] == [("a", "unchanged"), ("b", "new"), ("denied", None)]
    assert (value["comparison"]["counts"], value["comparison"]["listed"][0]["change"]) == ({"new": 1, "unchanged": 1}, "new")
    assert "changes" not in value["comparison"]
    assert value["trend"][0]["coverage"] is None
    assert list(jsonschema.Draft202012Validator(json.loads(schema())).iter_errors(value)) == []
    without = as_json(alone)
    assert (without["comparison"], [one["audit_id"] for one in without["trend"]]) == (None, [alone.audit_id])
    assert {one["change"] for one in without["findings"]} == {None}
