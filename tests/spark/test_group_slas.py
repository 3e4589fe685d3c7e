"""Lag SLAs of groups: their rows and the verdicts on them."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lag_samples import cluster_at, now, policy_folder, write_samples
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.part import population
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.lag.series import BUCKETS, lag_series, worst_groups
from spark_jobs.rows.build import wide_rows
from spark_jobs.rows.group.group_sla import judged_samples, lag_window

pytestmark = pytest.mark.spark

TIERS = """
version: 1
default_tier: gold
tiers:
  gold: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 86400000}
  tin: {replication_factor: 2, min_insync_replicas: 1, retention_ms: 3600000}
topics: [{pattern: "logs*", tier: tin}]
groups: [{pattern: "*", tier: tin}]
"""
SLAS = """
version: 1
groups:
  - {pattern: "connect-*", name: unused, max_lag_records: 1}
  - {pattern: "a*", topics: "pay*", name: pay, max_lag_records: 10, max_lag_seconds: 60}
  - {pattern: "a*", tier: tin, name: cheap, max_lag_records: 1000}
  - {pattern: "b*", name: all, max_lag_records: 10}
  - {pattern: "idle", name: idle, max_lag_records: 10}
"""


def covered_cluster() -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for topic in ("pay", "logs", "orders"):
        one.topic(topic).offsets(topic, log_start=0, log_end=100, last_stable=100)
    for group, topics in {"a": ("pay", "logs", "orders"), "b": ("pay", "orders"), "b [all]": ("pay",), "c": ("pay",), "idle": ()}.items():
        one.group(group, assigned=[(topic, 0) for topic in topics])
        for topic in topics:
            one.commit(group, topic, 80)
    one.group("empty", state="Empty").commit("empty", "pay", 100)
    one.add("replica_sizes", broker_id=1, path="/data", topic="secret", partition=0, size_bytes=1, is_future=False)
    one.add("replica_sizes", broker_id=1, path="/data", topic="__consumer_offsets", partition=0, size_bytes=1, is_future=False)
    one.group("connect-cluster", protocol_type="connect", assigned=[])
    return one.add("sla_offsets", topic="pay", partition=0, max_lag_seconds=60, offset=81, read_at=READ_AT)


@pytest.fixture(scope="module")
def covered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """Rows by resource, and the population."""
    root, folder = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("policy")
    (folder / "slas.yaml").write_text(SLAS)
    (folder / "tiers.yaml").write_text(TIERS)
    policy = load_policy(folder)
    evidence = Evidence(spark=spark, snapshot=covered_cluster().write(root), small_cluster=True)
    rows = wide_rows("group_sla", evidence, policy).collect()
    return {row["resource"]: row.asDict(recursive=True) for row in rows}, population("group_sla", evidence, policy)


def test_a_group_has_a_row_for_each_sla_that_covers_a_topic_of_it(covered: tuple[dict[str, Any], int]) -> None:
    rows, counted = covered
    # "orders" of group a has no SLA: its tier is gold. An id that looks like a row with a name gets one of its own. The group of Connect's
    # workers consumes nothing.
    assert {resource: row["policy"]["sla"] for resource, row in rows.items()} == {
        "a [pay]": "pay",
        "a [cheap]": "cheap",
        "b": "all",
        "b [all] [all]": "all",
        "c": None,
        "empty": None,
        "idle": "idle",
    }
    assert counted == len(rows)


def test_an_empty_group_may_have_committed_on_a_topic_that_is_hidden_from_the_auditor(covered: tuple[dict[str, Any], int]) -> None:
    rows, _ = covered
    assert rows["empty"]["unmeasured"] == (
        "commits on hidden topics are not shown: 1 topic is on a broker's disk, but not in metadata: secret"
    )
    assert rows["b"]["unmeasured"] is None


def test_what_no_lag_of_an_empty_group_shows_is_named_where_its_sla_covers_it(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic().brokers({1: "a"}).error("log_dirs", "CLUSTER_AUTHORIZATION_FAILED")
    one.error("acls", "SECURITY_DISABLED")  # without an authorizer nothing can be hidden
    for topic, second in {"pay": {"log_end": 0}, "logs": {"log_end": 1}, "dark": {"error": "TIMEOUT"}}.items():
        one.topic(topic, partitions=2, replicas=[1]).offsets(topic, log_start=0, log_end=100).offsets(
            topic, 1, **{"log_start": 0, **second}
        )
    for group, topics in {"a": ("pay", "logs"), "b": ("dark", "logs"), "b-dark": ("dark",)}.items():
        one.group(group, state="Empty")
        for topic in topics:
            one.commit(group, topic, 100)
    (tmp_path / "slas.yaml").write_text(SLAS)
    (tmp_path / "tiers.yaml").write_text(TIERS)
    evidence = Evidence(spark=spark, snapshot=one.write(tmp_path / "root"))
    rows = wide_rows("group_sla", evidence, load_policy(tmp_path)).select("resource", "unmeasured").collect()
    neither = (
        "how much of it is to be read is not known: 1 partition has records and neither a commit nor a reader (CON-08, CON-15): logs-1"
    )
    unread = "a partition without a reader could not be read: TIMEOUT: dark-1"
    assert {row.resource: row.unmeasured for row in rows} == {"a [pay]": None, "a [cheap]": neither, "b": neither, "b-dark": unread}


def test_partitions_that_members_read_without_a_commit_are_named_unless_they_are_empty(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic().brokers({1: "a"}).topic("pay", partitions=4, replicas=[1])
    for partition, log in enumerate(({"log_end": 100}, {"log_end": 100}, {"log_end": 0}, {"error": "TIMEOUT"})):
        one.offsets("pay", partition, **{"log_start": 0, **log})
    one.group("a", assigned=[("pay", 0), ("pay", 1), ("pay", 2), ("pay", 3)], subscribed=["pay"]).commit("a", "pay", 100)
    (tmp_path / "slas.yaml").write_text(SLAS)
    (tmp_path / "tiers.yaml").write_text(TIERS)
    evidence = Evidence(spark=spark, snapshot=one.write(tmp_path / "root"))
    row = wide_rows("group_sla", evidence, load_policy(tmp_path)).where("resource = 'a [pay]'").select("unmeasured").first()
    assert row is not None
    assert row.unmeasured == "members read 2 partitions on which the group has committed nothing (CON-07): pay-1, pay-3"


def test_a_row_sums_only_the_partitions_that_its_sla_covers(covered: tuple[dict[str, Any], int]) -> None:
    rows, _ = covered
    assert {name: (rows[name]["partition_count"], rows[name]["lag_known"]) for name in ("a [pay]", "b", "c", "idle")} == {
        "a [pay]": (1, 20),
        "b": (2, 40),
        "c": (1, 20),
        "idle": (0, None),
    }
    assert (rows["a [pay]"]["behind_partitions"], rows["a [pay]"]["behind_partition"]) == (1, "pay-0")
    assert (rows["b"]["behind_partitions"], rows["b"]["unasked_partitions"]) == (0, 2)
    assert rows["c"]["minutes_in"] is None


ODD_SLAS = """
version: 1
groups:
  - {pattern: "few*", name: few, max_lag_records: 0}
  - {pattern: "*", name: fast, max_lag_seconds: 60}
"""
# Group and topic -> commit, log start, demanded offset, offset of the first unread record (0: the log was read and has none) and its age.
ODD: dict[str, tuple[int, int, int | None, int | None, int]] = {
    "below": (80, 0, 81, None, 0),
    "older": (80, 0, 70, 80, 61_000),
    "young": (80, 0, 70, 80, 60_000),
    "ahead": (80, 0, 70, 80, -HOUR_MS),
    "future": (80, 0, 70, 80, -HOUR_MS // 2),
    "future-old": (80, 0, 70, 80, -30_000),
    "seen": (80, 0, 70, None, 0),
    "hole": (80, 0, 70, 95, 10_000),
    "large": (80, 0, 70, None, 0),
    "large-late": (60, 0, 70, None, 0),
    "refused": (80, 0, 70, None, 0),
    "lost": (50, 90, 90, None, 0),
    "drained": (50, 100, 100, None, 0),
    "beyond": (500, 0, 70, None, 0),
    "few-marked": (99, 0, None, 0, 0),
    "few-perhaps": (99, 0, None, None, 0),
    "few-beyond": (500, 0, None, None, 0),
}
ENDED_LATER = {"seen", "hole", "ahead"}
"""Topics whose log already ended behind the commit an hour before."""
NEW = {"future-old"}
"""Topics that no earlier snapshot shows."""


UNREAD = {"large": "RECORD_BATCH_TOO_LARGE", "large-late": "DEADLINE_EXCEEDED", "refused": "TOPIC_AUTHORIZATION_FAILED"}
"""Why the first unread record of a topic could not be read."""


def odd_cluster(*, is_past: bool = False) -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for name, (committed, start, demanded, record, age) in ODD.items():
        if is_past and name in NEW:
            continue
        end = 100 if not is_past else 90 if name in ENDED_LATER else start
        one.topic(name).offsets(name, log_start=start, log_end=end, last_stable=end)
        one.group(name, assigned=[(name, 0)]).commit(name, name, committed)
        place = {"topic": name, "partition": 0, "read_at": READ_AT}
        if demanded is not None and not is_past:
            one.add("sla_offsets", **place, max_lag_seconds=60, timestamp_ms=READ_MS - 60_000, offset=demanded)
        if record is not None and not is_past:
            found = {"record_offset": record, "timestamp_ms": READ_MS - age} if record else {}
            one.add("first_unread", **place, offset=committed, **found)
        if name in UNREAD and not is_past:
            one.add("first_unread", **place, offset=committed, error=UNREAD[name])
    return one


@pytest.fixture(scope="module")
def odd(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Group -> row of group_sla and, under behind_sla, what group_partition says; "code group" -> finding."""
    root, folder = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("policy")
    (folder / "slas.yaml").write_text(ODD_SLAS)
    (folder / "tiers.yaml").write_text(TIERS)
    policy = load_policy(folder)
    odd_cluster(is_past=True).write(root, READ_AT - timedelta(hours=1))
    snapshot = odd_cluster().write(root)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    with evidence.tables.settings():
        behind = {row["group_id"]: row["behind_sla"] for row in wide_rows("group_partition", evidence, policy).collect()}
        rows = evidence.tables.shorten(wide_rows("group_sla", evidence, policy))
        found = {row["group_id"]: {**row.asDict(recursive=True), "behind_sla": behind[row["group_id"]]} for row in rows.collect()}
        findings = judge(rows, load_catalogue().of_subject("group_sla"), None, PolicyColumns(policy=policy, at=READ_AT)).collect()
    return found | {f"{one['code']} {one['resource']}": one.asDict() for one in findings}


def test_an_sla_in_seconds_is_kept_only_where_nothing_contradicts(odd: dict[str, dict[str, Any]]) -> None:
    assert {name: odd[name]["behind_sla"] for name in ODD if not name.startswith("few")} == {
        "below": True,
        "older": True,
        "young": False,
        "ahead": None,
        "future": None,
        "future-old": None,
        "seen": None,
        "hole": False,
        "large": None,
        "large-late": True,
        "refused": False,
        "lost": False,
        "drained": False,
        "beyond": None,
    }


def test_a_snapshot_that_already_saw_the_unread_record_proves_it_late(odd: dict[str, dict[str, Any]]) -> None:
    assert {name: odd[f"CON-02 {name}"]["status"] for name in ("ahead", "seen", "hole", "young")} == {
        "ahead": "fail",
        "seen": "fail",
        "hole": "pass",
        "young": "pass",
    }


def test_a_record_that_its_writer_made_unreadable_keeps_no_sla(odd: dict[str, dict[str, Any]]) -> None:
    assert {name: (odd[name]["hidden_record"], odd[f"CON-02 {name}"]["status"]) for name in UNREAD} == {
        "large": ("large-0 (RECORD_BATCH_TOO_LARGE)", "not_assessed"),
        "large-late": (None, "fail"),
        "refused": (None, "pass"),
    }
    assert "is not known on large-0 (RECORD_BATCH_TOO_LARGE)" in odd["CON-02 large"]["reason"]


@pytest.mark.parametrize("name", ["future", "future-old"])
def test_a_record_stamped_in_the_future_keeps_no_sla(name: str, odd: dict[str, dict[str, Any]]) -> None:
    assert odd[f"CON-02 {name}"]["status"] == "not_assessed", odd[f"CON-02 {name}"]["observed"]
    assert f"{name}-0 (its timestamp lies in the future)" in odd[f"CON-02 {name}"]["reason"]


def test_markers_are_no_lag_and_a_commit_beyond_the_end_is_no_lag_of_zero(odd: dict[str, dict[str, Any]]) -> None:
    figures = ("lag_known", "lag_least", "unknown_partitions", "beyond_partitions")
    assert {name: tuple(odd[name][figure] for figure in figures) for name in ODD if name.startswith("few")} == {
        "few-marked": (0, 0, 0, 0),
        "few-perhaps": (1, 0, 0, 0),
        "few-beyond": (None, None, 1, 1),
    }


@pytest.mark.parametrize(
    ("case", "status", "reason"),
    [
        ("CON-01 few-marked", "pass", None),
        ("CON-01 few-perhaps", "not_assessed", "1 of 1 records behind may be ends of transactions"),
        ("CON-01 few-beyond", "not_assessed", "on 1 because the commit is beyond the log end (CON-04)"),
        ("CON-02 beyond", "not_assessed", "on 1 because the commit is beyond the log end (CON-04)"),
    ],
)
def test_a_commit_that_proves_nothing_is_not_assessed(case: str, status: str, reason: str | None, odd: dict[str, dict[str, Any]]) -> None:
    assert odd[case]["status"] == status
    assert (reason or "") in (odd[case]["reason"] or "")


@pytest.fixture(scope="module")
def evidence(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    root = tmp_path_factory.mktemp("history")
    write_samples(root)
    # A run that was repeated counts for nothing.
    cluster_at(READ_AT, lag=700).write(root, READ_AT - timedelta(minutes=30), OFFSETS)
    snapshot = now(root)
    yield Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)


@pytest.fixture(scope="module")
def judged(evidence: Evidence, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Resource -> row, and "code resource" -> finding."""
    policy = load_policy(policy_folder(tmp_path_factory.mktemp("policy")))
    rows = evidence.tables.shorten(wide_rows("group_sla", evidence, policy))
    found = {row["resource"]: row.asDict(recursive=True) for row in rows.collect()}
    findings = judge(rows, load_catalogue().of_subject("group_sla"), None, PolicyColumns(policy=policy, at=READ_AT)).collect()
    return found | {f"{one['code']} {one['resource']}": one.asDict() for one in findings}


def test_the_error_budget_is_that_of_the_window_without_quiet_hours(judged: dict[str, dict[str, Any]]) -> None:
    row = judged["night"]
    assert (row["minutes_in"], row["minutes_out"], row["minutes_quiet"], row["minutes_not_assessed"]) == (1440, 180, 480, 780)
    assert row["availability_percent"] == pytest.approx(100 * 1440 / 1620)
    assert row["budget_allowed_minutes"] == pytest.approx(24)
    assert (row["budget_used_minutes"], row["budget_left_minutes"]) == (180, pytest.approx(-156))
    assert row["worst_lag"] == 500


VERDICTS = {
    "CON-01 late [part]": ("pass", "outside of the SLA in 0 of the newest 3 samples, of which 3 are known"),
    "CON-14 late [part]": ("fail", "error budget 240.0 of 28.8 minutes used"),
    "CON-14 night": ("fail", "180 outside, 780 not assessed, 480 in quiet hours"),
    "CON-14 half [part]": ("not_assessed", "0 outside"),
    "CON-01 stuck": ("pass", "records behind"),
    # The broker names an offset that the group has passed, and 36 snapshots say that what it has not read is older: those decide.
    "CON-02 timed": ("fail", "129600 s are proven by a snapshot"),
    "CON-02 late [part]": ("not_applicable", ""),
    "CON-01 loser": ("not_applicable", ""),
    "CON-14 loser": ("not_applicable", ""),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_verdict_on_an_sla(case: str, judged: dict[str, dict[str, Any]]) -> None:
    status, text = VERDICTS[case]
    finding = judged[case]
    assert (finding["status"], text in finding["observed"]) == (status, True), finding["reason"] or finding["observed"]


def test_a_series_has_few_buckets_and_says_what_is_not_known(evidence: Evidence, tmp_path: Path) -> None:
    policy = load_policy(policy_folder(tmp_path))
    worst = worst_groups(wide_rows("group_sla", evidence, policy), wide_rows("group_partition", evidence, policy))
    assert worst[0] == "loser"
    series = lag_series(lag_window(evidence, policy), judged_samples(evidence, policy), worst).collect()
    first = min(row.bucket_ms for row in series)
    late = {(row.bucket_ms - first) // HOUR_MS: row for row in series if row.group_id == "late"}
    assert len(late) <= BUCKETS
    # Buckets of two hours: 02:00 is out for both, 04:00 for the hour after it, too, and from 11:00 to 13:00 nothing is known.
    assert [(hour, late[hour].lag, late[hour].in_sla_share, late[hour].known_share) for hour in (0, 2, 4, 8)] == [
        (0, 10, 1.0, 1.0),
        (2, 500, 0.0, 1.0),
        (4, 500, 0.0, 1.0),
        (8, 10, 1.0, 1.0),
    ]
    assert 10 not in late
    assert late[12].known_share == 0.5


_OLD = [28_815, 28_810, 28_805, 28_800]
# Minutes before the audit's own snapshot, oldest first, and how many records groups were behind then; a day is 1440.
AGED: dict[str, tuple[list[int], dict[str, list[int]]]] = {
    "hole": ([*_OLD, 0], {"good-long-ago": [1, 1, 1, 1, 1_000_000], "bad-long-ago": [1_000_000] * 4 + [0]}),
    "fresh": ([*_OLD, 10, 5, 0], {"bad-now": [1, 1, 1, 1, 1_000_000, 1_000_000, 1_000_000], "bad-again": [1_000_000] * 5 + [1, 1]}),
    "runs-lost": ([40, 30, 20, 10, 0], {"bad-once": [1, 1, 1, 1, 1_000_000]}),
}
AGED_SLAS = """
version: 1
groups:
  - {pattern: "*", name: three, max_lag_records: 1000, max_lag_seconds: 60, breach: {samples: 3, of: 5}}
"""


@pytest.fixture(scope="module")
def aged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """ "code group" -> finding, from offsets snapshots that are planned five minutes apart."""
    folder, found = tmp_path_factory.mktemp("policy"), {}
    (folder / "slas.yaml").write_text(AGED_SLAS)
    (folder / "tiers.yaml").write_text(TIERS)
    policy = load_policy(folder)
    for minutes, groups in AGED.values():
        root = tmp_path_factory.mktemp("root")
        for number, before in enumerate(minutes):
            one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
            end = 100_000_000 - 1000 * before
            for group, lags in groups.items():
                one.topic(group).offsets(group, log_start=0, log_end=end, last_stable=end).group(group, assigned=[(group, 0)])
                one.commit(group, group, end - lags[number])
                asked = {"topic": group, "partition": 0, "read_at": READ_AT, "max_lag_seconds": 60}
                one.add("sla_offsets", **asked, timestamp_ms=READ_MS - (before + 1) * 60_000, offset=end - 1000)
            snapshot = one.write(root, READ_AT - timedelta(minutes=before), OFFSETS if before else SNAPSHOT)
        evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
        with evidence.tables.settings():
            rows = evidence.tables.shorten(wide_rows("group_sla", evidence, policy))
            findings = judge(rows, load_catalogue().of_subject("group_sla"), None, PolicyColumns(policy=policy, at=READ_AT)).collect()
        found |= {f"{one['code']} {one['resource']}": one.asDict() for one in findings}
    return found


@pytest.mark.parametrize("code", ["CON-01", "CON-02"])
@pytest.mark.parametrize(
    ("group", "status"),
    [
        ("good-long-ago", "not_assessed"),
        ("bad-long-ago", "pass"),
        ("bad-now", "fail"),
        ("bad-again", "pass"),
        ("bad-once", "pass"),
    ],
)
def test_a_breach_counts_samples_of_this_time_only(code: str, group: str, status: str, aged: dict[str, dict[str, Any]]) -> None:
    finding = aged[f"{code} {group}"]
    assert finding["status"] == status, finding["reason"] or finding["observed"]
    if status == "not_assessed":
        assert "1 of 5 samples" in finding["reason"]
        assert "that are at most 3750 s old" in finding["reason"]


OPEN_SLAS = """
version: 1
groups:
  - {pattern: "*", name: both, max_lag_records: 10000, max_lag_seconds: 60, breach: {samples: 2, of: 2}}
"""
CLIENT = "kind: consumer, implementation: java, owner: o, declared_on: 2025-01-01, source: s"
OPEN_CLIENTS = f"""
version: 1
clients:
  - {{name: a, group: committed, settings: {{isolation.level: read_committed}}, {CLIENT}}}
  - {{name: b, group: uncommitted, {CLIENT}}}
  - {{name: c, group: both, settings: {{isolation.level: read_committed}}, {CLIENT}}}
  - {{name: d, group: both, {CLIENT}}}
"""
OPEN = {"undeclared": 0, "committed": 0, "uncommitted": 0, "both": 0, "far-behind": 20_000, "committed-and-far": 20_000}
"""Group -> by how many records it is behind the last stable offset, where a transaction of 50,000 records is open."""


@pytest.fixture(scope="module")
def waiting(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Group -> row of group_sla; "code group" -> finding, from two samples five minutes apart."""
    root, folder = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("policy")
    for name, text in {"slas": OPEN_SLAS, "tiers": TIERS, "clients": OPEN_CLIENTS}.items():
        (folder / f"{name}.yaml").write_text(text)
    policy = load_policy(folder)
    for before in (5, 0):
        one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
        for group, behind in OPEN.items():
            one.topic(group).offsets(group, log_start=0, log_end=150_000, last_stable=100_000)
            one.group(group, assigned=[(group, 0)]).commit(group, group, 100_000 - behind)
            asked = {"topic": group, "partition": 0, "read_at": READ_AT, "max_lag_seconds": 60}
            one.add("sla_offsets", **asked, timestamp_ms=READ_MS - (before + 1) * 60_000, offset=140_000)
        snapshot = one.write(root, READ_AT - timedelta(minutes=before), OFFSETS if before else SNAPSHOT)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    with evidence.tables.settings():
        rows = evidence.tables.shorten(wide_rows("group_sla", evidence, policy))
        found = {row["group_id"]: row.asDict(recursive=True) for row in rows.collect()}
        findings = judge(rows, load_catalogue().of_subject("group_sla"), None, PolicyColumns(policy=policy, at=READ_AT)).collect()
    return found | {f"{one['code']} {one['resource']}": one.asDict() for one in findings}


@pytest.mark.parametrize(
    ("group", "records", "figures"),
    [
        ("undeclared", "not_assessed", (50_000, 0, 50_000, None)),
        ("committed", "pass", (0, 0, 50_000, "read_committed")),
        ("uncommitted", "fail", (50_000, 50_000, 50_000, "read_uncommitted")),
        ("both", "not_assessed", (50_000, 0, 50_000, None)),
        ("far-behind", "fail", (70_000, 20_000, 50_000, None)),
    ],
)
def test_what_an_open_transaction_holds_back_is_lag_by_the_declared_isolation_level(
    group: str, records: str, figures: tuple[Any, ...], waiting: dict[str, dict[str, Any]]
) -> None:
    row, finding = waiting[group], waiting[f"CON-01 {group}"]
    assert (row["lag_known"], row["lag_least"], row["lag_held"], row["isolation"]) == figures
    assert finding["status"] == records, finding["reason"] or finding["observed"]
    assert "50000 records are held back by open transactions (TXN-01)" in finding["observed"]
    if records == "not_assessed":
        assert "isolation.level" in finding["reason"]


def test_the_seconds_before_an_open_transaction_are_those_of_the_declared_isolation_level(waiting: dict[str, dict[str, Any]]) -> None:
    assert {group: waiting[f"CON-02 {group}"]["status"] for group in OPEN} == {
        "undeclared": "not_assessed",
        "committed": "pass",
        "uncommitted": "fail",
        "both": "not_assessed",
        "far-behind": "fail",
        "committed-and-far": "fail",
    }
    assert "isolation.level" in waiting["CON-02 undeclared"]["reason"]
