"""Reading findings, reasons and lag: limited lists, complete counts, and unknown values that are never 0."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from report_audit import FINDINGS, FakeAudit, control, finding, group_partition, spark_folder, summary

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import EvidenceClass, Severity
from kafka_audit.report import Report, read_report
from kafka_audit.report.control_results import FindingReader
from kafka_audit.report.json_report import as_json

TOPIC = control("replication_factor_sufficient", "TOP-01")
GROUP = control("lag_within_sla", "CON-01", subject="group", severity=Severity.HIGH)


def read(fake: FakeAudit, **options: int) -> Report:
    return read_report(*fake.inputs.args, **fake.inputs.kwargs, **options)


def audit(root: Path, rows: list[dict[str, object]], **options: object) -> FakeAudit:
    fake = FakeAudit(root, (GROUP, TOPIC))
    fake.settings(rows, **options)  # type: ignore[arg-type]
    fake.lag([])
    fake.gates()
    return fake


def test_findings_are_bounded_per_status_and_counted_in_full(tmp_path: Path) -> None:
    rows = [finding(TOPIC, f"t{number:04}", status) for status in ("fail", "not_assessed") for number in range(1234)]
    report = read(audit(tmp_path, rows[::-1], parts=7))
    result = next(one for one in report.results if one.code == "TOP-01")
    assert result.counted.failed == 1234
    assert [one.resource for one in result.failures] == [f"t{number:04}" for number in range(200)]
    assert len(result.not_assessed) == 200


def test_passes_are_never_read_as_findings(tmp_path: Path) -> None:
    reader = FindingReader(10)
    folder = tmp_path / "findings.parquet"
    spark_folder(folder, [finding(TOPIC, "a", "pass"), finding(TOPIC, "b", "not_applicable"), finding(TOPIC, "c")], FINDINGS)
    reader.read(folder)
    assert set(reader._kept) == {(TOPIC.id, "fail")}


def test_a_reason_stands_once_with_its_count_over_all_controls(tmp_path: Path) -> None:
    other = control("min_insync_replicas_sufficient", "TOP-02")
    fake = FakeAudit(tmp_path, (TOPIC, other))
    rows = [finding(one, f"t{number}", "not_assessed", reason="denied") for one in (TOPIC, other) for number in range(300)]
    fake.settings([*rows, finding(TOPIC, "x", "not_assessed", reason=None), finding(TOPIC, "y", "error", reason="rule raised")], parts=3)
    fake.lag([])
    reasons = read(fake).reasons
    assert [(one.status, one.reason, one.count, one.codes) for one in reasons] == [
        ("error", "rule raised", 1, ("TOP-01",)),
        ("not_assessed", "denied", 600, ("TOP-01", "TOP-02")),
        ("not_assessed", "no reason was recorded", 1, ("TOP-01",)),
    ]
    assert reasons[1].resources == ("t0", "t1", "t10")


def test_why_results_do_not_apply_stands_apart_from_why_results_are_missing(tmp_path: Path) -> None:
    rows = [finding(TOPIC, f"t{number}", "not_applicable", reason="baseline taken") for number in range(4)]
    report = read(audit(tmp_path, [*rows, finding(TOPIC, "x", "not_applicable", reason=None), finding(TOPIC, "y", "pass")]))
    assert [(one.reason, one.count, one.codes) for one in report.set_aside] == [("baseline taken", 4, ("TOP-01",))]
    assert report.reasons == ()
    assert report.results[-1].not_assessed == ()


def test_an_open_manual_control_is_not_assessed_and_no_gap_of_the_coverage(tmp_path: Path) -> None:
    manual = control("restore_rehearsed", "OPS-01", evidence=EvidenceClass.MANUAL)
    fake = FakeAudit(tmp_path, (TOPIC, manual))
    fake.settings([finding(TOPIC, "orders", "pass"), finding(manual, "cluster", "not_assessed", reason="open")])
    fake.lag([])
    report = read(fake)
    assert (report.counts.not_assessed, report.counts.still_open) == (1, 1)
    assert (report.counts.assessed, report.counts.applicable) == (1, 1)
    assert [one.reason for one in report.reasons] == ["open"]
    assert [(tier, one.coverage) for tier, one in report.tiers if one.not_assessed] == [("no_loss", report.coverage)]
    assert as_json(report)["tiers"][0]["still_open"] == 1


def test_a_control_with_an_empty_population_is_neither_pass_nor_fail(tmp_path: Path) -> None:
    report = read(audit(tmp_path, []))
    assert [result.code for result in report.judged_nothing] == ["CON-01", "TOP-01"]
    assert report.failing == ()
    assert report.counts.applicable == 0


def test_a_control_of_the_catalogue_without_a_summary_row_did_not_run(tmp_path: Path) -> None:
    report = read(audit(tmp_path, [], summaries=[]))
    assert next(one for one in report.results if one.code == "TOP-01").counts is None


def test_a_control_that_the_catalogue_no_longer_holds_is_still_reported(tmp_path: Path) -> None:
    gone = control("old_control", "OLD-01")
    rows = [finding(gone, "orders")]
    report = read(audit(tmp_path, rows, summaries=[summary(gone, rows)]))
    assert [(result.code, result.control) for result in report.failing] == [("OLD-01", None)]


def test_failures_come_worst_severity_first(tmp_path: Path) -> None:
    low = control("a_low_one", "AAA-01", severity=Severity.LOW)
    fake = FakeAudit(tmp_path, (low, TOPIC))
    fake.settings([finding(low, "a"), finding(TOPIC, "a")])
    fake.lag([])
    report = read(fake)
    assert [result.code for result in report.failing] == ["TOP-01", "AAA-01"]
    assert [(one.name, one.failed) for one in report.by_severity()][:2] == [("critical", 1), ("high", 0)]


def test_a_summary_that_names_a_control_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match="twice"):
        read(audit(tmp_path, [], summaries=[summary(TOPIC, []), summary(TOPIC, [])]))


def test_findings_with_a_column_missing_are_refused_by_name(tmp_path: Path) -> None:
    fake = audit(tmp_path, [finding(TOPIC, "a")])
    part = next((fake.audit.settings / "findings.parquet").glob("*.parquet"))
    pq.write_table(pa.Table.from_pylist([{"control_id": "x"}]), part)
    with pytest.raises(IntegrityError, match=r"no columns .*resource"):
        read(fake)


def test_a_corrupt_parquet_file_is_an_integrity_error_that_names_it(tmp_path: Path) -> None:
    fake = audit(tmp_path, [finding(TOPIC, "a")])
    next((fake.audit.settings / "findings.parquet").glob("*.parquet")).write_bytes(b"PAR1 broken")
    with pytest.raises(IntegrityError, match=r"findings\.parquet"):
        read(fake)


def lag_audit(root: Path, partitions: list[dict[str, object]]) -> Report:
    fake = FakeAudit(root, ())
    fake.take_snapshot({"groups": [{"group_id": "idle", "group_type": "classic", "state": "Empty"}]}, "20261120T231501Z-ab12cd35ab12cd35")
    fake.settings([])
    fake.lag([], partitions)
    return read(fake)


def test_lost_records_come_before_commits_beyond_the_end_and_these_before_lag(tmp_path: Path) -> None:
    rows = [
        group_partition("behind", "t", 0, lag=10**9),
        group_partition("ahead", "t", 0, beyond_end=3),
        group_partition("overrun", "t", 0, lost=1),
        group_partition("fine", "t", 0),
        group_partition("unknown", "t", 0, lag=None, lost=None, beyond_end=None),
    ]
    lag = lag_audit(tmp_path, rows).lag
    assert [one.group_id for one in lag.partitions] == ["overrun", "ahead", "behind"]
    assert (lag.partition_count, lag.behind_count, lag.unknown_count, lag.group_count) == (5, 3, 1, 6)


def test_unknown_lag_is_counted_as_unknown_and_an_absent_commit_as_absent(tmp_path: Path) -> None:
    rows = [
        group_partition("g", "t", 0, lag=5),
        group_partition("g", "t", 1, lag=None, lost=None, beyond_end=None),
        group_partition("g", "t", 2, has_commit=False, committed=None, lag=None, lost=None, beyond_end=None),
        group_partition("g", "t", 3, has_commit=None, committed=None, lag=None, lost=None, beyond_end=None),
    ]
    group = lag_audit(tmp_path, rows).lag.groups[0]
    assert (group.group_id, group.partitions, group.known, group.unknown, group.without_commit, group.lag) == ("g", 4, 1, 2, 1, 5)


def test_only_the_worst_50_partitions_and_groups_are_listed(tmp_path: Path) -> None:
    lag = lag_audit(tmp_path, [group_partition(f"g{number:03}", "t", 0, lag=number + 1) for number in range(120)]).lag
    assert ([one.lag for one in lag.partitions], len(lag.groups)) == (list(range(120, 70, -1)), 50)
    assert (lag.behind_count, lag.group_count) == (120, 121)


def test_a_group_without_partitions_is_listed_with_nothing_known(tmp_path: Path) -> None:
    (group,) = lag_audit(tmp_path, []).lag.groups
    assert (group.group_id, group.state, group.known) == ("idle", "Empty", 0)
