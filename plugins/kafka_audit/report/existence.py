"""Whether a topic, partition or group existed when a snapshot was taken: only a list that is known to be complete can show that it did not.

Kafka leaves out what the auditor may not see, without an error. So a topic that metadata does not show is absent only if the cluster has
no authorizer, or if every broker told what lies in its log directories and none has the topic. A dead broker that is only known as the
owner of hidden topics is in no list, so those brokers that held the topic in the other audit must be among those that told.
"""

import os
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from kafka_audit.collect.scope import Scope
from kafka_audit.errors import IntegrityError
from kafka_audit.report.rows import all_rows, batches, exists
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.manifest import FileHashes

_NO_AUTHORIZER = "SECURITY_DISABLED"
_ABSENT = "UNKNOWN_TOPIC_OR_PARTITION"
_ITEMS = ("broker_id", "topic", "partition", "group_id")


@dataclass(frozen=True)
class Existence:
    """Answers for one snapshot. ``scope``: the topics and groups that it covers."""

    snapshot: Snapshot
    scope: Scope

    def topic_id(self, topic: str) -> str | None:
        """The id of a topic, which no other topic ever has; None if it is not known, as before Kafka 2.8 and for a hidden topic."""
        found = self._topics.get(topic)
        return found["topic_id"] if found else None

    def holders(self, topic: str) -> AbstractSet[int]:
        """The brokers that have a replica of a topic; empty if none is known."""
        return self._holders.get(topic, frozenset())

    def without_topic(self, topic: str, holders: AbstractSet[int]) -> bool:
        """Whether the snapshot shows that there was no such topic; False also if that is not known.

        ``holders``: the brokers that have a replica of it in the other audit. That it was moved in between, to a broker that then died, and
        that no list names, is not told apart.
        """
        if not self.scope.covers_topic(topic) or self._lists_unread("topics") or self._error_of("topics", "topic", topic):
            return False
        if topic in self._topics:
            return bool(self._topics[topic]["error"] == _ABSENT)
        return self._no_authorizer or (bool(holders) and holders <= self._told and topic not in self._on_disk)

    def without_partition(self, topic: str, partition: int) -> bool:
        """Whether the snapshot shows that the topic had no such partition."""
        found = self._topics.get(topic)
        count = found["partition_count"] if found and found["error"] is None else None
        return count is not None and partition >= count

    def without_group(self, group_id: str) -> bool:
        """Whether the snapshot shows that there was no such group: brokers list all groups to whom may describe the cluster."""
        if not self.scope.covers_group(group_id) or self._lists_unread("groups") or self._error_of("groups", "group_id", group_id):
            return False
        told_all = self._no_authorizer or "Describe" in self._own_rights
        return told_all and group_id not in self._groups

    def _lists_unread(self, dataset: str) -> bool:
        """Whether a list was not read at all, or not from every broker."""
        named = ("topic", "partition", "group_id")
        return not (exists(self._path(dataset)) and exists(self._path("errors"))) or any(
            one["dataset"] == dataset and all(one[name] is None for name in named) for one in self._errors
        )

    def _error_of(self, dataset: str, column: str, name: str) -> bool:
        return any(one["dataset"] == dataset and one[column] == name for one in self._errors)

    @cached_property
    def _errors(self) -> list[dict[str, Any]]:
        return all_rows(self._path("errors"), ("dataset", "error", *_ITEMS))

    @cached_property
    def _no_authorizer(self) -> bool:
        return any(one["dataset"] == "acls" and one["error"] == _NO_AUTHORIZER for one in self._errors)

    @cached_property
    def _topics(self) -> dict[str, dict[str, Any]]:
        path = self._path("topics")
        return {one["topic"]: one for one in all_rows(path, ("topic", "topic_id", "partition_count", "error"))} if exists(path) else {}

    @cached_property
    def _holders(self) -> dict[str, set[int]]:
        path = self._path("partitions")
        found: dict[str, set[int]] = {}
        for one in all_rows(path, ("topic", "replicas")) if exists(path) else ():
            found.setdefault(one["topic"], set()).update(one["replicas"] or ())
        return found

    @cached_property
    def _groups(self) -> frozenset[str]:
        return frozenset(one["group_id"] for one in all_rows(self._path("groups"), ("group_id",)))

    @cached_property
    def _own_rights(self) -> frozenset[str]:
        path = self._path("cluster")
        rows = all_rows(path, ("authorized_operations",)) if exists(path) else []
        return frozenset(right for row in rows for right in row["authorized_operations"] or ())

    @cached_property
    def _told(self) -> frozenset[int]:
        """The brokers, if every one that is known told all replicas on its disks; else none."""
        if not all(exists(self._path(name)) for name in ("brokers", "log_dirs", "replica_sizes")):
            return frozenset()
        if any(one["dataset"] in ("log_dirs", "replica_sizes", "brokers") for one in self._errors):
            return frozenset()
        brokers = all_rows(self._path("brokers"), ("broker_id", "alive", "answered"))
        disks = all_rows(self._path("log_dirs"), ("broker_id", "error"))
        told = {one["broker_id"] for one in disks if one["error"] is None} - {one["broker_id"] for one in disks if one["error"] is not None}
        complete = all(one["alive"] and one["answered"] and one["broker_id"] in told for one in brokers)
        return frozenset(one["broker_id"] for one in brokers) if complete else frozenset()

    @cached_property
    def _on_disk(self) -> frozenset[str]:
        found: set[str] = set()
        for table in batches(self._path("replica_sizes"), ("topic",)):
            found.update(pc.unique(table["topic"]).to_pylist())
        return frozenset(found)

    def _path(self, dataset: str) -> Path:
        """Path of a dataset that is as it was sealed; IntegrityError when it is not."""
        path = self.snapshot.dataset(dataset)
        if dataset not in self._checked:
            entry = self.snapshot.manifest["files"].get(path.name)
            if (entry["sha256"] if entry else None) != (FileHashes().of(path)[0] if os.path.lexists(path) else None):
                raise IntegrityError(f"{path}: was changed after it was sealed, so it cannot show what existed; restore it from a copy")
            self._checked.add(dataset)
        return path

    @cached_property
    def _checked(self) -> set[str]:
        return set()
