"""The evidence gate on a healthy snapshot, and on snapshots with one damage each."""

import functools
import json
from collections.abc import Callable
from datetime import timedelta

import pyarrow as pa
import pytest
from gate_samples import FINISHED, HOSTILE, NOW, READ, SNAPSHOT_ID, STARTED, healthy_rows, manifest_fields, write_snapshot

from expectations.gate import judge_evidence
from expectations.suites import SHIPPED, load_suite
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Verdict

pytestmark = pytest.mark.usefixtures("without_data_docs")


def error(dataset, **item):
    return {"dataset": dataset, "api": "X", "error": "TOPIC_AUTHORIZATION_FAILED", "message": "-", **item}


def changed(change):
    def rows():
        found = healthy_rows()
        change(found)
        return {"rows": found}

    rows.change = change
    return rows


def other_type(dataset, column):
    schema = DATASETS[dataset].schema
    index = schema.get_field_index(column)
    return pa.Table.from_pylist([], schema=schema.set(index, pa.field(column, pa.float32())))


def without(dataset, column):
    schema = DATASETS[dataset].schema
    return pa.Table.from_pylist([], schema=schema.remove(schema.get_field_index(column)))


# rule -> (what makes it fail, part of the reason)
MUTATIONS = {
    "EVD-01": (lambda: {"rows": healthy_rows(), "tables": {"quorum": None}}, "quorum (presence=missing)"),
    "EVD-02": (lambda: {"rows": healthy_rows(), "tables": {"members": without("members", "client_id")}}, "column client_id is missing"),
    "EVD-03": (changed(lambda r: r["members"].append({"group_id": HOSTILE})), "members (null_keys=1)"),
    "EVD-04": (changed(lambda r: r["topics"].append(r["topics"][0])), "topics (duplicate_keys=1)"),
    "EVD-05": (changed(lambda r: r["errors"].append(error("groups"))), "groups (whole_errors=1"),
    "EVD-06": (changed(lambda r: r["errors"].append(error("quorum"))), "quorum (whole_errors=1"),
    "EVD-07": (changed(lambda r: r["errors"].append(error("topic_configs", topic="t"))), "topic_configs (item_errors=1)"),
    "EVD-08": (changed(lambda r: r["offsets"][0].update(read_at=STARTED - timedelta(hours=1))), "offsets (reads_outside_snapshot=1)"),
    "EVD-09": (changed(lambda r: r["brokers"].clear()), "brokers_alive=0"),
    "EVD-10": (changed(lambda r: [row.update(answered=False) for row in r["brokers"]]), "brokers_answered=0"),
    "EVD-11": (changed(lambda r: r["brokers"][1].update(answered=False)), "brokers_silent=1"),
    "EVD-12": (lambda: {"rows": healthy_rows(), "now": FINISHED + timedelta(seconds=3601)}, "age_seconds=3601"),
    "EVD-13": (lambda: {"rows": healthy_rows(), "fields": {**manifest_fields(), "started_at": NOW.isoformat()}}, "duration_seconds=-60"),
    "EVD-14": (
        lambda: {"rows": healthy_rows(), "fields": {**manifest_fields(), "cluster_id": "c2"}},
        "the manifest says c2, the cluster said c1",
    ),
    "EVD-15": (changed(lambda r: r["partitions"].append({"topic": "lost", "partition": 0, "read_at": READ})), "partitions_without_topic=1"),
    "EVD-16": (changed(lambda r: r["partitions"].pop()), "topics_with_partitions_missing=1"),
    "EVD-17": (changed(lambda r: r["committed_offsets"][0].update(group_id="lost")), "commits_without_group=1"),
    "EVD-18": (changed(lambda r: r["members"][0].update(group_id="lost")), "members_without_group=1"),
    "EVD-19": (changed(lambda r: r["errors"].append(error("topic_config"))), "errors_of_unknown_dataset=1"),
    "EVD-20": (changed(lambda r: r["errors"].append({**error("topics", topic="t"), "error": "TOPIC_HIDDEN"})), "hidden_topics=1"),
    "EVD-21": (changed(lambda r: r["offsets"].pop()), "partitions_without_offsets=1"),
    "EVD-22": (changed(lambda r: r["topic_configs"].clear()), "topics_without_configs=1"),
    "EVD-23": (changed(lambda r: r["broker_configs"].pop()), "brokers_without_configs=1"),
}


def judge(tmp_path, *, now=NOW, **case):
    snapshot = write_snapshot(tmp_path, case.pop("rows"), **case)
    return judge_evidence(snapshot, tmp_path / "gate", now=now)


def test_a_core_dataset_that_the_managed_service_hides_voids_nothing(tmp_path):
    rows = healthy_rows()
    rows["broker_configs"].clear()
    rows["errors"].append(error("broker_configs"))
    snapshot = write_snapshot(tmp_path, rows)
    assert judge_evidence(snapshot, tmp_path / "gate", now=NOW).exit_code == 4
    assert judge_evidence(snapshot, tmp_path / "gate", now=NOW, hidden={"broker_configs"}).exit_code == 0


def statuses(result):
    return {row.rule_id: row.status for row in result.results}


@pytest.fixture(scope="module")
def healthy(tmp_path_factory):
    """A folder with the gate of healthy evidence, and its result."""
    folder = tmp_path_factory.mktemp("healthy")
    return folder, judge(folder, rows=healthy_rows())


def test_healthy_evidence_passes_and_its_files_say_so(healthy):
    tmp_path, result = healthy
    assert (result.verdict, result.exit_code, result.reasons) == (Verdict.PASS, 0, ())
    assert set(statuses(result).values()) == {Verdict.PASS}
    assert result.coverage.model_dump() == {"assessed": len(DATASETS), "applicable": len(DATASETS), "ratio": 1.0}
    stored = json.loads((tmp_path / "gate" / "evidence.json").read_text())
    assert stored == result.model_dump(mode="json")
    assert stored["suite"] == {"name": "evidence_fit", "sha256": load_suite(SHIPPED / "evidence_fit.json").sha256, "expectations": 23}
    assert stored["snapshot"]["snapshot_id"] == SNAPSHOT_ID
    raw = json.loads((tmp_path / "gate" / "raw" / "evidence.json").read_text())
    assert sum(len(table["results"]) for table in raw["tables"].values()) == 23


def test_every_rule_has_a_mutation():
    assert list(MUTATIONS) == [rule.meta.rule_id for rule in load_suite(SHIPPED / "evidence_fit.json").expectations]


@pytest.fixture(scope="module")
def judged(tmp_path_factory) -> Callable:
    """The result for a rule's mutation, judged once."""
    return functools.cache(lambda rule_id: judge(tmp_path_factory.mktemp(rule_id), **MUTATIONS[rule_id][0]()))


@pytest.mark.parametrize("rule_id", MUTATIONS)
def test_a_mutation_fails_its_rule_and_a_critical_rule_voids_the_audit(judged, rule_id):
    result = judged(rule_id)
    row = next(row for row in result.results if row.rule_id == rule_id)
    assert row.status is Verdict.FAIL
    assert MUTATIONS[rule_id][1] in row.detail
    assert row.reason in result.reasons
    if row.severity == "critical":
        assert (result.verdict, result.exit_code) == (Verdict.FAIL, 4)


@pytest.mark.parametrize("rule_id", ["EVD-06", "EVD-07", "EVD-11", "EVD-20", "EVD-21", "EVD-22", "EVD-23"])
def test_a_gap_in_the_evidence_is_reported_and_does_not_void_the_audit(judged, rule_id):
    result = judged(rule_id)
    assert (result.verdict, result.exit_code) == (Verdict.PASS, 0)
    assert any(reason.startswith(f"{rule_id} FAIL") and "(does not block)" in reason for reason in result.reasons)


def test_a_cluster_without_topics_and_groups_is_not_void(tmp_path):
    empty = ("topics", "partitions", "topic_configs", "groups", "members", "committed_offsets", "offsets")
    result = judge(tmp_path, rows={**healthy_rows(), **{name: [] for name in empty}})
    assert (result.verdict, result.exit_code, result.reasons) == (Verdict.PASS, 0, ())


def test_a_core_dataset_that_every_broker_refused_counts_as_failed_whole(tmp_path):
    rows = {**healthy_rows(), "groups": [], "members": [], "committed_offsets": []}
    rows["errors"] = [error("groups", broker_id=1), error("groups", broker_id=2)]
    result = judge(tmp_path, rows=rows)
    assert statuses(result)["EVD-05"] is Verdict.FAIL
    rows["errors"].pop()
    result = judge(tmp_path / "again", rows=rows)
    assert statuses(result)["EVD-05"] is Verdict.PASS


def test_a_cluster_without_an_authorizer_has_answered_about_its_acls(tmp_path):
    rows = healthy_rows()
    rows["errors"].append({**error("acls"), "error": "SECURITY_DISABLED"})
    assert judge(tmp_path, rows=rows).reasons == ()
    rows["errors"].append({**error("acls"), "error": "CLUSTER_AUTHORIZATION_FAILED"})
    assert statuses(judge(tmp_path / "again", rows=rows))["EVD-06"] is Verdict.FAIL


@pytest.mark.parametrize(
    "item",
    [{"topic": HOSTILE, "partition": 1}, {"topic": HOSTILE}, {"broker_id": 1}],
    ids=["its partition", "its topic", "its leader"],
)
def test_a_gap_with_an_error_row_is_explained(tmp_path, item):
    rows = healthy_rows()
    rows["offsets"].pop()
    rows["errors"].append(error("offsets", **item))
    assert statuses(judge(tmp_path, rows=rows))["EVD-21"] is Verdict.PASS


@pytest.mark.parametrize("value", [None, "soon", "2026-11-20T23:15:04"], ids=["absent", "no time", "no time zone"])
def test_an_end_time_that_is_not_known_tests_nothing_and_voids_the_audit(tmp_path, value):
    result = judge(tmp_path, rows=healthy_rows(), fields={**manifest_fields(), "finished_at": value})
    assert statuses(result)["EVD-12"] is Verdict.VACUOUS
    assert result.exit_code == 4


def test_an_end_time_written_with_z_is_understood(tmp_path):
    fields = {**manifest_fields(), "finished_at": "2026-11-20T23:15:04Z"}
    assert judge(tmp_path, rows=healthy_rows(), fields=fields).exit_code == 0


def test_evidence_from_the_future_is_void(tmp_path):
    assert statuses(judge(tmp_path, rows=healthy_rows(), now=FINISHED - timedelta(seconds=6)))["EVD-12"] is Verdict.FAIL


def test_a_column_of_another_type_is_named_and_what_reads_it_is_not_counted_as_good(tmp_path):
    result = judge(tmp_path, rows=healthy_rows(), tables={"errors": other_type("errors", "dataset")})
    found = statuses(result)
    assert found["EVD-02"] is Verdict.FAIL
    assert found["EVD-05"] is Verdict.VACUOUS
    assert result.exit_code == 4


def test_one_more_column_than_the_contract_is_allowed(tmp_path):
    table = pa.Table.from_pylist([], schema=DATASETS["quorum"].schema.append(pa.field("new", pa.string())))
    assert judge(tmp_path, rows=healthy_rows(), tables={"quorum": table}).exit_code == 0


def test_an_edited_file_is_an_integrity_error_and_leaves_no_verdict(tmp_path):
    snapshot = write_snapshot(tmp_path, healthy_rows())
    with snapshot.dataset("topics").open("ab") as stream:
        stream.write(b"x")
    with pytest.raises(IntegrityError, match=r"topics\.parquet: its sha256 differs"):
        judge_evidence(snapshot, tmp_path / "gate", now=NOW)
    assert not (tmp_path / "gate").exists()


def test_a_sealed_file_that_is_no_parquet_is_an_integrity_error(tmp_path, monkeypatch):
    monkeypatch.setattr("pyarrow.parquet.write_table", lambda table, path, **_: path.write_bytes(b"PAR1 nothing"))
    snapshot = write_snapshot(tmp_path, healthy_rows())
    with pytest.raises(IntegrityError, match="is not readable Parquet"):
        judge_evidence(snapshot, tmp_path / "gate", now=NOW)


def test_no_hostile_name_reaches_the_gate_files(healthy):
    for path in (healthy[0] / "gate").rglob("*.json"):
        assert "alert(1)" not in path.read_text()


@pytest.mark.parametrize("dataset", ["last_batches", "sla_offsets", "first_unread"])
def test_a_topic_that_may_not_be_read_is_an_item_without_evidence_and_leaves_the_audit_standing(tmp_path, dataset):
    rows = healthy_rows()
    rows["errors"] += [error(dataset, broker_id=number, topic="t", partition=0) for number in (1, 2)]
    result = judge(tmp_path, rows=rows)
    assert statuses(result)["EVD-07"] is Verdict.FAIL
    assert result.exit_code == 0
