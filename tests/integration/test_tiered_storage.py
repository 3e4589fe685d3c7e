"""Tiered storage of real brokers: what the audit says while segments are uploaded, while the remote store refuses them, and afterwards.

And how much room the brokers' disks must have.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer.offsets import OffsetSpec
from lag_clients import wait_for
from lag_cluster import LagCluster, lag_cluster
from remote_store import RemoteStore

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.policy import Policy, load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

CODES = ("TOP-11", "TOP-18", "REP-09")
TIERED, PAUSED, METADATA = "archive", "paused", "__remote_log_metadata"
HOUR_MS = 3_600_000
SETTINGS = {
    "remote.storage.enable": "true",
    "local.retention.ms": str(HOUR_MS),
    "retention.ms": str(7 * 24 * HOUR_MS),
    "segment.ms": str(HOUR_MS // 6),  # records an hour apart lie in segments of their own
}


def now() -> datetime:
    return datetime.now(timezone.utc)


Findings = dict[tuple[str, str], dict[str, Any]]
"""By code and resource."""


class Tiered:
    """Brokers with a tiered topic, and one whose uploads are switched off."""

    def __init__(self, cluster: LagCluster, root: Path) -> None:
        self.root, self.bootstrap = root, cluster.bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        for topic, more in ((TIERED, {}), (PAUSED, {"remote.log.copy.disable": "true", "local.retention.ms": "-2"})):
            self.admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 3, "configs": {**SETTINGS, **more}}})
        self.admin.wait_for_topics([TIERED, PAUSED, METADATA])

    def write(self, *hours_ago: int) -> None:
        """A record for each, with that age; each but the first closes the segment of the one before."""
        with closing(KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", linger_ms=0)) as producer:
            for hours in hours_ago:
                stamp = round(time.time() * 1000) - hours * HOUR_MS
                producer.send(TIERED, b"record", partition=0, timestamp_ms=stamp).get(timeout=600)

    def last_uploaded(self) -> int:
        partition = TopicPartition(TIERED, 0)
        return int(self.admin.list_partition_offsets({partition: OffsetSpec.LATEST_TIERED})[partition].offset)

    def set_for(self, topic: str, **settings: str) -> None:
        configs = {name.replace("_", "."): value for name, value in settings.items()}
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=configs)])

    def snapshot(self, name: str) -> Snapshot:
        root, snapshot_id = EvidenceRoot(path=self.root / name), new_id(now(), name)
        settings = ConnectionSettings.from_mapping({"bootstrap.servers": self.bootstrap})
        take_snapshot(settings=settings, root=root, cluster=name, snapshot_id=snapshot_id, now=now, second_look_seconds=0)
        return root.snapshot(name, snapshot_id)


def _policy(folder: Path, min_free_share: float) -> Policy:
    folder.mkdir()
    parameters = {"REP-09": {"min_free_share": min_free_share}}
    demands = {"replication_factor": 3, "min_insync_replicas": 2, "retention_ms": HOUR_MS}
    tier = {"owner": "platform team", "rpo_seconds": 0, **demands, "parameters": parameters}
    (folder / "tiers.yaml").write_text(yaml.safe_dump({"version": 1, "default_tier": "all", "tiers": {"all": tier}}))
    (folder / "slas.yaml").write_text("version: 1\n")
    return load_policy(folder)


def _judge(snapshots: Sequence[tuple[Snapshot, Policy]]) -> list[Findings]:
    from spark_jobs.engine.evidence import Evidence
    from spark_jobs.engine.session import spark_session
    from spark_jobs.judge.controls import judge
    from spark_jobs.judge.policy_columns import PolicyColumns
    from spark_jobs.rows.build import wide_rows

    controls = [control for control in load_catalogue([shipped_controls()]).controls if control.code in CODES]
    spark, found = spark_session("kafka_audit tiered storage"), []
    try:
        for snapshot, policy in snapshots:
            evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 1), small_cluster=True)
            columns = PolicyColumns(policy=policy, at=now())
            with evidence.tables.settings():
                judged = [
                    judge(wide_rows(subject, evidence, policy), [one for one in controls if one.subject == subject], None, columns)
                    for subject in ("topic", "broker")
                ]
                rows = judged[0].unionByName(judged[1]).collect()
            found.append({(row["code"], row["resource"]): row.asDict(recursive=True) for row in rows})
    finally:
        spark.stop()
    return found


@dataclass(frozen=True)
class Story:
    """What the audit says while uploads work, while they fail, and after the store was mended."""

    uploaded: Findings
    failing: Findings
    mended: Findings


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("tiered")
    store = RemoteStore(folder / "store")
    with lag_cluster(folder / "cluster", store.properties()) as cluster:
        tiered = Tiered(cluster, folder)
        with closing(tiered.admin):
            tiered.write(10, 9, 8, 7, 6)
            wait_for("all closed segments are uploaded", lambda: tiered.last_uploaded() == 3)
            uploaded = tiered.snapshot("uploaded")
            store.fail()
            tiered.write(5, 4, 3, 0)
            wait_for("a broker reports that the store refuses", cluster_says(cluster, "RemoteStorageException"))
            tiered.set_for(METADATA, min_insync_replicas="2")
            tiered.set_for(PAUSED, remote_log_copy_disable="false")
            failing = tiered.snapshot("failing")
            store.mend()
            wait_for("all closed segments are uploaded", lambda: tiered.last_uploaded() == 7)
            mended = tiered.snapshot("mended")
    free = [row["usable_bytes"] / row["total_bytes"] for row in pq.read_table(failing.dataset("log_dirs")).to_pylist()]
    any_disk, fuller = _policy(folder / "any", 0.0), _policy(folder / "fuller", (max(free) + 1) / 2)
    return Story(*_judge([(uploaded, any_disk), (failing, fuller), (mended, any_disk)]))


def cluster_says(cluster: LagCluster, words: str) -> Callable[[], bool]:
    return lambda: any(words in log.read_text(errors="replace") for log in cluster.logs())


def verdict(findings: Findings, code: str, resource: str) -> tuple[str, str]:
    found = findings[code, resource]
    return found["status"], found["observed"]


def test_uploads_that_keep_up_pass_although_the_open_segment_is_not_uploaded(story: Story) -> None:
    for findings in (story.uploaded, story.mended):
        status, observed = verdict(findings, "TOP-18", TIERED)
        assert (status, observed.partition("; local")[0]) == ("pass", "no upload is overdue; not uploaded in all: 1 records")


def test_uploads_that_the_store_refuses_fail_with_the_number_of_records_that_are_overdue(story: Story) -> None:
    status, observed = verdict(story.failing, "TOP-18", TIERED)
    assert status == "fail"
    assert observed.startswith("at least 4 records are overdue, most on partition 0; not uploaded in all: 5 records")


def test_the_topic_of_the_metadata_fails_until_two_replicas_must_acknowledge(story: Story) -> None:
    status, observed = verdict(story.uploaded, "TOP-11", METADATA)
    assert status == "fail"
    assert observed.startswith("replication factor 3; effective min.insync.replicas 1")
    assert verdict(story.failing, "TOP-11", METADATA)[0] == "pass"


def test_a_topic_whose_uploads_are_switched_off_fails_and_its_uploads_are_not_judged(story: Story) -> None:
    assert "remote.log.copy.disable true" in verdict(story.uploaded, "TOP-11", PAUSED)[1]
    for code, while_off, while_on in (("TOP-11", "fail", "pass"), ("TOP-18", "not_applicable", "pass")):
        assert (verdict(story.uploaded, code, PAUSED)[0], verdict(story.failing, code, PAUSED)[0]) == (while_off, while_on)


def test_brokers_fail_where_the_policy_asks_for_more_room_than_their_disks_have(story: Story) -> None:
    for broker in "123":
        assert [verdict(findings, "REP-09", broker)[0] for findings in (story.uploaded, story.failing)] == ["pass", "fail"]
