"""What kafka-python's admin client sees of a sandbox."""

from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from kafka_audit.sandbox.lifecycle import Sandbox


class Cluster:
    """What it was asked last; close it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.admin = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)
        self.sandbox = sandbox

    def partitions(self) -> dict[str, dict[str, Any]]:
        return {f"{t['name']}-{p['partition_index']}": p for t in self.admin.describe_topics() for p in t["partitions"]}

    def config(self, kind: ConfigResourceType, name: str) -> dict[str, str]:
        answer = self.admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return {key: entry["value"] for key, entry in answer[kind.name.lower()][name].items()}

    def groups(self) -> dict[str, tuple[str, str]]:
        return {g["group_id"]: (g["group_type"], g["group_state"]) for g in self.admin.list_groups()}

    def commits(self) -> dict[str, dict[str, int]]:
        answer = self.admin.list_group_offsets(dict.fromkeys(self.groups()))
        return {g: {f"{p.topic}-{p.partition}": o.offset for p, o in found.items()} for g, found in answer.items()}

    def bounds(self) -> dict[str, tuple[int, int]]:
        readable = {name: p for name, p in self.partitions().items() if p["leader_id"] >= 0 and not name.startswith("__")}
        asked = [TopicPartition(*name.rsplit("-", 1)[:1], int(name.rsplit("-", 1)[1])) for name in readable]
        reader = KafkaConsumer(bootstrap_servers=self.sandbox.bootstrap, allow_auto_create_topics=False)
        try:
            starts, ends = reader.beginning_offsets(asked), reader.end_offsets(asked)
        finally:
            reader.close()
        return {f"{p.topic}-{p.partition}": (starts[p], ends[p]) for p in asked}

    def producers(self, topic: str, partition: int) -> int:
        answer = self.admin.describe_producers([TopicPartition(topic, partition)])
        return sum(len(state.active_producers) for state in answer.values())

    def close(self) -> None:
        self.admin.close()
