"""The commit history of real brokers, compared with Kafka's own formatters; killed runs, gaps and aborted transactions."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commit_history_job import OFFSETS, ended, job, milliseconds, run, stopped_at, table
from confluent_kafka import KafkaException, Producer
from kafka.admin import NewPartitions
from lag_clients import wait_for
from offsets_cluster import CONSUMER_RECORDS, SHARE_RECORDS, STREAMS_RECORDS, Cluster

from kafka_audit.sandbox import brokers, lifecycle

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

QUICK = ("log.retention.check.interval.ms", "log.initial.task.delay.ms", "log.cleaner.backoff.ms", "offsets.retention.check.interval.ms")
"""Intervals of 5 minutes, 30 and 15 seconds and 10 minutes otherwise."""


@pytest.fixture(scope="module")
def cluster(job_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        for name in QUICK:
            patch.setitem(brokers._SMALL, name, "500")
        patch.setitem(brokers._SMALL, "share.coordinator.state.topic.num.partitions", "1")
        sandbox = lifecycle.start("none", directory=tmp_path_factory.mktemp("sandbox"))
    with sandbox:
        made = Cluster(sandbox.bootstrap)
        yield made
        made.admin.close()


def fingerprint(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)


@pytest.fixture(scope="module")
def history(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    before, cluster.before_history = cluster.ends(), cluster.written()
    summary = run(cluster.bootstrap, folder)
    assert cluster.ends() == before, "reading must write nothing into the topic"
    assert summary["totals"]["expected"] == sum(before.values())
    assert (summary["totals"]["skipped"], summary["totals"]["lost"], summary["held_back"]) == (4, 0, 0)  # 3 markers and 1 aborted commit
    return folder


def test_offset_commits_equal_kafkas_own_formatter(cluster: Cluster, history: Path) -> None:
    theirs: Counter[tuple[Any, ...]] = Counter()
    for one in cluster.formatted("OffsetsMessageFormatter"):
        key, value = one["key"]["data"], one["value"]
        data = value["data"] if value else {}
        fields = (data.get(name) for name in ("offset", "leaderEpoch", "metadata", "commitTimestamp", "topicId"))
        theirs[(key["group"], key["topic"], key["partition"], value["version"] if value else None, *fields)] += 1
    ours: Counter[tuple[Any, ...]] = Counter()
    for row in table(history, "offset_commits"):
        committed_at = milliseconds(row, "commit_time")
        place = row["group_id"], row["topic"], row["partition"], row["version"]
        ours[(*place, row["committed"], row["leader_epoch"], row["metadata"], committed_at, row["topic_id"])] += 1
    assert ours == theirs
    assert {row["committed"] for row in table(history, "offset_commits") if row["group_id"] == "transactional"} == {100, 300}


def test_group_metadata_equals_kafkas_own_formatter(cluster: Cluster, history: Path) -> None:
    theirs = Counter()
    for one in cluster.formatted("GroupMetadataMessageFormatter"):
        if one["key"]["type"] == 2:
            data = one["value"]["data"] if one["value"] else None
            members = [(m["memberId"], m["clientId"], m["sessionTimeout"], m["rebalanceTimeout"]) for m in data["members"]] if data else []
            state = data and (data["generation"], data["protocol"], data["currentStateTimestamp"])
            theirs[(one["key"]["data"]["group"], state, *members)] += 1
    ours = Counter()
    for row in table(history, "group_records"):
        if row["record_type"] == 2:
            data = row["group_metadata"]
            members = (
                [(m["member_id"], m["client_id"], m["session_timeout_ms"], m["rebalance_timeout_ms"]) for m in data["members"]]
                if data
                else []
            )
            ours[(row["group_id"], data and (data["generation"], data["protocol"], data["state_ms"]), *members)] += 1
    assert ours == theirs
    assert {"consumer_group_metadata", "consumer_group_member_metadata"} <= {row["record_name"] for row in table(history, "group_records")}
    assert table(history, "undecoded") == []


def test_records_of_groups_of_every_kind_are_decoded_as_many_as_a_plain_consumer_reads(cluster: Cluster, history: Path) -> None:
    rows = [*table(history, "group_records"), *({**row, "record_type": 1} for row in table(history, "offset_commits"))]
    found = Counter((row["group_id"], row["record_type"], row["tombstone"]) for row in rows)
    assert found == cluster.before_history
    assert {kind for _, kind, _ in found} >= {1, 2, *CONSUMER_RECORDS, 16, *SHARE_RECORDS, *STREAMS_RECORDS}
    assert {kind for _, kind, tombstone in found if tombstone} >= {1, 2, 5, 7, 8, 10, 13, 14, *STREAMS_RECORDS}


def test_what_members_of_share_and_streams_groups_said_is_in_the_table(cluster: Cluster, history: Path) -> None:
    said: dict[tuple[str, str], dict[str, Any]] = {}
    for row in sorted(table(history, "group_records"), key=lambda row: row["log_offset"]):
        if not row["tombstone"]:
            said[row["group_id"], row["record_name"]] = row[row["record_name"]]
    share = said["share", "share_group_member_metadata"]
    assert (share["client_id"], share["subscribed_topics"]) == ("by hand", ["orders"])
    state = said["share", "share_group_state_partition_metadata"]
    (topic,) = [*state["initializing"], *state["initialized"]]
    assert (topic["topic"], topic["partitions"]) == ("orders", list(range(300)))
    (subtopology,) = said["streams", "streams_group_topology"]["subtopologies"]
    assert (subtopology["subtopology"], subtopology["source_topics"]) == ("0", ["orders"])
    assert said["streams", "streams_group_member_metadata"]["process_id"] == "process"
    (tasks,) = said["streams", "streams_group_current_member_assignment"]["active_tasks"]
    assert sorted(tasks["partitions"]) == list(range(300))
    assert said["by-expression", "consumer_group_member_metadata"]["subscribed_regex"] == "(^ord.*)"  # as librdkafka sends it
    assert said["by-expression", "consumer_group_regular_expression"]["topics"] == ["orders"]


def test_a_commit_with_an_expiry_of_its_own_and_its_tombstone_are_there(history: Path) -> None:
    first, tombstone = (row for row in table(history, "offset_commits") if row["group_id"] == "expiring")
    assert (first["version"], first["committed"], milliseconds(first, "expire_time")) == (1, 5, milliseconds(first, "commit_time") + 1000)
    assert (tombstone["tombstone"], tombstone["expire_time"]) == (True, None)


# In the order in which a run comes to them: the first batch stored, decoded, and the same for the other topic.
POINTS = ("source.json", "raw/[!.]*/manifest.json", "decoded/[!.]*/manifest.json", "transactions/raw/[!.]*/manifest.json")


def kill_at(point: str, cluster: Cluster, history: Path, log: Path) -> None:
    """Run the job until ``point`` is there, and kill it with all of its processes."""
    with log.open("wb") as output:
        command = job(cluster.bootstrap, history, "--most-offsets", "1000")
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            deadline = time.monotonic() + 300
            while not list(history.glob(point)):
                assert process.poll() is None and time.monotonic() < deadline, f"it ended before {point}: {log.read_text()[-2000:]}"
                time.sleep(0.005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_job_killed_at_any_point_gives_the_same_tables_when_it_runs_again(cluster: Cluster, tmp_path: Path) -> None:
    for offset in range(10):
        cluster.commit("by-admin", range(300), offset)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for point, later in zip(POINTS, (*POINTS[1:], "last_run.json"), strict=True):
        stopped_at(point, cluster.bootstrap, killed, "--most-offsets", "1000")
        assert not list(killed.glob(later)), "it got further than it should"
    run(cluster.bootstrap, killed, "--most-offsets", "1000")
    run(cluster.bootstrap, whole)
    assert len(list(killed.glob("raw/*"))) > 2 and not [*killed.glob("[rd]*/.*"), *killed.glob("transactions/[rd]*/.*")]
    for topic, names in (("", ("records", "offset_commits", "group_records")), ("transactions", ("records", "transactions"))):
        for name in names:
            assert fingerprint(table(killed / topic, name)) == fingerprint(table(whole / topic, name))
    assert len(table(killed, "offset_commits")) >= 3000
    assert len(table(killed / "transactions", "transactions")) >= 10


def test_of_a_compacted_log_what_is_left_is_read_and_the_rest_told(cluster: Cluster, tmp_path: Path) -> None:
    cluster.configure({"min.cleanable.dirty.ratio": "0.01", "segment.ms": "1", "cleanup.policy": "compact"})
    before = sum(cluster.written().values())
    try:
        cluster.commit("by-admin", range(300), 20)  # the brokers begin new segments
        wait_for("the brokers have compacted", lambda: sum(cluster.written().values()) < before - 2000)
    finally:
        cluster.configure({"cleanup.policy": "compact"})
    expected = sum(cluster.ends().values()) - sum(cluster.starts().values())
    totals = run(cluster.bootstrap, tmp_path / "history")["totals"]
    assert totals == {"expected": expected, "rows": sum(cluster.written().values()), "lost": 0, "skipped": expected - totals["rows"]}
    assert totals["skipped"] > 2000
    newest = {(row["group_id"], row["topic"], row["partition"]): row for row in table(tmp_path / "history", "offset_commits")}
    assert {row["committed"] for (group, *_), row in newest.items() if group == "by-admin"} == {20}
    (manifest,) = (tmp_path / "history").glob("behaviour/*/manifest.json")
    told = json.loads(manifest.read_text())
    holes = [one for one in told["readings"] if one["complete_since"] == told["end"]]
    assert holes and not any(one["lost_until"] for one in told["readings"]), "compaction makes holes, and loses no newest record"


def test_records_deleted_between_two_runs_are_a_gap_that_is_told_even_if_the_run_that_finds_it_is_killed(
    cluster: Cluster, history: Path, tmp_path: Path
) -> None:
    run(cluster.bootstrap, history)
    read = cluster.ends()
    cluster.commit("by-admin", range(40), 1)
    ((partition, end),) = ((p, end) for p, end in cluster.ends().items() if end != read[p])
    cluster.configure({"cleanup.policy": "delete", "retention.ms": "1"})
    wait_for("the broker has deleted the records", lambda: cluster.starts()[partition] >= end)
    cluster.configure({"cleanup.policy": "compact"})

    def kept() -> bool:  # the partition's leader learns of it later than we do, and looks twice a second
        cluster.commit("by-admin", range(10), 2)
        time.sleep(1.5)
        return cluster.starts()[partition] < cluster.ends()[partition]

    wait_for("the broker keeps records again", kept)
    start, end = cluster.starts()[partition], cluster.ends()[partition]
    lost, rows = start - read[partition], end - start
    assert lost >= 40 and rows >= 10
    newest = max(path.name for path in history.glob("raw/[!.]*"))
    kill_at(f"raw/{int(newest) + 1:08d}/manifest.json", cluster, history, tmp_path / "log")
    summary = run(cluster.bootstrap, history)
    assert summary["totals"] == {"expected": lost + rows, "lost": lost, "skipped": 0, "rows": rows}
    assert summary["coverage"] == rows / (lost + rows)
    newest = max(history.glob("raw/*/completeness.parquet"), key=lambda path: path.parent.name)
    assert [(row["partition"], row["start"], row["lost"]) for row in pq.read_table(newest).to_pylist()] == [
        (partition, read[partition], lost)
    ]


def refused(bootstrap: str, history: Path) -> str:
    """What a run says that ends with exit code 5."""
    code, said = ended(bootstrap, history)
    assert code == 5, said[-3000:]
    return said.splitlines()[-1]


def test_a_damaged_table_is_refused_after_everything_new_was_read_and_told(cluster: Cluster, history: Path) -> None:
    damaged = min(history.glob("decoded/[!.]*"))
    part = next(damaged.glob("offset_commits.parquet/*.parquet"))
    part.write_bytes(part.read_bytes() + b"\0")
    cluster.transactions()
    assert f"kafka-audit: {damaged}" in refused(cluster.bootstrap, history)
    told = json.loads((history / "last_run.json").read_text())
    assert told["totals"]["rows"] > 0 and told["transactions"]["totals"]["rows"] > 0
    shutil.rmtree(damaged)  # as the message says


def sent(producer: Producer, partition: int, key: bytes, value: bytes) -> bool:
    errors = []
    try:
        producer.produce(OFFSETS, key=key, value=value, partition=partition, on_delivery=lambda error, _: errors.append(error))
    except KafkaException:
        time.sleep(0.5)
        return False
    assert producer.flush(30) == 0
    # Not errors == [None]: to compare a KafkaError with None leaves a TypeError behind, which the next call raises.
    return errors[0] is None


def test_added_partitions_are_read_and_foreign_records_kept_as_they_are(cluster: Cluster, history: Path) -> None:
    run(cluster.bootstrap, history)
    before = cluster.ends()
    cluster.admin.create_partitions({OFFSETS: NewPartitions(len(before) + 2)})
    records = {
        (len(before), b"user-4711", b"{}"): "unknown record type",
        (len(before) + 1, b"\x00\x01\x00\x05grou", b"\x00\x04"): "the key is truncated or damaged",
        (0, b"\x00\x02\x00\x01g", b"\x00\x09\x00"): "unknown version of the value",
    }
    # Brokers take records for their own topics from a client of this name only. A broker that is asked for metadata may not
    # know of the new partitions yet, and librdkafka asks again after 5 minutes unless it is told to ask more often.
    asked = {"bootstrap.servers": cluster.bootstrap, "client.id": "__admin_client", "topic.metadata.refresh.interval.ms": 500}
    producer = Producer(asked)
    unsent, deadline = list(records), time.monotonic() + 300
    while unsent:
        assert time.monotonic() < deadline, unsent
        unsent = [one for one in unsent if not sent(producer, *one)]
    assert sum(cluster.ends().values()) == sum(before.values()) + 3
    summary = run(cluster.bootstrap, history)
    assert summary["totals"] == {"expected": 3, "lost": 0, "skipped": 0, "rows": 3}
    assert {(row["log_partition"], row["key"], row["value"]): row["problem"] for row in table(history, "undecoded")} == records
