"""The engine's verdicts: three-valued logic, missing evidence, rules that raise, and the columns of a finding."""

import json
import os
from datetime import datetime, timezone
from pathlib import Path
from threading import Barrier
from time import sleep

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from snapshot_builder import Synthetic

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.catalogue.rule import rule_of
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.submit import CLASS_DATA
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.session import in_threads
from spark_jobs.judge.controls import BASELINE_TAKEN, UNDECLARED, check_rules, judge
from spark_jobs.judge.policy_columns import PolicyColumns

pytestmark = pytest.mark.spark

EXAMPLES = [{"name": status, "row": {}, "status": status} for status in ("pass", "fail", "not_assessed")]


def control(name: str = "isr_is_whole", **fields: object) -> Control:
    return Control.model_validate(
        {
            "id": name,
            "code": "TST-01",
            "title": "T",
            "subject": "partition",
            "severity": "high",
            "evidence": "observed",
            "needs": ["partitions"],
            "pass_when": "isr_count >= 2",
            "observed": "concat(isr_count, ' in sync')",
            "expected": "at least 2",
            "rationale": "r",
            "failure_scenario": "f",
            "remediation": {"text": "t"},
            "remediation_impact": "none",
            "examples": EXAMPLES,
            **fields,
        }
    )


@pytest.fixture(scope="module")
def partition_rows(spark: SparkSession):
    def build(*rows: dict) -> DataFrame:
        full = [
            {**dict.fromkeys(SUBJECTS["partition"].columns), "resource": f"t-{index}", "errors": {}, **row}
            for index, row in enumerate(rows)
        ]
        return spark.createDataFrame(full, SUBJECTS["partition"].ddl)

    return build


def verdicts(rows: DataFrame, one: Control, **options: object) -> list[tuple[str, str | None]]:
    found = judge(rows, [one], **options).orderBy("resource").collect()
    return [(finding["status"], finding["reason"]) for finding in found]


def test_true_false_and_null_are_pass_fail_and_not_assessed(partition_rows) -> None:
    rows = partition_rows({"isr_count": 2}, {"isr_count": 1}, {"isr_count": None})
    assert verdicts(rows, control()) == [("pass", None), ("fail", None), ("not_assessed", "no value for: isr_count")]


@pytest.mark.parametrize(
    ("sql", "status"),
    [
        ("isr_count >= 2 and confirmed", "not_assessed"),  # TRUE and NULL
        ("isr_count >= 9 and confirmed", "fail"),  # FALSE and NULL
        ("isr_count >= 2 or confirmed", "pass"),  # TRUE or NULL
        ("isr_count >= 9 or confirmed", "not_assessed"),  # FALSE or NULL
        ("not (confirmed and isr_count >= 2)", "not_assessed"),
        ("isr_count in (1, null)", "not_assessed"),
        ("size(offline_replicas) = 0", "not_assessed"),  # Spark's own default for size(NULL) is -1
        ("size(offline_replicas) < 0", "not_assessed"),
        ("cardinality(offline_replicas) < 0", "not_assessed"),
        ("array_contains(isr, 9)", "not_assessed"),  # [1, NULL] may hold it
        ("exists(isr, b -> b = 1)", "pass"),
        ("forall(isr, b -> b = 1)", "not_assessed"),
        ("isr_count / 0 > 1", "not_assessed"),  # ANSI mode would raise
        ("cast(topic as int) = 1", "not_assessed"),
        ("isr[7] = 1", "not_assessed"),
        ("policy.tier = 'no_loss'", "not_assessed"),
    ],
)
def test_an_unknown_operand_is_never_taken_for_a_value(sql: str, status: str, partition_rows) -> None:
    rows = partition_rows({"isr_count": 3, "isr": [1, None], "topic": "t"})
    assert verdicts(rows, control(pass_when=sql))[0][0] == status


def test_missing_evidence_stops_a_pass_but_not_a_failure(partition_rows) -> None:
    errors = {"partitions": "TIMEOUT: no answer", "quorum": "does not matter here"}
    rows = partition_rows(
        {"isr_count": 2, "errors": errors}, {"isr_count": 1, "errors": errors}, {"isr_count": 2, "errors": {"quorum": "x"}}
    )
    assert verdicts(rows, control()) == [("not_assessed", "TIMEOUT: no answer"), ("fail", None), ("pass", None)]


def test_applies_when_decides_first_and_unknown_applicability_is_not_assessed(partition_rows) -> None:
    rows = partition_rows({"isr_count": 1, "is_internal": True}, {"isr_count": 1}, {"isr_count": 1, "is_internal": False})
    found = verdicts(rows, control(applies_when="not is_internal"))
    assert found == [("not_applicable", None), ("not_assessed", "no value for: is_internal"), ("fail", None)]


def test_only_in_the_first_audit_a_row_without_a_past_is_not_applicable(partition_rows) -> None:
    baseline = [*EXAMPLES, {"name": "first", "row": {}, "status": "not_applicable", "first_audit": True}]
    one = control(pass_when="log_end >= log_end_before", baseline_when="log_end_before is null", examples=baseline)
    errors = {"partitions": "TIMEOUT: no answer"}
    rows = partition_rows({"log_end": 5}, {"log_end": 5, "log_end_before": 9}, {"log_end_before": 9}, {"log_end": 5, "errors": errors})
    assert verdicts(rows, one, first_audit=F.lit(True)) == [
        ("not_applicable", BASELINE_TAKEN),
        ("fail", None),
        ("not_assessed", "no value for: log_end"),
        ("not_assessed", "TIMEOUT: no answer"),
    ]
    assert verdicts(rows, one)[0] == ("not_assessed", "no value for: log_end_before")
    assert verdicts(rows, one, first_audit=F.lit(False))[0] == ("not_assessed", "no value for: log_end_before")


def test_what_nobody_declared_is_not_applicable_but_missing_evidence_and_failures_stay(partition_rows) -> None:
    nobody = [*EXAMPLES, {"name": "nobody", "row": {}, "status": "not_applicable", "reason": "PRD-05 asks"}]
    rule = "case when isr_count < 2 then false else policy.unique_keys end"
    one = control(pass_when=rule, undeclared_when="policy.unique_keys is null and isr_count is not null", examples=nobody)
    errors = {"partitions": "TIMEOUT: no answer"}
    rows = partition_rows({"isr_count": 3}, {"isr_count": 1}, {"isr_count": 3, "errors": errors}, {})
    assert verdicts(rows, one) == [
        ("not_applicable", UNDECLARED),
        ("fail", None),
        ("not_assessed", "TIMEOUT: no answer"),
        ("not_assessed", "no value for: isr_count, policy.unique_keys"),
    ]


def test_what_does_not_apply_anyway_has_no_reason_in_the_first_audit(partition_rows) -> None:
    baseline = [*EXAMPLES, {"name": "first", "row": {}, "status": "not_applicable", "first_audit": True}]
    one = control(applies_when="not is_internal", baseline_when="isr_count is null", examples=baseline)
    assert verdicts(partition_rows({"is_internal": True}, {}), one, first_audit=F.lit(True)) == [
        ("not_applicable", None),
        ("not_assessed", "no value for: is_internal, isr_count"),
    ]


def test_the_reason_is_the_missing_dataset_then_the_controls_own_then_the_unknown_columns(partition_rows) -> None:
    one = control(needs=["topic_configs", "partitions"], not_assessed_reason="case when confirmed then 'because' end")
    rows = partition_rows(
        {"confirmed": True, "errors": {"partitions": "second", "topic_configs": "first"}}, {"confirmed": True}, {"confirmed": False}
    )
    assert [reason for _, reason in verdicts(rows, one)] == ["first", "because", "no value for: isr_count"]


def test_a_rule_that_gives_no_answer_although_every_value_is_known_says_so(partition_rows) -> None:
    assert verdicts(partition_rows({"topic": "x"}), control(pass_when="try_cast(topic as int) > 1")) == [
        ("not_assessed", "the rule gives no answer for these values")
    ]


def test_a_finding_names_its_resource_and_keeps_the_evidence_it_read_with_nulls_visible(partition_rows) -> None:
    hostile = "o'; drop--\n<b>\\"
    rows = partition_rows({"resource": f"{hostile}-3", "topic": hostile, "partition": 3, "isr_count": 1, "policy": {"tier": "gold"}})
    one = control(title="It's \\ a title", observed="concat(topic, ': ', confirmed)", expected="sql: concat('isr of ', policy.tier)")
    finding = judge(rows, [one]).collect()[0].asDict()
    assert finding["resource"] == f"{hostile}-3"
    assert (finding["topic"], finding["partition"], finding["broker_id"], finding["group_id"]) == (hostile, 3, None, None)
    assert (finding["title"], finding["tier"], finding["expected"], finding["observed"]) == (
        "It's \\ a title",
        "gold",
        "isr of gold",
        "not known",
    )
    assert json.loads(finding["evidence"]) == {"isr_count": 1, "topic": hostile, "confirmed": None, "policy.tier": "gold"}


def test_a_very_long_value_is_shortened_in_texts_that_people_read(partition_rows) -> None:
    finding = judge(partition_rows({"topic": "x" * 100_000, "isr_count": 1}), [control(observed="topic")]).collect()[0]
    assert finding["observed"].endswith("... (shortened)")
    assert len(finding["observed"]) < 9000


def test_controls_of_one_subject_are_judged_in_one_pass_over_its_rows(partition_rows) -> None:
    found = judge(partition_rows({"isr_count": 1}, {"isr_count": 2}), [control("a"), control("b", pass_when="isr_count = 1")]).collect()
    assert sorted((finding["control_id"], finding["resource"], finding["status"]) for finding in found) == [
        ("a", "t-0", "fail"),
        ("a", "t-1", "pass"),
        ("b", "t-0", "pass"),
        ("b", "t-1", "fail"),
    ]


def test_a_finding_carries_the_hash_of_its_rule_which_changes_with_the_rules_sql(partition_rows) -> None:
    def hashes(sql: str) -> dict[str, set[str]]:
        controls = [control(pass_when=sql), control("other", code="TST-02", pass_when="isr_count >= 3")]
        found = judge(partition_rows({"isr_count": 3}, {"isr_count": None}), controls, {"other": "it raised"}).collect()
        return {one.id: {row["rule_sha256"] for row in found if row["control_id"] == one.id} for one in controls}

    before, after = hashes("isr_count >= 2"), hashes("isr_count >= 1")
    assert [len(one) for one in (*before.values(), *after.values())] == [1, 1, 1, 1]
    assert before["isr_is_whole"] != before["other"] == after["other"]
    assert before["isr_is_whole"] != after["isr_is_whole"]
    assert before["isr_is_whole"] == {rule_of(control(pass_when="isr_count >= 2")).sha256}


def test_a_rule_that_raised_gives_errors_and_leaves_other_rules_alone(partition_rows) -> None:
    found = judge(partition_rows({"isr_count": 2}), [control("good"), control("bad")], {"bad": "it's broken"}).collect()
    assert {finding["control_id"]: (finding["status"], finding["reason"]) for finding in found} == {
        "good": ("pass", None),
        "bad": ("error", "the rule raised: it's broken"),
    }


def test_rules_that_spark_does_not_accept_are_all_named(partition_rows, policy_columns: PolicyColumns) -> None:
    wrong = [control("mistyped", pass_when="isr_count + isr > 1"), control("miscalled", pass_when="size(isr, isr) = 1"), control("fine")]
    with pytest.raises(ConfigurationError) as problem:
        check_rules({"partition": partition_rows({})}, wrong, policy_columns)
    assert "mistyped.yaml" in str(problem.value)
    assert "miscalled.yaml" in str(problem.value)
    assert "fine.yaml" not in str(problem.value)


TIERS = """
version: 1
default_tier: standard
tiers:
  no_loss: {replication_factor: 3, min_insync_replicas: 2, retention_ms: -1, parameters: {TST-01: {least: 3}}}
  standard: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 86400000}
  best_effort: {replication_factor: 2, min_insync_replicas: 1, retention_ms: 1, severities: {TST-01: low}, parameters: {TST-01: {least: 1}}}
"""
WAIVER = """
  - {id: %s, control: %s, resource: "%s", owner: Ada, approver: Bob, ticket: T-1, justification: until the new disks,
     approved_on: 2026-11-01, expires: "%s"}
"""


@pytest.fixture(scope="module")
def policy_columns(tmp_path_factory: pytest.TempPathFactory) -> PolicyColumns:
    folder: Path = tmp_path_factory.mktemp("policy")
    (folder / "tiers.yaml").write_text(TIERS)
    (folder / "slas.yaml").write_text("version: 1\n")
    later, past = "2027-01-31T00:00:00Z", "2026-11-20T00:00:00Z"
    waivers = [
        ("EXPIRED", "TST-01", "*", past),
        ("OTHER", "TST-02", "*", later),
        ("FIRST", "TST-01", "a[*]b-?", later),
        ("NEXT", "TST-01", "a*", later),
    ]
    (folder / "waivers.yaml").write_text("version: 1\nwaivers:" + "".join(WAIVER % one for one in waivers))
    return PolicyColumns(policy=load_policy(folder), at=datetime(2026, 11, 20, 12, tzinfo=timezone.utc))


def of_tier(tier: str | None, isr_count: int | None, resource: str, replication_factor: int = 3) -> dict:
    policy = {"tier": tier, "replication_factor": replication_factor} if tier else None
    return {"resource": resource, "isr_count": isr_count, "policy": policy}


def test_a_tier_sets_parameters_and_severity_and_what_it_loosened_is_said(
    spark: SparkSession, partition_rows, policy_columns: PolicyColumns
) -> None:
    rows = [of_tier("no_loss", 2, "x-0"), of_tier("standard", 2, "x-1"), of_tier("best_effort", 1, "x-2", 2), of_tier(None, 1, "x-3")]
    one = control(
        pass_when="isr_count >= parameters.least and isr_count < 9 + policy.replication_factor",
        parameters={"least": {"default": 2, "stricter": "higher", "meaning": "replicas"}},
        needs=["partitions"],
    )
    found = judge(partition_rows(*rows), [one], None, policy_columns).orderBy("resource").collect()
    assert [(row["tier"], row["status"], row["severity"], row["catalogue_severity"], row["loosened"]) for row in found] == [
        ("no_loss", "fail", "high", "high", None),
        ("standard", "pass", "high", "high", None),
        ("best_effort", "pass", "low", "high", "least 1 (strict: 2), replication_factor 2 (strict: 3)"),
        ("standard", "fail", "high", "high", None),
    ]
    assert json.loads(found[2]["evidence"])["parameters.least"] == 1


def test_the_first_waiver_in_force_covers_a_failure_and_nothing_else(
    spark: SparkSession, partition_rows, policy_columns: PolicyColumns
) -> None:
    failing = ["a*b-0", "axb-0", "a*b-10", "b-0", "A*b-0"]
    rows = [of_tier("standard", 1, name) for name in failing] + [of_tier("standard", 2, "a-pass"), of_tier("standard", None, "a-unknown")]
    found = judge(partition_rows(*rows), [control()], None, policy_columns).collect()
    assert {row["resource"]: row["waiver"] for row in found} == {
        "a*b-0": "FIRST",
        "axb-0": "NEXT",
        "a*b-10": "NEXT",
        "b-0": None,
        "A*b-0": None,
        "a-pass": None,
        "a-unknown": None,
    }
    assert {row["status"] for row in found if row["waiver"]} == {"fail"}


def test_a_session_starts_from_the_archive_of_classes_that_the_installation_made(spark: SparkSession) -> None:
    assert CLASS_DATA.is_file(), "make install writes it"
    jvm = spark.sparkContext._gateway.proc.pid  # spark-submit, which has become the JVM
    assert os.fspath(CLASS_DATA) in {mapped.path for mapped in psutil.Process(jvm).memory_maps()}, "a JVM refuses one that does not fit"


def test_calls_in_threads_run_at_the_same_time_with_the_sessions_settings(spark: SparkSession) -> None:
    both = Barrier(2, timeout=600)

    def active() -> SparkSession | None:
        both.wait()
        return SparkSession.getActiveSession()

    assert [one is not None for one in in_threads(spark, [active, active])] == [True, True]


def test_two_threads_share_what_one_of_them_made(spark: SparkSession, tmp_path: Path) -> None:
    evidence = Evidence(spark=spark, snapshot=Synthetic().brokers({1: "a"}).write(tmp_path))
    both, made = Barrier(2, timeout=600), []

    def make() -> int:
        made.append(1)
        sleep(0.1)
        return len(made)

    def use() -> int:
        both.wait()
        return evidence.memo("a value", make)

    assert in_threads(spark, [use, use]) == [1, 1]
