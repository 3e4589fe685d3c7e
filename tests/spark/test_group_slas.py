"""Lag SLAs of groups: their rows and the verdicts on them."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from lag_samples import cluster_at, now, policy_folder, write_samples
from pyspark.sql import DataFrame, SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import Policy, load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import rows_of
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.judge.population import populations
from spark_jobs.lag.series import BUCKETS, lag_series, worst_groups
from spark_jobs.rows.build import wide_rows
from spark_jobs.rows.group.group_sla import judged_samples, lag_window, with_minutes

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


def policy_of(folder: Path, slas: str, clients: str | None = None) -> Policy:
    for name, text in {"slas": slas, "tiers": TIERS, "clients": clients}.items():
        if text is not None:
            (folder / f"{name}.yaml").write_text(text)
    return load_policy(folder)


def findings_of(rows: DataFrame, policy: Policy, *codes: str) -> dict[str, dict[str, Any]]:
    """ "code resource" -> finding of these controls."""
    controls = [control for control in load_catalogue().of_subject("group_sla") if control.code in codes]
    findings = judge(rows, controls, None, PolicyColumns(policy=policy, at=READ_AT)).collect()
    return {f"{one['code']} {one['resource']}": one.asDict() for one in findings}


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
    return one.add("sla_offsets", topic="pay", partition=0, max_lag_seconds=60, offset=82, read_at=READ_AT)


@pytest.fixture(scope="module")
def covered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int]:
    """Rows by resource, and the population."""
    policy = policy_of(tmp_path_factory.mktemp("policy"), SLAS)
    evidence = Evidence(spark=spark, snapshot=covered_cluster().write(tmp_path_factory.mktemp("root")), small_cluster=True)
    rows = wide_rows("group_sla", evidence, policy).collect()
    return {row["resource"]: row.asDict(recursive=True) for row in rows}, populations(["group_sla"], evidence, policy)["group_sla"]


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


def add_empty_groups(one: Synthetic) -> Synthetic:
    for topic, second in {"pay": {"log_end": 0}, "logs": {"log_end": 1}, "dark": {"error": "TIMEOUT"}}.items():
        one.topic(topic, partitions=2, replicas=[1]).offsets(topic, log_start=0, log_end=100)
        one.offsets(topic, 1, **{"log_start": 0, **second})
    for group, topics in {"a": ("pay", "logs"), "b": ("dark", "logs"), "b-dark": ("dark",)}.items():
        one.group(group, state="Empty")
        for topic in topics:
            one.commit(group, topic, 100)
    return one


def add_readers_without_commits(one: Synthetic) -> Synthetic:
    one.topic("pay-read", partitions=4, replicas=[1])
    for partition, log in enumerate(({"log_end": 100}, {"log_end": 100}, {"log_end": 0}, {"error": "TIMEOUT"})):
        one.offsets("pay-read", partition, **{"log_start": 0, **log})
    one.group("a-reader", assigned=[("pay-read", number) for number in range(4)], subscribed=["pay-read"])
    return one.commit("a-reader", "pay-read", 100)


@pytest.fixture(scope="module")
def unmeasured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str | None]:
    """Resource -> what its lag does not show. Of no topic it is known whether it is hidden, and without an authorizer nothing can be."""
    one = add_readers_without_commits(add_empty_groups(Synthetic().brokers({1: "a"})))
    one.error("log_dirs", "CLUSTER_AUTHORIZATION_FAILED").error("acls", "SECURITY_DISABLED")
    policy = policy_of(tmp_path_factory.mktemp("policy"), SLAS)
    evidence = Evidence(spark=spark, snapshot=one.write(tmp_path_factory.mktemp("root")), small_cluster=True)
    rows = wide_rows("group_sla", evidence, policy).select("resource", "unmeasured").collect()
    return {row.resource: row.unmeasured for row in rows}


def test_what_no_lag_of_an_empty_group_shows_is_named_where_its_sla_covers_it(unmeasured: dict[str, str | None]) -> None:
    neither = (
        "how much of it is to be read is not known: 1 partition has records and neither a commit nor a reader (CON-08, CON-15): logs-1"
    )
    unread = "a partition without a reader could not be read: TIMEOUT: dark-1"
    empty = {resource: said for resource, said in unmeasured.items() if not resource.startswith("a-reader")}
    assert empty == {"a [pay]": None, "a [cheap]": neither, "b": neither, "b-dark": unread}


def test_partitions_that_members_read_without_a_commit_are_named_unless_they_are_empty(unmeasured: dict[str, str | None]) -> None:
    assert unmeasured["a-reader [pay]"] == (
        "members read 2 partitions on which the group has committed nothing (CON-07): pay-read-1, pay-read-3"
    )


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


PRESENT_SLAS = """
version: 1
groups:
  - {pattern: "open-*", name: both, max_lag_records: 10000, max_lag_seconds: 60, breach: {samples: 2, of: 2}}
  - {pattern: "bad-once", name: three, max_lag_records: 1000, max_lag_seconds: 60, breach: {samples: 3, of: 5}}
  - {pattern: "few*", name: few, max_lag_records: 0}
  - {pattern: "*", name: fast, max_lag_seconds: 60}
"""
# Group and topic -> commit, log start, demanded offset, offset of the first unread record (0: the log was read and has none) and its age.
ODD: dict[str, tuple[int, int, int | None, int | None, int]] = {
    "below": (80, 0, 82, None, 0),
    # One older offset, which may be the end of a transaction, before younger ones; and the same one read.
    "below-by-one": (80, 0, 81, None, 0),
    "below-by-a-record": (80, 0, 81, 80, 59_000),
    "seen-by-one": (80, 0, 81, None, 0),
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
ENDED_ONE_LATER = {"seen-by-one"}
"""Topics whose log already ended one offset behind the commit an hour before."""
NEW = {"future-old"}
"""Topics that no earlier snapshot shows."""


UNREAD = {"large": "RECORD_BATCH_TOO_LARGE", "large-late": "DEADLINE_EXCEEDED", "refused": "TOPIC_AUTHORIZATION_FAILED"}
"""Why the first unread record of a topic could not be read."""


def add_odd(one: Synthetic, *, is_past: bool = False) -> Synthetic:
    for name, (committed, start, demanded, record, age) in ODD.items():
        if is_past and name in NEW:
            continue
        end = 100 if not is_past else 90 if name in ENDED_LATER else 81 if name in ENDED_ONE_LATER else start
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


CLIENT = "kind: consumer, implementation: java, owner: o, declared_on: 2025-01-01, source: s"
OPEN_CLIENTS = f"""
version: 1
clients:
  - {{name: a, group: open-committed, settings: {{isolation.level: read_committed}}, {CLIENT}}}
  - {{name: b, group: open-uncommitted, {CLIENT}}}
  - {{name: c, group: open-both, settings: {{isolation.level: read_committed}}, {CLIENT}}}
  - {{name: d, group: open-both, {CLIENT}}}
"""
OPEN = {"undeclared": 0, "committed": 0, "uncommitted": 0, "both": 0, "far-behind": 20_000, "committed-and-far": 20_000}
"""Group -> by how many records it is behind the last stable offset, where a transaction of 50,000 records is open."""


def add_sample(one: Synthetic, group: str, lag: int, before: int) -> Synthetic:
    """A group and its topic, so many minutes before this snapshot: behind by so many records, of which 1000 are older than a minute."""
    end = 100_000_000 - 1000 * before
    one.topic(group).offsets(group, log_start=0, log_end=end, last_stable=end).group(group, assigned=[(group, 0)])
    asked = {"topic": group, "partition": 0, "read_at": READ_AT, "max_lag_seconds": 60}
    one.add("sla_offsets", **asked, timestamp_ms=READ_MS - (before + 1) * 60_000, offset=end - 1000)
    return one.commit(group, group, end - lag)


def add_waiting(one: Synthetic, before: int) -> Synthetic:
    """The groups of OPEN, so many minutes before this snapshot."""
    for case, behind in OPEN.items():
        group = f"open-{case}"
        one.topic(group).offsets(group, log_start=0, log_end=150_000, last_stable=100_000)
        one.group(group, assigned=[(group, 0)]).commit(group, group, 100_000 - behind)
        asked = {"topic": group, "partition": 0, "read_at": READ_AT, "max_lag_seconds": 60}
        one.add("sla_offsets", **asked, timestamp_ms=READ_MS - (before + 1) * 60_000, offset=140_000)
    return one


@pytest.fixture(scope="module")
def present(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Group -> row of group_sla and, under behind_sla, what group_partition says; "code group" -> finding. Groups of ODD and OPEN, and bad-once."""
    root, policy = tmp_path_factory.mktemp("root"), policy_of(tmp_path_factory.mktemp("policy"), PRESENT_SLAS, OPEN_CLIENTS)
    brokers = {1: "a", 2: "b", 3: "c"}
    add_odd(Synthetic().brokers(brokers), is_past=True).write(root, READ_AT - timedelta(hours=1))
    for before in (40, 30, 20):
        add_sample(Synthetic().brokers(brokers), "bad-once", 1, before).write(root, READ_AT - timedelta(minutes=before), OFFSETS)
    ten_minutes_ago = add_waiting(add_sample(Synthetic().brokers(brokers), "bad-once", 1, 10), 10)
    ten_minutes_ago.write(root, READ_AT - timedelta(minutes=10), OFFSETS)
    snapshot = add_waiting(add_sample(add_odd(Synthetic().brokers(brokers)), "bad-once", 1_000_000, 0), 0).write(root)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    with evidence.tables.settings():
        partitions = wide_rows("group_partition", evidence, policy).select("group_id", "behind_sla").collect()
        behind = {row["group_id"]: row["behind_sla"] for row in partitions}
        rows = evidence.tables.shorten(wide_rows("group_sla", evidence, policy))
        found = {row["group_id"]: {**row.asDict(recursive=True), "behind_sla": behind[row["group_id"]]} for row in rows.collect()}
        return found | findings_of(rows, policy, "CON-01", "CON-02")


def test_an_sla_in_seconds_is_kept_only_where_nothing_contradicts(present: dict[str, dict[str, Any]]) -> None:
    assert {name: present[name]["behind_sla"] for name in ODD if not name.startswith("few")} == {
        "below": True,
        "below-by-one": None,
        "below-by-a-record": True,
        "seen-by-one": None,
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


def test_a_snapshot_that_already_saw_the_unread_record_proves_it_late(present: dict[str, dict[str, Any]]) -> None:
    assert {name: present[f"CON-02 {name}"]["status"] for name in ("ahead", "seen", "seen-by-one", "hole", "young")} == {
        "ahead": "fail",
        "seen": "fail",
        "seen-by-one": "not_assessed",
        "hole": "pass",
        "young": "pass",
    }


def test_a_record_that_its_writer_made_unreadable_keeps_no_sla(present: dict[str, dict[str, Any]]) -> None:
    assert {name: (present[name]["hidden_record"], present[f"CON-02 {name}"]["status"]) for name in UNREAD} == {
        "large": ("large-0 (RECORD_BATCH_TOO_LARGE)", "not_assessed"),
        "large-late": (None, "fail"),
        "refused": (None, "pass"),
    }
    assert "is not known on large-0 (RECORD_BATCH_TOO_LARGE)" in present["CON-02 large"]["reason"]


@pytest.mark.parametrize("name", ["future", "future-old"])
def test_a_record_stamped_in_the_future_keeps_no_sla(name: str, present: dict[str, dict[str, Any]]) -> None:
    assert present[f"CON-02 {name}"]["status"] == "not_assessed", present[f"CON-02 {name}"]["observed"]
    assert f"{name}-0 (its timestamp lies in the future)" in present[f"CON-02 {name}"]["reason"]


@pytest.mark.parametrize("code", ["CON-01", "CON-02"])
def test_five_samples_of_which_half_of_the_runs_were_lost_in_between_are_enough_to_judge(
    code: str, present: dict[str, dict[str, Any]]
) -> None:
    finding = present[f"{code} bad-once"]
    assert finding["status"] == "pass", finding["reason"] or finding["observed"]


def test_markers_are_no_lag_and_a_commit_beyond_the_end_is_no_lag_of_zero(present: dict[str, dict[str, Any]]) -> None:
    figures = ("lag_known", "lag_least", "unknown_partitions", "beyond_partitions")
    assert {name: tuple(present[name][figure] for figure in figures) for name in ODD if name.startswith("few")} == {
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
def test_a_commit_that_proves_nothing_is_not_assessed(
    case: str, status: str, reason: str | None, present: dict[str, dict[str, Any]]
) -> None:
    assert present[case]["status"] == status
    assert (reason or "") in (present[case]["reason"] or "")


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
    group: str, records: str, figures: tuple[Any, ...], present: dict[str, dict[str, Any]]
) -> None:
    row, finding = present[f"open-{group}"], present[f"CON-01 open-{group}"]
    assert (row["lag_known"], row["lag_least"], row["lag_held"], row["isolation"]) == figures
    assert finding["status"] == records, finding["reason"] or finding["observed"]
    assert "50000 records are held back by open transactions (TXN-01)" in finding["observed"]
    if records == "not_assessed":
        assert "isolation.level" in finding["reason"]


def test_the_seconds_before_an_open_transaction_are_those_of_the_declared_isolation_level(present: dict[str, dict[str, Any]]) -> None:
    assert {group: present[f"CON-02 open-{group}"]["status"] for group in OPEN} == {
        "undeclared": "not_assessed",
        "committed": "pass",
        "uncommitted": "fail",
        "both": "not_assessed",
        "far-behind": "fail",
        "committed-and-far": "fail",
    }
    assert "isolation.level" in present["CON-02 open-undeclared"]["reason"]


def test_the_samples_of_a_window_say_of_an_open_transaction_what_the_snapshot_says(present: dict[str, dict[str, Any]]) -> None:
    newest = {group: tuple(present[f"open-{group}"][f"recent_time_{name}"] for name in ("known", "outside")) for group in OPEN}
    assert newest == {
        "undeclared": (0, 0),
        "committed": (2, 0),
        "uncommitted": (2, 2),
        "both": (0, 0),
        "far-behind": (2, 2),
        "committed-and-far": (2, 2),
    }


@pytest.fixture(scope="module")
def evidence(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evidence]:
    root = tmp_path_factory.mktemp("history")
    write_samples(root)
    # A run that was repeated counts for nothing.
    cluster_at(READ_AT, lag=700).write(root, READ_AT - timedelta(minutes=30), OFFSETS)
    snapshot = now(root)
    yield Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return load_policy(policy_folder(tmp_path_factory.mktemp("policy")))


@pytest.fixture(scope="module")
def sla_rows(evidence: Evidence, policy: Policy) -> DataFrame:
    return evidence.tables.shorten(wide_rows("group_sla", evidence, policy))


@pytest.fixture(scope="module")
def judged(sla_rows: DataFrame, policy: Policy) -> dict[str, dict[str, Any]]:
    """Resource -> row, and "code resource" -> finding."""
    rows = {row["resource"]: row.asDict(recursive=True) for row in sla_rows.collect()}
    return rows | findings_of(sla_rows, policy, "CON-01", "CON-02", "CON-14")


def test_the_error_budget_is_that_of_the_window_without_quiet_hours(judged: dict[str, dict[str, Any]]) -> None:
    row = judged["night"]
    assert (row["minutes_in"], row["minutes_out"], row["minutes_quiet"], row["minutes_not_assessed"]) == (1440, 180, 480, 780)
    assert row["availability_percent"] == pytest.approx(100 * 1440 / 1620)
    assert row["budget_allowed_minutes"] == pytest.approx(24)
    assert (row["budget_used_minutes"], row["budget_left_minutes"]) == (180, pytest.approx(-156))
    assert row["worst_lag"] == 500


DAYS_30, DAY = 2_592_000_000, 86_400_000
# Length of the window, time inside, outside and in quiet hours, all in milliseconds, the target, and the verdict of CON-14.
EXACT: dict[str, tuple[int, int, int, int, float, str]] = {
    "just-kept": (DAYS_30, DAYS_30 - 2_592_000, 2_592_000, 0, 99.9, "pass"),
    "just-broken": (DAYS_30, DAYS_30 - 2_592_001, 2_592_001, 0, 99.9, "fail"),
    "kept-by-half": (DAYS_30, DAYS_30 - 1_296_000, 1_296_000, 0, 99.95, "pass"),
    "broken-by-half": (DAYS_30, DAYS_30 - 1_296_001, 1_296_001, 0, 99.95, "fail"),
    "kept-of-what-is-known": (DAYS_30, 2_497_500_000, 2_500_000, 0, 99.9, "pass"),
    "broken-of-what-is-known": (DAYS_30, 2_497_499_999, 2_500_001, 0, 99.9, "fail"),
    "known-just-enough": (DAY, 82_080_000, 0, 0, 99, "pass"),
    # 1367.5 minutes are no 1368.
    "known-not-enough": (DAY, 82_050_000, 0, 0, 99, "not_assessed"),
    "known-enough-without-quiet-hours": (DAY, 77_995_000, 0, 4_300_000, 99, "pass"),
    "all-quiet": (DAY, 0, 0, DAY, 99, "not_assessed"),
}


def test_a_promise_is_compared_to_the_millisecond(spark: SparkSession) -> None:
    times = ("length_ms", "in_ms", "out_ms", "quiet_ms")
    counts = ("samples", "samples_outside", *(f"recent_{kind}_{of}" for kind in ("lag", "time") for of in ("known", "outside")))
    given = [
        {"resource": name, **dict(zip(times, case, strict=False)), **dict.fromkeys(counts, 2), "policy": {"target_percent": float(case[4])}}
        for name, case in EXACT.items()
    ]
    ddl = ", ".join([SUBJECTS["group_sla"].ddl, *(f"{name} bigint" for name in times), "parameters struct<min_known_percent:double>"])
    rows = with_minutes(rows_of(spark, [{**one, "parameters": {"min_known_percent": 95.0}} for one in given], ddl))
    control = [one for one in load_catalogue().of_subject("group_sla") if one.code == "CON-14"]
    found = {row["resource"]: row["status"] for row in judge(rows, control).collect()}
    assert found == {name: case[5] for name, case in EXACT.items()}


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


def test_a_series_has_few_buckets_and_says_what_is_not_known(evidence: Evidence, policy: Policy, sla_rows: DataFrame) -> None:
    worst = worst_groups(sla_rows, wide_rows("group_partition", evidence, policy))
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
}
AGED_SLAS = """
version: 1
groups:
  - {pattern: "*", name: three, max_lag_records: 1000, max_lag_seconds: 60, breach: {samples: 3, of: 5}}
"""


@pytest.fixture(scope="module")
def aged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """ "code group" -> finding, from offsets snapshots that are planned five minutes apart."""
    policy, found = policy_of(tmp_path_factory.mktemp("policy"), AGED_SLAS), {}
    for minutes, groups in AGED.values():
        root = tmp_path_factory.mktemp("root")
        for number, before in enumerate(minutes):
            one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
            for group, lags in groups.items():
                add_sample(one, group, lags[number], before)
            snapshot = one.write(root, READ_AT - timedelta(minutes=before), OFFSETS if before else SNAPSHOT)
        evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
        with evidence.tables.settings():
            found |= findings_of(wide_rows("group_sla", evidence, policy), policy, "CON-01", "CON-02")
    return found


@pytest.mark.parametrize("code", ["CON-01", "CON-02"])
@pytest.mark.parametrize(
    ("group", "status"),
    [
        ("good-long-ago", "not_assessed"),
        ("bad-long-ago", "pass"),
        ("bad-now", "fail"),
        ("bad-again", "pass"),
    ],
)
def test_a_breach_counts_samples_of_this_time_only(code: str, group: str, status: str, aged: dict[str, dict[str, Any]]) -> None:
    finding = aged[f"{code} {group}"]
    assert finding["status"] == status, finding["reason"] or finding["observed"]
    if status == "not_assessed":
        assert "1 of 5 samples" in finding["reason"]
        assert "that are at most 3750 s old" in finding["reason"]
