"""Share groups and streams groups on real brokers: their start offsets, members and tasks are read by their own APIs."""

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from group_requests import streams_member
from kafka_tools import KafkaTools
from lag_clients import write

from kafka_audit.cli.lag import take_reading
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.lag.rows import LagRow, lag_rows
from kafka_audit.policy import load_policy
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import SNAPSHOT

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def cluster(coordinators: Sandbox) -> Sandbox:
    """Thirty records, of which a share group has acknowledged ten; and the topic of a streams group."""
    tools = KafkaTools(coordinators.bootstrap)
    tools.run_all(
        "kafka-topics --create --topic jobs --partitions 1 --replication-factor 3",
        "kafka-topics --create --topic parcels --partitions 3 --replication-factor 3",
        "kafka-configs --alter --entity-type groups --entity-name queue --add-config share.auto.offset.reset=earliest",
    )
    write(coordinators.bootstrap, {"jobs": 30}, int(now().timestamp() * 1000))  # younger than the topic's retention
    tools.run("kafka-console-share-consumer --topic jobs --group queue --max-messages 10 --timeout-ms 60000")
    return coordinators


def settings(cluster: Sandbox) -> ConnectionSettings:
    return ConnectionSettings.from_mapping({"bootstrap.servers": cluster.bootstrap})


def now() -> datetime:
    return datetime.now(timezone.utc)


def snapshot(cluster: Sandbox, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The datasets of groups in a new snapshot."""
    root = EvidenceRoot(path=folder)
    taken = take_snapshot(
        settings=settings(cluster),
        root=root,
        cluster="real",
        snapshot_id=new_id(now(), "groups"),
        now=now,
        second_look_seconds=0,
        kind=SNAPSHOT,
    )
    return {
        name: pq.read_table(taken.path / f"{name}.parquet").to_pylist() for name in ("groups", "members", "committed_offsets", "errors")
    }


def of_queue(cluster: Sandbox) -> LagRow:
    reading = take_reading(settings(cluster), Scope.from_text(), load_policy(), now)
    (row,) = [row for row in lag_rows(reading, lambda group, topic: None) if row.group_id == "queue"]
    return row


def test_a_share_groups_position_is_the_start_offset_that_kafka_share_groups_prints(cluster: Sandbox, tmp_path: Path) -> None:
    tools = KafkaTools(cluster.bootstrap)
    printed = tools.run("kafka-share-groups --describe --group queue --offsets")
    line = re.search(r"^queue +jobs +0 +(?:\S+ +)?(\d+) +(\d+) *$", printed, re.MULTILINE)
    assert line is not None, printed
    start, lag = int(line[1]), int(line[2])
    assert (start, lag) == (10, 20)
    found = snapshot(cluster, tmp_path)
    assert [(row["group_type"], row["error"]) for row in found["groups"] if row["group_id"] == "queue"] == [("share", None)]
    commits = [row for row in found["committed_offsets"] if row["group_id"] == "queue"]
    assert [(row["topic"], row["partition"], row["committed"], row["error"]) for row in commits] == [("jobs", 0, start, None)]
    row = of_queue(cluster)
    assert (row.committed, row.lag, row.lost) == (start, lag, 0)


def test_records_that_were_deleted_before_a_share_group_read_them_are_lost(cluster: Sandbox, tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.json"
    wanted.write_text('{"partitions": [{"topic": "jobs", "partition": 0, "offset": 25}]}')
    KafkaTools(cluster.bootstrap).run(f"kafka-delete-records --offset-json-file {wanted}")
    row = of_queue(cluster)
    assert (row.committed, row.lost, row.state) == (10, 15, "LOST")


def test_members_of_a_streams_group_have_the_partitions_of_their_tasks(cluster: Sandbox, tmp_path: Path) -> None:
    taken: list[dict[str, list[dict[str, Any]]]] = []

    def seen() -> bool:
        taken.append(snapshot(cluster, tmp_path / str(len(taken))))
        return any(row["group_id"] == "app" and row["assignment"] for row in taken[-1]["members"])

    streams_member(cluster.bootstrap, "app", "parcels", seen)
    (member,) = [row for row in taken[-1]["members"] if row["group_id"] == "app"]
    assert [(one["topic"], one["partition"]) for one in member["assignment"]] == [("parcels", 0), ("parcels", 1), ("parcels", 2)]
    assert member["subscribed_topics"] == ["parcels"]
    assert [(row["group_type"], row["error"]) for row in taken[-1]["groups"] if row["group_id"] == "app"] == [("streams", None)]
    commits = [(row["topic"], row["partition"], row["committed"]) for row in taken[-1]["committed_offsets"] if row["group_id"] == "app"]
    assert sorted(commits) == [("parcels", 0, None), ("parcels", 1, None), ("parcels", 2, None)]
    assert [row for row in taken[-1]["errors"] if row["group_id"] == "app"] == []
