"""What a snapshot must hold: its datasets, what names a row in each, and which of them no audit can do without."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset. ``key`` columns together name a row; those in ``nullable`` may be null; ``core`` ones carry the populations."""

    key: tuple[str, ...] = ()
    nullable: tuple[str, ...] = ()
    core: bool = False


DATASETS: Mapping[str, Dataset] = {
    "cluster": Dataset(key=("cluster_id",)),
    "brokers": Dataset(key=("broker_id",), core=True),
    "broker_configs": Dataset(key=("broker_id", "name"), core=True),
    "acls": Dataset(
        key=("principal", "host", "operation", "permission_type", "resource_type", "resource_name", "pattern_type"),
    ),
    "topics": Dataset(key=("topic",), core=True),
    "partitions": Dataset(key=("topic", "partition"), core=True),
    "reassignments": Dataset(key=("topic", "partition")),
    "topic_configs": Dataset(key=("topic", "name"), core=True),
    "quorum": Dataset(key=("replica_id",)),
    "log_dirs": Dataset(key=("broker_id", "path"), nullable=("path",)),
    "replica_sizes": Dataset(key=("broker_id", "path", "topic", "partition")),
    "groups": Dataset(key=("group_id",), core=True),
    "members": Dataset(key=("group_id", "member_id")),
    "group_configs": Dataset(key=("group_id", "name")),
    "committed_offsets": Dataset(key=("group_id", "topic", "partition"), core=True),
    "offsets": Dataset(key=("topic", "partition"), core=True),
    "sla_offsets": Dataset(key=("topic", "partition", "max_lag_seconds")),
    "first_unread": Dataset(key=("topic", "partition", "offset")),
    "last_batches": Dataset(key=("topic", "partition")),
    "producers": Dataset(key=("topic", "partition", "producer_id")),
    "transactions": Dataset(key=("transactional_id",)),
    "errors": Dataset(),
    "capabilities": Dataset(key=("api",)),
}

EVIDENCE_BY_ERROR = frozenset({"SECURITY_DISABLED"})
"""Errors that answer the question: a cluster without an authorizer has no ACLs, and nothing was left unread."""


def schema_of(dataset: str) -> pa.Schema:
    """The Arrow schema with which the collector writes the dataset."""
    schema: pa.Schema = import_module(f"kafka_audit.collect.{dataset}").SCHEMA
    return schema


def schema_problem(found: pa.Schema, expected: pa.Schema) -> str:
    """``ok``, or every expected column that is missing or of another type. Further columns are allowed."""
    problems: list[str] = []
    for column in expected:
        if column.name not in found.names:
            problems.append(f"column {column.name} is missing")
        elif found.field(column.name).type != column.type:
            problems.append(f"column {column.name} is {found.field(column.name).type} where {column.type} is expected")
    return "; ".join(problems) or "ok"
