"""Groups over five snapshots an hour apart: lag in time, movement, rewinds and missing groups, as rows and as verdicts."""

from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, Synthetic

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from spark_jobs.engine.evidence import Evidence
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

# (committed, log end) from this snapshot back, one hour apart: each is a topic with one partition and the group that reads it.
SERIES: dict[str, list[tuple[int, int | None]]] = {
    "moving": [(900, 1000), (800, 950), (700, 900)],
    "between": [(925, 1000), (800, 950), (700, 900)],
    "stuck": [(700, 1000), (700, 900), (700, 800)],
    "newly-behind": [(700, 1000), (700, 900), (700, 700)],
    "idle": [(700, 700), (700, 700), (700, 700)],
    "new": [(700, 1000)],
    "rewound": [(100, 1000), (100, 950), (900, 900)],
    "recovered": [(950, 1000), (100, 950), (900, 900)],
    "recreated": [(5, 10), (900, 1000), (900, 1000)],
    "beyond": [(500, 200), (400, 450)],
    "marker": [(999, 1000), (999, 1000), (999, 1000)],
    "perhaps-marker": [(999, 1000), (999, 1000), (999, 1000)],
    "one-record": [(999, 1000), (999, 1000), (999, 1000)],
    "transaction": [(700, 1000), (700, 900), (700, 800)],
    "hole": [(700, 1000), (700, None), (700, 900)],
    "dip": [(0, 800), (0, 400), (0, 199), (0, 200), (0, 100)],
    "zero": [(0, 80_000), (0, 30_000), (0, 10_000), (0, 0)],
    "shrinking": [(700, 1000), (500, 1000), (0, 1000)],
    "left": [(700, 1000), (700, 1000), (700, 1000)],
    "left-just-now": [(700, 1000), (700, 1000), (700, 1000)],
    "by-hand": [(1000, 1000), (1000, 1000), (1000, 1000)],
    "looping": [(1000, 1000)] * 5,
}
STATES = {
    "left": ["Empty", "Empty", "Empty"],
    "left-just-now": ["Empty", "Stable", "Stable"],
    "by-hand": ["Empty", "Empty", "Empty"],
    "looping": ["Stable", "PreparingRebalance", "CompletingRebalance", "Stable", "PreparingRebalance"],
}
JUDGED = ("CON-01", "CON-02", "CON-04", "CON-05", "CON-06", "CON-09", "GRP-02")
POLICY = """
version: 1
groups:
  - {pattern: "*", name: hours, max_lag_records: 350, max_lag_seconds: 5000}
"""


def snapshot(age: int) -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"}, {broker: {"offsets.retention.minutes": "240"} for broker in (1, 2, 3)})
    for name, series in SERIES.items():
        if age >= len(series):
            continue
        committed, end = series[age]
        one.topic(name, topic_id="before" if name == "recreated" and age else "now")
        stable = 700 if name == "transaction" else end
        one.offsets(name, **({"error": "LEADER_NOT_AVAILABLE"} if end is None else {"log_start": 0, "log_end": end, "last_stable": stable}))
        state = STATES.get(name, ["Stable"] * 9)[age]
        one.group(name, state=state, assigned=None if state == "Empty" else [(name, 0)]).commit(name, name, committed)
        if name == "by-hand":
            one.tables["groups"][-1]["protocol_type"] = None
    for name, control in {"marker": True, "one-record": False}.items():
        one.add("last_batches", topic=name, partition=0, base_offset=999, last_offset=999, is_control=control, read_at=READ_AT)
    return one.add("last_batches", topic="perhaps-marker", partition=0, error="TOPIC_AUTHORIZATION_FAILED", read_at=READ_AT)


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Subject -> resource -> row, and "verdicts" -> "code resource" -> finding."""
    root, folder = tmp_path_factory.mktemp("root"), tmp_path_factory.mktemp("policy")
    (folder / "slas.yaml").write_text(POLICY)
    (folder / "tiers.yaml").write_text(
        "version: 1\ndefault_tier: only\ntiers: {only: {replication_factor: 3, min_insync_replicas: 2, retention_ms: -1}}\n"
    )
    for age in (4, 3, 2, 1):
        snapshot(age).write(root, READ_AT - timedelta(hours=age))
    now, policy = snapshot(0).write(root), load_policy(folder)
    evidence = Evidence(spark=spark, snapshot=now, history=read_history(now, 30), small_cluster=True)
    policy_columns, found = PolicyColumns(policy=policy, at=READ_AT), {"verdicts": {}}
    with evidence.tables.settings():
        for subject in ("group", "group_sla", "group_partition"):
            rows = evidence.tables.shorten(wide_rows(subject, evidence, policy))
            found[subject] = {row["resource"]: row.asDict(recursive=True) for row in rows.collect()}
            controls = [one for one in load_catalogue().of_subject(subject) if one.code in JUDGED]
            findings = judge(rows, controls, None, policy_columns).collect()
            found["verdicts"] |= {f"{one['code']} {one['resource']}": one.asDict() for one in findings}
    return found


PARTITIONS: dict[str, dict[str, Any]] = {
    "moving": {"snapshots": 3, "history_ms": 2 * HOUR_MS, "committed_before": 800, "rewinds": 0, "unchanged_ms": 0}
    | {"changed_within_ms": HOUR_MS, "caught_up_within_ms": None, "idle_snapshots": 1, "idle_ms": 0}
    | {"lag_ms": 2 * HOUR_MS, "lag_ms_least": HOUR_MS, "lag_ms_most": 2 * HOUR_MS, "lag_ms_is_bound": False},
    "between": {"lag_ms": 3 * HOUR_MS // 2, "lag_ms_least": HOUR_MS, "lag_ms_most": 2 * HOUR_MS},
    "stuck": {"idle_snapshots": 3, "idle_ms": 2 * HOUR_MS, "unchanged_ms": 2 * HOUR_MS, "changed_within_ms": None}
    | {"lag_ms": 2 * HOUR_MS, "lag_ms_is_bound": True, "lag_ms_least": 2 * HOUR_MS, "lag_ms_most": None},
    "newly-behind": {"idle_snapshots": 2, "idle_ms": HOUR_MS, "unchanged_ms": 2 * HOUR_MS, "caught_up_within_ms": 2 * HOUR_MS},
    "idle": {"idle_snapshots": 0, "idle_ms": 0, "caught_up_within_ms": 0, "lag_ms": 0, "lag_ms_is_bound": False, "lag_ms_most": 0},
    "new": {"snapshots": 1, "history_ms": 0, "committed_before": None, "idle_snapshots": 1, "lag_ms": 0, "lag_ms_is_bound": True},
    "rewound": {"committed_before": 900, "committed_before_at": "2025-03-01 10:00:00Z", "rewinds": 1, "unchanged_ms": HOUR_MS},
    "recovered": {"committed_before": 900, "committed_before_at": None, "rewinds": 1},
    "recreated": {"snapshots": 1, "committed_before": None, "rewinds": 0, "changed_within_ms": None, "lag_ms_is_bound": True, "lag_ms": 0},
    "beyond": {"lag_ms": None, "lag_ms_least": None, "lag_ms_is_bound": None},
    "marker": {"lag": 1, "only_markers_unread": True, "lag_ms": 0, "lag_ms_is_bound": False},
    "perhaps-marker": {"lag": 1, "only_markers_unread": None, "lag_ms": 0, "lag_ms_is_bound": True, "lag_ms_least": 0},
    "one-record": {"lag": 1, "only_markers_unread": False, "lag_ms_least": 2 * HOUR_MS},
    "hole": {"snapshots": 3, "idle_snapshots": 2, "idle_ms": 2 * HOUR_MS},
    "left": {"empty_ms": 2 * HOUR_MS, "empty_within_ms": None, "offsets_retention_ms": 4 * HOUR_MS},
    "left-just-now": {"empty_ms": 0, "empty_within_ms": HOUR_MS, "unchanged_ms": 2 * HOUR_MS},
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_a_partition_over_time(case: str, judged) -> None:
    row = judged["group_partition"][f"{case}:{case}-0"]
    assert {name: row[name] for name in PARTITIONS[case]} == PARTITIONS[case]


def test_the_rebalances_of_a_group_over_time(judged) -> None:
    row = judged["group"]["looping"]
    assert (row["snapshots"], row["snapshots_rebalancing"], row["history_ms"]) == (5, 3, 4 * HOUR_MS)


GROUPS: dict[str, dict[str, Any]] = {
    "zero": {"snapshots": 4, "samples_outside": 3, "lag_ms_gap": HOUR_MS, "lag_ms": 3 * HOUR_MS},
    "new": {"snapshots": 1, "lag_growth": None, "lag_ms_is_bound": True, "lag_ms_unknown": 0},
    "beyond": {"lag_ms": None, "lag_ms_unknown": 1},
}


@pytest.mark.parametrize("case", GROUPS)
def test_the_sla_of_a_group_over_time(case: str, judged) -> None:
    assert {name: judged["group_sla"][case][name] for name in GROUPS[case]} == GROUPS[case]


def test_one_dip_or_one_zero_does_not_hide_that_the_lag_grows(judged) -> None:
    growth = {name: judged["group_sla"][name]["lag_growth"] for name in ("dip", "zero", "idle", "shrinking")}
    assert growth["dip"] == pytest.approx(160.0)
    assert growth["zero"] == pytest.approx(26_000.0)
    assert growth["idle"] == 0
    assert growth["shrinking"] < 0
    assert "grows by about 160 records an hour" in judged["verdicts"]["CON-01 dip"]["observed"]


VERDICTS = {
    "CON-02 between": ("fail", "about 5400 s behind on between-0"),
    "CON-02 stuck": ("fail", "at least 7200 s behind"),
    "CON-02 idle": ("pass", "0 s behind"),
    "CON-02 marker": ("pass", "0 s behind"),
    "CON-02 perhaps-marker": ("not_assessed", "at least 0 s"),
    "CON-02 new": ("not_assessed", "at least 0 s"),
    "CON-02 beyond": ("not_assessed", "an unknown time"),
    "CON-05 moving:moving-0": ("pass", "largest of earlier snapshots 800"),
    "CON-05 rewound:rewound-0": ("fail", "committed 100, largest of earlier snapshots 900: 800 offsets back"),
    "CON-05 recovered:recovered-0": ("pass", "has passed the largest again"),
    "CON-05 recreated:recreated-0": ("not_assessed", "1 snapshots"),
    "CON-06 moving:moving-0": ("pass", "100 unread"),
    "CON-06 stuck:stuck-0": ("fail", "stalled (commits, always the same) or stopped"),
    "CON-06 newly-behind:newly-behind-0": ("pass", "unchanged in 2 snapshots"),
    "CON-06 idle:idle-0": ("pass", "0 unread"),
    "CON-06 new:new-0": ("not_assessed", "unchanged in 1 snapshots"),
    "CON-06 marker:marker-0": ("pass", "the group is caught up"),
    "CON-06 perhaps-marker:perhaps-marker-0": ("not_assessed", "1 unread"),
    "CON-06 one-record:one-record-0": ("fail", "1 unread"),
    "CON-06 transaction:transaction-0": ("not_assessed", "stands before an open transaction (TXN-01)"),
    "CON-06 left:left-0": ("fail", "stopped, the group has no members"),
    "CON-06 beyond:beyond-0": ("not_assessed", "committed 500"),
    "CON-04 beyond:beyond-0": ("fail", "300 beyond the end"),
    "CON-09 left:left-0": ("fail", "no members in all snapshots of 2 h"),
    "CON-09 left-just-now:left-just-now-0": ("pass", "some 1 h ago"),
    "CON-09 by-hand:by-hand-0": ("not_assessed", "0 records unread"),
    "CON-09 moving:moving-0": ("not_applicable", ""),
    "GRP-02 moving": ("pass", "rebalancing in 0 of 3 snapshots"),
    "GRP-02 looping": ("fail", "rebalancing in 3 of 5 snapshots; state Stable"),
    "GRP-02 new": ("not_assessed", "0 of 1 snapshots"),
}


@pytest.mark.parametrize("case", VERDICTS)
def test_a_verdict_over_time(case: str, judged) -> None:
    finding = judged["verdicts"][case]
    status, text = VERDICTS[case]
    assert (finding["status"], text in finding["observed"]) == (status, True), finding["reason"] or finding["observed"]


def test_a_failure_that_rests_on_an_estimate_says_so(judged) -> None:
    classes = {case: judged["verdicts"][case]["evidence_class"] for case in ("CON-02 stuck", "CON-02 between", "CON-09 left:left-0")}
    assert classes == {"CON-02 stuck": "observed", "CON-02 between": "inferred", "CON-09 left:left-0": "inferred"}
