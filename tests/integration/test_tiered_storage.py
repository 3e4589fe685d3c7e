"""Tiered storage of real brokers: what the audit says while segments are uploaded, while the remote store refuses them, and afterwards."""

import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.protocol.consumer.offsets import OffsetSpec
from lag_clients import wait_for
from lag_cluster import LagCluster, lag_cluster
from remote_store import RemoteStore

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

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


@dataclass(frozen=True)
class Judged:
    """The findings of TOP-11 and TOP-18 on one snapshot, by code and topic."""

    findings: dict[tuple[str, str], dict[str, Any]]

    def __call__(self, code: str, topic: str) -> tuple[str, str]:
        found = self.findings[code, topic]
        return found["status"], found["observed"]


class Tiered:
    """Brokers with a tiered topic, and one whose uploads are switched off."""

    def __init__(self, cluster: LagCluster, root: Path) -> None:
        self.root, self.bootstrap = root, cluster.bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        for topic, more in ((TIERED, {}), (PAUSED, {"remote.log.copy.disable": "true"})):
            self.admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 3, "configs": {**SETTINGS, **more}}})
        self.admin.wait_for_topics([TIERED, PAUSED, METADATA])

    def write(self, *hours_ago: int) -> None:
        """A record for each, with that age; each but the first closes the segment of the one before."""
        with closing(KafkaProducer(bootstrap_servers=self.bootstrap, acks="all", linger_ms=0)) as producer:
            for hours in hours_ago:
                stamp = round(time.time() * 1000) - hours * HOUR_MS
                producer.send(TIERED, b"record", partition=0, timestamp_ms=stamp).get(timeout=60)

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


def _judge(snapshots: list[Snapshot]) -> list[Judged]:
    from spark_jobs.engine.evidence import Evidence
    from spark_jobs.engine.session import spark_session
    from spark_jobs.judge.controls import judge
    from spark_jobs.judge.policy_columns import PolicyColumns
    from spark_jobs.rows.build import wide_rows

    policy = load_policy()
    controls = [control for control in load_catalogue([shipped_controls()]).controls if control.code in ("TOP-11", "TOP-18")]
    spark, judged = spark_session("kafka_audit tiered storage"), []
    try:
        for snapshot in snapshots:
            evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 1), small_cluster=True)
            with evidence.tables.settings():
                rows = judge(wide_rows("topic", evidence, policy), controls, None, PolicyColumns(policy=policy, at=now())).collect()
            judged.append(Judged({(row["code"], row["resource"]): row.asDict(recursive=True) for row in rows}))
    finally:
        spark.stop()
    return judged


@dataclass(frozen=True)
class Story:
    """What the audit says while uploads work, while they fail, and after the store was mended."""

    uploaded: Judged
    failing: Judged
    mended: Judged


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
            tiered.set_for(METADATA, min_insync_replicas="2")
            tiered.set_for(PAUSED, remote_log_copy_disable="false")
            failing = tiered.snapshot("failing")
            store.mend()
            wait_for("all closed segments are uploaded", lambda: tiered.last_uploaded() == 7)
            mended = tiered.snapshot("mended")
            print(store.segments())
    return Story(*_judge([uploaded, failing, mended]))


def test_uploads(story: Story) -> None:
    for one in (story.uploaded, story.failing, story.mended):
        for key, row in sorted(one.findings.items()):
            print(key, row["status"], row["observed"], row["reason"])
