"""Lag, loss and statuses on real brokers equal independent counts: those of Kafka's own tools and of a consumer that counts records."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from lag_cluster import lag_cluster
from lag_counts import Counts, count
from lag_scenarios import LEFT_AT, STAYS_AT, Story

from kafka_audit.cli.demo import POLICIES
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.sealed import Sealed

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

MAX_LAG_SECONDS = 720
GROUPS = sorted({*STAYS_AT, *LEFT_AT, "uncommitted", "leaving"} - {"orphaned"})
STATUSES = {
    "recovering": "OK",
    "falling": "GROWING",
    "slow": "SLOW",
    "stalled": "STALLED",
    "stopped": "STOPPED",
    "losing": "LOSING",
    "overtaken": "LOST",
    "drained": "LOST",
    "expired": "LOST",
    "truncated": "LOST",
    "reborn": "LOST",
    "recreated": "STOPPED",
    "rewound": "REWOUND",
    "orphaned": "ORPHAN",
    "uncommitted": "NO_COMMIT",
    "hanging": "OK",
    "marked": "OK",
    "quiet": "OK",
    "aborted": "OK",
}


@dataclass(frozen=True)
class Truth:
    """The story, what is counted by hand at its end, and what the audit says: rows and findings of lag_verdicts.Verdicts."""

    story: Story
    counts: Counts
    said: Any

    def row(self, group: str, topic: str | None = None) -> dict[str, Any]:
        return self.said.end[f"{group}:{topic or group}-0"]


def _policy(folder: Path) -> Path:
    """The healthy sandbox's policy with SLAs in seconds, and with a limit for open transactions that 25 records are above."""
    tiers = yaml.safe_load((POLICIES / "healthy" / "tiers.yaml").read_text())
    tiers["tiers"]["no_loss"]["parameters"]["TXN-02"] = {"max_records_behind_stable": 20}
    # All that is in `marked`, the marker included, is older than its limit when the story ends.
    limits = {"marked": 5, "*": MAX_LAG_SECONDS}
    slas = {"version": 1, "groups": [{"pattern": glob, "name": glob, "max_lag_seconds": limit} for glob, limit in limits.items()]}
    folder.mkdir()
    (folder / "tiers.yaml").write_text(yaml.safe_dump(tiers, sort_keys=False))
    (folder / "slas.yaml").write_text(yaml.safe_dump(slas))
    return folder


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Truth]:
    from lag_verdicts import verdicts

    root = tmp_path_factory.mktemp("lag-truth")
    policy = load_policy(_policy(root / "policy"))
    with lag_cluster(root / "sandbox") as cluster, closing(Story(cluster, root, policy)) as story:
        story.run()
        counts = count(cluster.bootstrap, GROUPS, orphan="orphaned", held_back="hanging", aborted="aborted")
    yield Truth(story=story, counts=counts, said=verdicts(story))


def dataset(snapshot: Snapshot, name: str) -> list[dict[str, Any]]:
    return pq.read_table(snapshot.dataset(name)).to_pylist()


def test_every_row_has_the_figures_of_kafkas_own_describe(truth: Truth) -> None:
    printed = {(group, topic): (row.committed, row.end, row.lag) for (group, topic), row in truth.counts.described.items()}
    ours = {
        (row["group_id"], row["topic"]): (
            row["committed"],
            row["log_end"],
            # Kafka's LAG takes what is deleted for unread, and is negative where the commit is beyond the end.
            None if row["lag"] is None else row["lag"] + row["lost"] - row["beyond_end"],
        )
        for row in truth.said.end.values()
        if row["group_id"] != "orphaned"
    }
    assert ours == printed
    assert len(ours) == len(GROUPS) + 1


def test_who_has_a_partition_is_whom_kafkas_own_describe_names(truth: Truth) -> None:
    named = {place for place, row in truth.counts.described.items() if row.consumer_id}
    assert {(row["group_id"], row["topic"]) for row in truth.said.end.values() if row["assigned"]} == named
    assert {group for group, _ in named} == {*STAYS_AT, "uncommitted", "leaving"} - {"stopped"}


def test_logs_start_and_end_where_kafkas_own_tool_says(truth: Truth) -> None:
    offsets = {row["topic"]: row for row in dataset(truth.story.end, "offsets") if not row["topic"].startswith("__")}
    assert {topic: row["log_start"] for topic, row in offsets.items()} == truth.counts.starts
    assert {topic: row["log_end"] for topic, row in offsets.items()} == truth.counts.ends


def test_lag_is_the_number_of_records_that_a_consumer_still_gets(truth: Truth) -> None:
    within = {name: row for name, row in truth.said.end.items() if row["has_commit"] and row["topic_exists"] and not row["beyond_end"]}
    lags = {name: 0 if row["only_markers_unread"] else row["lag"] for name, row in within.items()}
    assert lags == {name: len(truth.counts.unread(row["group_id"], row["topic"])) for name, row in within.items()}
    assert sum(lags.values()) > 1000


@pytest.mark.parametrize("group", STATUSES)
def test_each_group_has_the_status_that_its_story_gives_it(truth: Truth, group: str) -> None:
    row = truth.row(group)
    assert row["status"] == STATUSES[group], row["status_reason"]


def test_a_group_that_falls_behind_grows_and_is_well_again_once_it_caught_up(truth: Truth) -> None:
    before, after = truth.said.middle["recovering:recovering-0"], truth.row("recovering")
    assert (before["status"], before["lag"]) == ("GROWING", 45)
    assert (after["status"], after["lag"]) == ("OK", 0)


@pytest.mark.parametrize(("group", "lost", "remaining"), [("overtaken", 30, 30), ("drained", 60, 0), ("expired", 18, 20)])
def test_what_was_deleted_unread_is_counted_apart_from_what_remains(truth: Truth, group: str, lost: int, remaining: int) -> None:
    row = truth.row(group)
    assert (row["lost"], row["lag"], row["margin"]) == (lost, remaining, -lost)
    assert truth.counts.starts[group] - LEFT_AT[group] == lost
    assert len(truth.counts.records[group]) == remaining
    assert truth.said.findings["CON-03", row["resource"]]["status"] == "fail"


def test_an_unclean_election_truncates_by_as_many_records_as_a_consumer_misses(truth: Truth) -> None:
    row, missing = truth.row("truncated"), 100 - len(truth.counts.records["truncated"])
    assert missing == 60
    assert (row["truncated"], row["beyond_end"], row["lost"], row["recreated"]) == (missing, missing, 0, False)
    assert truth.said.failing("CON-04") == {"truncated:truncated-0", "reborn:reborn-0"}
    assert "truncated-0" in truth.said.failing("REP-07")


def test_a_recreated_topic_is_a_new_log_and_its_offsets_are_no_rewind(truth: Truth) -> None:
    ids = {row["topic"]: row["topic_id"] for row in dataset(truth.story.end, "topics")}
    for topic in ("recreated", "reborn"):
        assert truth.row(topic)["recreated"] is True
        assert ids[topic] != truth.story.first_ids[topic]
        assert (truth.row(topic)["truncated"], truth.row(topic)["rewinds"], truth.row(topic)["lost"]) == (0, 0, 0)
    # The coordinator of the first was told of the deletion, that of the second was dead: Kafka kept its old offset.
    assert (truth.row("recreated")["committed"], truth.row("recreated")["lag"]) == (10, 5)
    assert (truth.row("reborn")["committed"], truth.row("reborn")["beyond_end"]) == (40, 30)
    assert {name for name, row in truth.said.end.items() if row["recreated"]} == {"recreated:recreated-0", "reborn:reborn-0"}
    assert truth.said.failing("TOP-14") >= {"recreated", "reborn"}


def test_offsets_on_a_deleted_topic_are_shown_where_kafkas_own_tool_gives_up(truth: Truth) -> None:
    row = truth.row("orphaned")
    assert (row["committed"], row["lag"], row["lost"], row["topic_exists"]) == (30, None, None, False)
    assert "UnknownTopicOrPartitionException" in truth.counts.refusal


def test_an_open_transaction_holds_readers_back_at_the_last_stable_offset(truth: Truth) -> None:
    row = truth.row("hanging")
    assert (row["committed"], row["last_stable"], row["log_end"], row["lag"]) == (40, 40, 65, 25)
    assert truth.counts.visible == row["last_stable"]
    assert truth.said.failing("TXN-02") == {"hanging-0"}
    assert truth.said.findings["TXN-01", "hanging-0"]["status"] == "pass"  # its coordinator knows it, and will end it


def test_an_offset_before_a_transactions_marker_is_caught_up(truth: Truth) -> None:
    row = truth.row("marked")
    assert (row["lag"], row["only_markers_unread"], row["lag_ms"]) == (1, True, 0)
    assert truth.counts.unread("marked", "marked") == []
    (demanded,) = [row for row in dataset(truth.story.end, "sla_offsets") if row["topic"] == "marked"]
    assert (demanded["offset"], row["behind_sla"]) == (21, False)  # no record is late, only the marker lies before that offset


def test_records_of_an_aborted_transaction_at_the_end_are_neither_unread_nor_at_risk(truth: Truth) -> None:
    row = truth.row("aborted")
    assert (row["committed"], row["last_stable"], row["log_end"], row["lag"]) == (20, 51, 51, 31)
    assert (row["only_markers_unread"], row["lag_ms"], row["behind_sla"]) == (True, 0, False)
    assert {truth.said.findings[code, row["resource"]]["status"] for code in ("CON-06", "TOP-05")} == {"pass"}


def test_a_stable_group_that_left_a_topic_is_judged_by_the_topics_it_reads(truth: Truth) -> None:
    assert (truth.row("leaving", "left")["status"], truth.row("leaving", "left")["lag"]) == ("ABANDONED", 5)
    assert truth.row("leaving", "kept")["status"] == "OK"


def test_a_rewind_names_both_offsets(truth: Truth) -> None:
    row = truth.row("rewound")
    assert (row["committed_before"], row["committed"], row["rewinds"]) == (50, 10, 1)
    assert truth.said.failing("CON-05") == {row["resource"]}


def test_the_time_to_loss_is_the_margin_at_the_paces_of_log_start_and_commits(truth: Truth) -> None:
    row, story = truth.row("losing"), truth.story
    assert row["margin"] == row["committed"] - truth.counts.starts["losing"] == 80
    # The log start is measured over the whole story, the commits over the window; a step takes as long as the machine needs.
    (then,) = [one for one in story.steps if story.end.taken_ms - one.taken_ms == row["status_window_ms"]]
    (before,) = [each["committed"] for each in dataset(then, "committed_offsets") if each["group_id"] == "losing"]
    deleted_per_ms = story.deleted / (story.end.taken_ms - story.steps[0].taken_ms)
    read_per_ms = (row["committed"] - before) / row["status_window_ms"]
    assert row["time_to_loss_ms"] == pytest.approx(80 / (deleted_per_ms - read_per_ms), rel=0.02)
    assert (story.deleted, row["committed"] - before) == (480, 40)


def test_the_time_to_loss_is_what_retention_leaves_to_the_first_record_that_waits(truth: Truth) -> None:
    row = truth.row("expired")
    assert (row["time_to_loss_by"], row["time_to_loss_ms"]) == ("retention.ms", row["retention_ms"] - row["lag_ms"])
    assert row["retention_ms"] == 3_600_000


def test_lag_in_time_is_the_age_of_the_first_record_that_waits(truth: Truth) -> None:
    read_at = {(row["topic"], row["offset"]): row["read_at"] for row in dataset(truth.story.end, "first_unread")}
    for group in ("falling", "slow", "stalled", "stopped", "losing", "overtaken", "expired", "rewound"):
        row, (offset, timestamp) = truth.row(group), truth.counts.unread(group, group)[0]
        now = read_at[group, offset].timestamp() * 1000
        assert (row["lag_ms_method"], row["lag_ms"]) == ("record timestamp", pytest.approx(now - timestamp, abs=1)), group


def test_the_offset_that_an_sla_in_seconds_demands_is_that_of_the_first_record_young_enough(truth: Truth) -> None:
    demanded = [row for row in dataset(truth.story.end, "sla_offsets") if row["max_lag_seconds"] == MAX_LAG_SECONDS]
    assert {row["topic"] for row in demanded} >= {"falling", "slow", "stalled", "losing"}
    # Of the aborted records only the end of their transaction is young, which brokers name, too, and no consumer is given.
    for row in (row for row in demanded if row["topic"] != "aborted"):
        young = [offset for offset, timestamp in truth.counts.records[row["topic"]] if timestamp >= row["timestamp_ms"]]
        assert row["offset"] == min(young, default=truth.counts.ends[row["topic"]]), row["topic"]
    late = {row["group_id"] for row in truth.said.end.values() if row["behind_sla"]}
    assert {"falling", "slow", "stalled", "losing"} <= late
    assert late.isdisjoint({"recovering", "quiet", "marked", "aborted"})


def test_while_the_coordinator_is_dead_each_group_is_named_as_not_read_and_no_figure_is_wrong(truth: Truth) -> None:
    snapshot = truth.story.without_coordinator
    Sealed.verified(snapshot.path)
    listed = {row["group_id"] for row in dataset(snapshot, "groups")}
    refused = {row["group_id"] for row in dataset(snapshot, "errors") if row["dataset"] == "committed_offsets"}
    shown = {row["group_id"] for row in dataset(snapshot, "committed_offsets") if row["error"] is None}
    assert listed == {*STAYS_AT, *LEFT_AT, "uncommitted", "leaving"}
    assert refused | shown == listed
    assert not refused & shown


def test_a_snapshot_is_complete_although_the_coordinator_moves_meanwhile(truth: Truth) -> None:
    snapshot = truth.story.with_moving_coordinator
    assert dataset(snapshot, "errors") == []
    committed = {row["group_id"]: row["committed"] for row in dataset(snapshot, "committed_offsets") if row["topic"] != "left"}
    last = {row["group_id"]: row["committed"] for row in truth.said.end.values() if row["topic"] != "left"}
    moving = {"recovering", "falling", "slow", "losing"}
    assert {group: offset for group, offset in committed.items() if group not in moving} == {
        group: offset for group, offset in last.items() if group not in moving
    }
    assert {group: last[group] - committed[group] for group in moving} == {"recovering": 20, "falling": 5, "slow": 20, "losing": 20}


def test_a_partition_without_a_leader_is_not_read_and_every_other_one_is(truth: Truth) -> None:
    snapshot = truth.story.without_leader
    unread = {row["topic"]: (row["log_end"], row["error"]) for row in dataset(snapshot, "offsets") if row["log_end"] is None}
    assert unread == {"truncated": (None, "LEADER_NOT_AVAILABLE")}
    assert {row["committed"] for row in dataset(snapshot, "committed_offsets") if row["topic"] == "truncated"} == {100}
