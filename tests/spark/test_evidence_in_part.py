"""What was read counts, although something else of the same thing could not be read; and what was read in part is not taken as whole."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import READ_AT, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from kafka_audit.policy.managed_service import ManagedService
from kafka_audit.store.history import read_history
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.judge.population import populations
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

STORAGE_ERROR = "KAFKA_STORAGE_ERROR"


@pytest.fixture(scope="module")
def read_in_part() -> Synthetic:
    """Of topic t columns of offsets could not be read, of topic half the size of one partition."""
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("t").offsets("t", log_start=60, log_end=100, last_stable=100)
    cluster.group("g", assigned=[("t", 0)]).commit("g", "t", 40)
    for column in ("max_timestamp_ms", "headroom_offset", "last_stable"):
        cluster.error(f"offsets.{column}", STORAGE_ERROR, topic="t", partition=0, broker_id=1)
    cluster.topic("half", replicas=[1], config={"retention.bytes": "1000"})
    cluster.add("partitions", topic="half", partition=1, leader=2, leader_epoch=0, replicas=[2], isr=[2], offline_replicas=[])
    return cluster.error("replica_sizes", "CLUSTER_AUTHORIZATION_FAILED", broker_id=2)


@pytest.fixture(scope="module")
def topics_read_in_part(rows_of, read_in_part: Synthetic):
    return rows_of(read_in_part, "topic")


def test_a_column_of_offsets_that_could_not_be_read_takes_nothing_from_its_row(rows_of, read_in_part: Synthetic, topics_read_in_part):
    group, partition = (rows_of(read_in_part, subject) for subject in ("group_partition", "partition"))
    topic = topics_read_in_part

    assert (group["g:t-0"]["lost"], group["g:t-0"]["lag"]) == (20, 40)
    for row in (group["g:t-0"], topic["t"], partition["t-0"]):
        assert "offsets" not in row["errors"]
    assert STORAGE_ERROR in group["g:t-0"]["errors"]["offsets.headroom_offset"]
    assert STORAGE_ERROR in partition["t-0"]["errors"]["offsets.last_stable"]
    assert topic["t"]["errors"]["offsets.max_timestamp_ms"].startswith("on 1 of its partitions, first 0: KAFKA_STORAGE_ERROR")
    assert topic["t"]["undecided_write_partitions"] == 1


def test_a_topic_tells_that_the_size_of_one_of_its_partitions_is_not_known(topics_read_in_part):
    row = topics_read_in_part["half"]
    assert row["size_bytes_max"] == 1000
    assert row["errors"]["replica_sizes"].startswith("on 1 of its partitions, first 1: CLUSTER_AUTHORIZATION_FAILED")


def _with_groups(*names: str, gap: bool = False) -> Synthetic:
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("t").offsets("t", log_start=0, log_end=100, last_stable=100)
    for name in names:
        cluster.group(name, assigned=[("t", 0)]).commit(name, "t", 95)
    where = {"topic": "__consumer_offsets", "partition": 7}
    return cluster.error("groups", "COORDINATOR_NOT_AVAILABLE", "has no leader", **where) if gap else cluster


@pytest.mark.parametrize(("gap", "kept"), [(True, {"here", "unseen", "unseen-for-long"}), (False, {"here"})])
def test_a_group_is_not_assessed_while_its_coordinator_is_gone(gap: bool, kept: set[str], spark: SparkSession, tmp_path: Path) -> None:
    """Of the groups that no broker lists, the deleted one is missing from a whole list, too: that of two hours ago."""
    histories = {3: ("here", "deleted"), 2: ("here", "unseen", "unseen-for-long")}
    for hours, names in histories.items():
        _with_groups(*names).write(tmp_path, READ_AT - timedelta(hours=hours))
    _with_groups("here", "unseen", gap=True).write(tmp_path, READ_AT - timedelta(hours=1))
    snapshot, policy = _with_groups("here", gap=gap).write(tmp_path), load_policy()
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    with evidence.tables.settings():
        for subject in ("group", "group_partition", "group_sla"):
            rows = {row["group_id"]: row.asDict(recursive=True) for row in wide_rows(subject, evidence, policy).collect()}
            assert rows.keys() == kept
            assert populations([subject], evidence, policy)[subject] == len(rows)
            for name in kept - {"here"}:
                known = {column for column, value in rows[name].items() if value is not None}
                allowed = {"group_id", "topic", "partition", "group_type", "protocol_type", "status", "status_reason"}
                assert known <= allowed | {"resource", "tier", "policy", "errors"}
                assert (
                    "COORDINATOR_NOT_AVAILABLE (SomeApi, __consumer_offsets-7): has no leader" in rows[name]["errors"]["committed_offsets"]
                )


PAGE = "https://cloud.example/limits"
HIDDEN = ["broker_configs", "log_dirs", "replica_sizes", "quorum", "reassignments", "acls", "topic_configs.unclean.leader.election.enable"]


def _of_a_service(error: str) -> Synthetic:
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("t").topic("bare").offsets("t", log_start=0, log_end=9, last_stable=9)
    for name in ("broker_configs", "log_dirs", "replica_sizes", "quorum", "reassignments", "acls"):
        cluster.tables[name].clear()
        cluster.error(name, error)
    settings = cluster.tables["topic_configs"]
    settings[:] = [row for row in settings if (row["topic"], row["name"]) != ("t", "unclean.leader.election.enable")]
    return cluster.topic("thin", replicas=[1])


def _verdicts(
    spark: SparkSession,
    folder: Path,
    cluster: Synthetic,
    service: ManagedService | None,
    subjects: tuple[str, ...] = ("broker", "cluster", "topic"),
) -> dict[tuple[str, str], tuple[str, str]]:
    policy, evidence = (
        replace(load_policy(), managed_service=service),
        Evidence(spark=spark, snapshot=cluster.write(folder), small_cluster=True),
    )
    found = {}
    with evidence.tables.settings():
        for subject in subjects:
            rows = wide_rows(subject, evidence, policy)
            judged = judge(rows, load_catalogue().of_subject(subject), None, PolicyColumns(policy=policy, at=READ_AT))
            found |= {(one["code"], one["resource"]): (one["status"], one["reason"]) for one in judged.collect()}
    return found


def test_what_a_managed_service_hides_does_not_apply_and_what_was_read_is_judged(spark: SparkSession, tmp_path: Path) -> None:
    service = ManagedService(name="Cloud", documentation=PAGE, hides=HIDDEN)
    refused = _of_a_service("CLUSTER_AUTHORIZATION_FAILED")
    before, after = (_verdicts(spark, tmp_path / str(one is None), refused, one) for one in (None, service))

    # The audit's own control fails for whatever was not read, and leaves out what is hidden.
    assert (before.pop(("AUD-01", "cluster"))[0], after.pop(("AUD-01", "cluster"))[0]) == ("fail", "not_applicable")
    changed = {key for key in before if before[key][0] != after[key][0]}
    assert {before[key][0] for key in changed} == {"not_assessed"}
    assert {after[key][0] for key in changed} <= {"not_applicable", "pass"}
    said = {after[key][1] for key in changed if after[key][0] == "not_applicable"}
    assert said <= {f"{name} is hidden by the managed service Cloud: {PAGE}" for name in HIDDEN}
    assert {("REP-08", "1"), ("BRK-01", "2"), ("QRM-01", "cluster"), ("BRK-06", "cluster"), ("TOP-04", "t")} <= changed
    assert after["TOP-04", "bare"] == ("not_applicable", service.reason("quorum"))  # who elects its leader is hidden
    assert after["TOP-01", "thin"][0] == "fail"


def test_a_broker_that_was_only_slow_hides_nothing(spark: SparkSession, tmp_path: Path) -> None:
    service = ManagedService(name="Cloud", documentation=PAGE, hides=HIDDEN[:-1])
    found = _verdicts(spark, tmp_path, _of_a_service("REQUEST_TIMED_OUT"), service, ("broker", "cluster"))
    assert {found[key][0] for key in (("REP-08", "1"), ("BRK-01", "2"), ("QRM-01", "cluster"))} == {"not_assessed"}
