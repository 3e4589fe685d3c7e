"""The verification from end to end: what it writes, what it refuses, and what it leaves alone."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession
from snapshot_builder import CLUSTER, READ_AT, Synthetic, audit_folder

from kafka_audit.audit.inputs import used_by
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.rows import LAG, SETTINGS, SUBJECTS
from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id, seal_audit
from kafka_audit.store.sealed import OFFSETS, Sealed
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, job_path, with_class_data
from spark_jobs import verify
from spark_jobs.judge.controls import BASELINE_TAKEN, COLUMNS
from spark_jobs.judge.part import Part

pytestmark = pytest.mark.spark

HOSTILE = "=cmd|' /C calc'!A0\n<script>\u202e\"\\$(rm)"


def faulty() -> Synthetic:
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("orders", partitions=2).topic("single", replicas=[1])
    cluster.offsets("orders", log_start=100, log_end=500).offsets("orders", 1, log_start=0, log_end=10)
    cluster.group(HOSTILE, assigned=[("orders", 0)]).commit(HOSTILE, "orders", 40)
    return cluster.group("ahead", assigned=[("orders", 1)]).commit("ahead", "orders", 12, partition=1)


@pytest.fixture
def made(tmp_path: Path) -> tuple[Snapshot, Audit]:
    snapshot = faulty().write(tmp_path)
    return snapshot, audit_folder(tmp_path, snapshot)


def run(part: str, snapshot: Snapshot, audit: Audit, *more: str) -> int:
    return verify.main(["--snapshot", str(snapshot.path), "--audit", str(audit.path), "--parts", part, *more])


def table(path: Path) -> list[dict]:
    return pq.read_table(path).to_pylist()


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_spark_submit_runs_both_parts_and_leaves_complete_findings(tmp_path: Path) -> None:
    snapshot = faulty().write(tmp_path)
    audit = audit_folder(tmp_path, snapshot)
    seal_audit(EvidenceRoot(path=tmp_path), CLUSTER, audit.path.name, {})
    before = files(snapshot.path)
    submit = Path(sys.executable).parent / "spark-submit"
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    command = [str(submit), "--master", "local[2]", "--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS)]
    command += [part for name, value in DEFAULT_CONF.items() for part in ("--conf", f"{name}={value}")]
    command += [str(job_path("verify")), "--snapshot", str(snapshot.path), "--audit", str(audit.path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]

    assert not (audit.path / "manifest.json").exists(), "an audit that is being rewritten must not look sealed"
    assert files(snapshot.path) == before
    assert sorted(files(audit.path)) == [
        "lag/commit_history.json",
        "lag/findings.parquet/part-00000.parquet",
        "lag/group_partitions.parquet/part-00000.parquet",
        "lag/group_slas.parquet/part-00000.parquet",
        "lag/history.json",
        "lag/lag_history.json",
        "lag/lag_series.parquet/part-00000.parquet",
        "lag/partition_windows.parquet/part-00000.parquet",
        "lag/rules.json",
        "lag/sla_burns.parquet/part-00000.parquet",
        "lag/summary.parquet/part-00000.parquet",
        "run.json",
        "settings/findings.parquet/part-00000.parquet",
        "settings/history.json",
        "settings/rules.json",
        "settings/summary.parquet/part-00000.parquet",
    ]
    catalogue = load_catalogue()
    for part, folder in ((SETTINGS, audit.settings), (LAG, audit.lag)):
        findings, summary = table(folder / "findings.parquet"), table(folder / "summary.parquet")
        assert tuple(findings[0]) == COLUMNS
        assert [(row["code"], row["resource"]) for row in findings] == sorted((row["code"], row["resource"]) for row in findings)
        assert {(row["audit_id"], row["snapshot_id"], row["cluster"]) for row in findings} == {
            (audit.path.name, snapshot.snapshot_id, CLUSTER)
        }
        assert [row["control_id"] for row in summary] == [control.id for control in catalogue.of_part(part)]
        assert {row["rule_set_sha256"] for row in findings} == {catalogue.rule_set_sha256}
        assert all(row["rule_sha256"] == catalogue.rules[row["control_id"]].sha256 for row in (*findings, *summary))
        for row in summary:
            counted = row["passed"] + row["failed"] + row["errored"] + row["not_assessed"] + row["not_applicable"]
            assert row["population"] == row["findings"] == row["distinct_resources"] == counted
    failed = {(row["code"], row["resource"]) for row in table(audit.lag / "findings.parquet") if row["status"] == "fail"}
    assert {("CON-03", f"{HOSTILE}:orders-0"), ("CON-04", "ahead:orders-1")} <= failed
    lost = next(row for row in table(audit.lag / "group_partitions.parquet") if row["group_id"] == HOSTILE)
    assert (lost["lost"], lost["lag"], lost["errors"]) == (60, 400, "{}")
    assert list(lost) == list(SUBJECTS["group_partition"].columns)


@pytest.fixture
def only_topics(only_subjects: Callable[..., None]) -> None:
    """The job judges topics only."""
    only_subjects("topic")


def of_orders(audit: Audit, code: str) -> tuple[str, str | None]:
    rows = table(audit.settings / "findings.parquet")
    return next((row["status"], row["reason"]) for row in rows if (row["code"], row["resource"]) == (code, "orders"))


@pytest.mark.usefixtures("only_topics")
def test_the_first_audit_takes_the_baseline_and_a_later_one_without_its_history_does_not(made, spark: SparkSession, tmp_path: Path) -> None:
    snapshot, audit = made
    assert run(SETTINGS, snapshot, audit) == 0
    assert of_orders(audit, "TOP-14") == ("not_applicable", BASELINE_TAKEN)
    assert json.loads((audit.settings / "history.json").read_text())["first_audit"] is True
    seal_audit(EvidenceRoot(path=tmp_path), CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": snapshot.snapshot_id}})
    shutil.rmtree(snapshot.path)
    later = faulty().write(tmp_path, at=READ_AT + timedelta(days=1))
    second = audit_folder(tmp_path, later, "second audit")
    assert run(SETTINGS, later, second) == 0
    assert of_orders(second, "TOP-14") == ("not_assessed", "history too short: 1 of 2 snapshots")
    assert json.loads((second.settings / "history.json").read_text())["first_audit"] is False


def test_an_audit_of_some_topics_is_judged_on_its_scope(spark: SparkSession, tmp_path: Path, only_subjects: Callable[..., None]) -> None:
    only_subjects("declared_topic", "declared_group", "group_sla", "group_partition")
    policy = tmp_path / "policy"
    policy.mkdir()
    tiers = "{a: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 1}}"
    declared = "declared_topics: [orders, gone, elsewhere]\ndeclared_groups: [reader, other]\n"
    (policy / "tiers.yaml").write_text(f"version: 1\ndefault_tier: a\ntiers: {tiers}\n{declared}")
    (policy / "slas.yaml").write_text("version: 1\ngroups: [{pattern: '*', name: all, max_lag_records: 5, max_lag_seconds: 60}]\n")
    cluster = Synthetic(topics_in_scope=["orders", "gone"], groups_in_scope=["r*"]).brokers({1: "a", 2: "b", 3: "c"}).topic("orders")
    # The commits of the group lie on topics that were not asked for, so the snapshot shows none.
    snapshot = cluster.offsets("orders", log_start=0, log_end=9).group("reader").write(tmp_path)
    audit = audit_folder(tmp_path, snapshot)
    assert run(SETTINGS, snapshot, audit, "--policy", str(policy)) == run(LAG, snapshot, audit, "--policy", str(policy)) == 0
    rows = [*table(audit.settings / "findings.parquet"), *table(audit.lag / "findings.parquet")]
    found = {(row["code"], row["resource"]): row["status"] for row in rows}
    assert [found["TOP-13", name] for name in ("orders", "gone", "elsewhere")] == ["pass", "fail", "not_applicable"]
    assert found["GRP-01", "other"] == "not_applicable"
    assert (found["CON-01", "reader"], found["CON-02", "reader"]) == ("not_applicable", "not_applicable")


@pytest.mark.usefixtures("only_topics")
def test_a_control_is_added_by_one_file_and_nothing_else(made, spark: SparkSession, tmp_path: Path) -> None:
    snapshot, audit = made
    own = tmp_path / "own"
    own.mkdir()
    (own / "orders_has_two_partitions.yaml").write_text(yaml.safe_dump(own_control("orders_has_two_partitions", "partition_count = 2")))
    assert run(SETTINGS, snapshot, audit, "--controls", str(own)) == 0
    found = {(row["code"], row["resource"]): row for row in table(audit.settings / "findings.parquet")}
    assert found["OWN-01", "orders"]["status"] == "pass"
    assert found["OWN-01", "single"]["status"] == "fail"
    summary = {row["code"]: row for row in table(audit.settings / "summary.parquet")}
    assert (summary["OWN-01"]["passed"], summary["OWN-01"]["failed"], summary["OWN-01"]["population"]) == (1, 1, 2)


@pytest.mark.usefixtures("only_topics", "large_clusters")
@pytest.mark.parametrize("small_rows", [50_000, 0], ids=["small", "large"])
def test_a_rule_that_raises_is_an_error_of_that_rule_alone(
    made, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_rows: int
) -> None:
    monkeypatch.setattr(verify, "SMALL_ROWS", small_rows)
    snapshot, audit = made
    own = tmp_path / "own"
    own.mkdir()
    (own / "index_is_valid.yaml").write_text(yaml.safe_dump(own_control("index_is_valid", "element_at(array(partition_count), 0) = 1")))
    assert run(SETTINGS, snapshot, audit, "--controls", str(own)) == 0
    findings = table(audit.settings / "findings.parquet")
    assert {row["status"] for row in findings if row["code"] == "OWN-01"} == {"error"}
    assert all("INVALID_INDEX_OF_ZERO" in row["reason"] for row in findings if row["code"] == "OWN-01")
    assert {row["status"] for row in findings if row["code"] != "OWN-01"} >= {"pass", "fail"}
    assert "error" not in {row["status"] for row in findings if row["code"] != "OWN-01"}
    assert next(row for row in table(audit.settings / "summary.parquet") if row["code"] == "OWN-01")["errored"] == 2


def own_control(name: str, pass_when: str) -> dict:
    return {
        "id": name,
        "code": "OWN-01",
        "title": "t",
        "subject": "topic",
        "severity": "low",
        "evidence": "observed",
        "needs": ["topics"],
        "pass_when": pass_when,
        "observed": "concat(partition_count, ' partitions')",
        "expected": "2",
        "rationale": "r",
        "failure_scenario": "f",
        "remediation": {"text": "t"},
        "remediation_impact": "i",
        "examples": [{"name": status, "row": {}, "status": status} for status in ("pass", "fail", "not_assessed")],
    }


def test_an_empty_cluster_has_a_summary_row_for_every_control_and_no_findings(spark: SparkSession, tmp_path: Path) -> None:
    snapshot = Synthetic().brokers({1: "a"}).write(tmp_path)
    audit = audit_folder(tmp_path, snapshot)
    assert run(LAG, snapshot, audit) == 0
    assert table(audit.lag / "findings.parquet") == []
    assert table(audit.lag / "group_partitions.parquet") == []
    summary = table(audit.lag / "summary.parquet")
    assert [row["control_id"] for row in summary] == [control.id for control in load_catalogue().of_part(LAG)]
    counts = ("population", "findings", "distinct_resources", "passed", "failed", "errored", "not_assessed", "not_applicable")
    assert {row[name] for row in summary for name in counts} == {0}


def refuse(made, capsys, *more: str, part: str = SETTINGS) -> tuple[int, str]:
    """Exit code and the one line on stderr; what an earlier run left must still be there."""
    snapshot, audit = made
    kept = audit.settings / "kept.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("earlier evidence")
    code = run(part, snapshot, audit, *more)
    assert kept.read_text() == "earlier evidence"
    assert [path.name for path in audit.path.iterdir() if path.name.startswith(".")] == []
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kafka-audit: ")]
    assert len(lines) == 1
    return code, lines[0]


def test_an_edited_snapshot_is_refused_with_exit_code_5(made, capsys) -> None:
    path = made[0].dataset("topics")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    code, line = refuse(made, capsys)
    assert code == 5
    assert "topics.parquet: its sha256 differs" in line


def test_a_snapshot_with_a_missing_file_is_refused_with_exit_code_5(made, capsys) -> None:
    made[0].dataset("groups").unlink()
    code, line = refuse(made, capsys)
    assert code == 5
    assert "groups.parquet: is missing" in line


def test_an_invalid_control_is_refused_with_exit_code_2_before_spark_starts(made, capsys, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "bad.yaml").write_text(yaml.safe_dump(own_control("bad", "reflect('java.lang.System', 'exit', 1)")))
    code, line = refuse(made, capsys, "--controls", str(own))
    assert code == 2
    assert "bad.yaml: pass_when: calls reflect(), which is not allowed" in line


def test_an_invalid_policy_is_refused_with_exit_code_2(made, capsys, tmp_path: Path) -> None:
    code, line = refuse(made, capsys, "--policy", str(tmp_path / "nowhere"))
    assert code == 2
    assert f"there is no folder {tmp_path / 'nowhere'}: name a policy folder" in line


def test_the_audit_of_another_snapshot_is_refused_with_exit_code_2(made, capsys) -> None:
    run_file = made[1].run_file
    run_file.write_text(json.dumps({**json.loads(run_file.read_text()), "snapshot_id": "20200101T000000Z-0000000000000000"}))
    code, line = refuse(made, capsys)
    assert code == 2
    assert "20200101T000000Z-0000000000000000" in line


@pytest.mark.usefixtures("only_topics")
def test_a_rule_that_spark_refuses_is_named_with_exit_code_2(made, capsys, spark: SparkSession, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mistyped.yaml").write_text(yaml.safe_dump(own_control("mistyped", "partition_count + config['retention.ms'] = 1")))
    code, line = refuse(made, capsys, "--controls", str(own))
    assert code == 2
    assert "mistyped.yaml" in line


@pytest.mark.usefixtures("only_topics")
def test_findings_that_do_not_match_the_snapshots_own_counts_are_not_kept(spark: SparkSession, capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("spark_jobs.engine.evidence.without_contradictions", lambda snapshot, _: snapshot)  # rows of one topic are doubled
    snapshot = Synthetic().brokers({1: "a"}).topic("t", replicas=[1]).topic("t", replicas=[1]).write(tmp_path)
    code, line = refuse((snapshot, audit_folder(tmp_path, snapshot)), capsys)
    assert code == 1
    assert "but the snapshot has 2" in line


def test_a_part_that_fails_does_not_stop_the_other_and_no_error_is_lost(
    made, spark: SparkSession, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot, audit = made
    problems = {SETTINGS: CollectionError("the disk is full"), LAG: IntegrityError("a copy was edited")}

    def judged(part: Part, target: Path) -> None:
        with replaced_folder(target) as folder:
            (folder / "new").write_text("")
            if part.name in problems:
                raise problems[part.name]

    for part in (audit.settings, audit.lag):
        part.mkdir()
        (part / "earlier").write_text("")
    monkeypatch.setattr(verify, "judge_part", judged)
    both = ["--snapshot", str(snapshot.path), "--audit", str(audit.path)]
    assert verify.main(both) == IntegrityError.exit_code
    assert "kafka-audit: settings: the disk is full; lag: a copy was edited" in capsys.readouterr().err
    assert [[*files(part)] for part in (audit.settings, audit.lag)] == [["earlier"], ["earlier"]]
    del problems[SETTINGS]
    assert verify.main(both) == IntegrityError.exit_code
    assert "kafka-audit: lag: a copy was edited" in capsys.readouterr().err
    assert [[*files(part)] for part in (audit.settings, audit.lag)] == [["new"], ["earlier"]]


def test_what_a_part_read_and_retention_may_delete_is_kept_in_the_audit_and_a_step_that_runs_again_gives_the_same_bytes(
    spark: SparkSession, tmp_path: Path
) -> None:
    earlier = [faulty().write(tmp_path, READ_AT - timedelta(hours=hours), OFFSETS) for hours in (1, 2)]
    whole = faulty().write(tmp_path, READ_AT - timedelta(hours=3))
    snapshot = faulty().write(tmp_path)
    audit = audit_folder(tmp_path, snapshot)
    assert run(LAG, snapshot, audit) == 0
    first = files(audit.path)
    assert run(LAG, snapshot, audit) == 0
    assert files(audit.path) == first
    for one in earlier:
        assert Sealed.open(audit.inputs / "offsets" / CLUSTER / one.snapshot_id).problems() == []
        shutil.rmtree(one.path)
    assert not (audit.inputs / "evidence").exists()
    used = {str(one): one.copied for one in used_by(audit, EvidenceRoot(path=tmp_path), CLUSTER)}
    assert used == {f"snapshot {whole.snapshot_id}": False, **{f"offsets snapshot {one.snapshot_id}": True for one in earlier}}


def test_the_job_leaves_an_audit_alone_that_a_later_one_was_chained_to(made: tuple[Snapshot, Audit], capsys, spark: SparkSession) -> None:
    snapshot, audit = made
    root = EvidenceRoot(path=audit.path.parents[2])
    seal_audit(root, CLUSTER, audit.path.name, {})
    later = root.audit(CLUSTER, new_id(READ_AT, "later"))
    write_json(later.run_file, {})
    seal_audit(root, CLUSTER, later.path.name, {})
    before = files(audit.path)
    assert run(SETTINGS, snapshot, audit) == 5
    assert "a later audit is chained to it" in capsys.readouterr().err
    assert files(audit.path) == before
