"""The datasets of a snapshot: each with its columns, the columns that name a row, and the kinds of snapshot that have it.

Imports no Kafka client, so that whoever reads snapshots (catalogue, evidence gate, tests) can use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

READ_AT = pa.timestamp("us", tz="UTC")
BROKER_IDS = pa.list_(pa.int32())
SYNONYMS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string()), ("source", pa.string())]))
_LEVELS = ("finalized_min", "finalized_max", "supported_min", "supported_max")
_TYPES: Mapping[str, pa.DataType] = {
    "text": pa.string(),
    "bool": pa.bool_(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "time": READ_AT,
    "texts": pa.list_(pa.string()),
    "int32s": BROKER_IDS,
    "partitions": pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())])),
    "synonyms": SYNONYMS,
    "features": pa.list_(pa.struct([("name", pa.string()), *((level, pa.int16()) for level in _LEVELS)])),
}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """One dataset, stored as ``<name>.parquet``; ``columns`` lists name and type of each, in order, those of the key before the bar.

    The columns of the key together name a row; those in ``nullable`` may be null. ``core``: it tells which topics, partitions, brokers
    and groups there are, or what every audit needs of them. ``light``: offsets snapshots have it too.
    """

    name: str
    columns: str
    nullable: tuple[str, ...] = ()
    core: bool = False
    light: bool = False

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the Parquet file."""
        columns = (column.split() for column in self.columns.replace("|", ",").split(",") if column.strip())
        return pa.schema([(name, _TYPES[kind]) for name, kind in columns])

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns that together name a row; none where rows have no name."""
        named, bar, _ = self.columns.partition("|")
        return tuple(column.split()[0] for column in named.split(",")) if bar else ()


CLUSTER = Dataset(
    name="cluster", columns="cluster_id text | controller_id int32, read_at time, features features, authorized_operations texts"
)
BROKERS = Dataset(
    name="brokers",
    columns=(
        "broker_id int32 | host text, port int32, rack text, alive bool, answered bool, is_controller bool, describe_cluster_version int32"
    ),
    core=True,
)
BROKER_CONFIGS = Dataset(
    name="broker_configs", columns="broker_id int32, name text | value text, source text, is_sensitive bool, synonyms synonyms", core=True
)
CONTROLLER_CONFIGS = Dataset(
    name="controller_configs", columns="controller_id int32, name text | value text, source text, is_sensitive bool, synonyms synonyms"
)
ACLS = Dataset(
    name="acls",
    columns=(
        "principal text, host text, operation text, permission_type text, resource_type text, resource_name text, pattern_type text |"
    ),
)
CLIENT_QUOTAS = Dataset(name="client_quotas", columns="entity text, key text | value double")
TOPICS = Dataset(
    name="topics",
    columns="topic text | topic_id text, is_internal bool, partition_count int32, error text, authorized_operations texts",
    core=True,
    light=True,
)
PARTITIONS = Dataset(
    name="partitions",
    columns=(
        "topic text, partition int32 | leader int32, leader_epoch int32, replicas int32s, isr int32s, offline_replicas int32s, "
        "eligible_leader_replicas int32s, last_known_elr int32s, error text, confirmed bool, read_at time"
    ),
    core=True,
)
REASSIGNMENTS = Dataset(
    name="reassignments", columns="topic text, partition int32 | replicas int32s, adding_replicas int32s, removing_replicas int32s"
)
TOPIC_CONFIGS = Dataset(
    name="topic_configs",
    columns="topic text, name text | value text, source text, is_sensitive bool, synonyms synonyms",
    core=True,
    light=True,
)
QUORUM = Dataset(
    name="quorum",
    columns=(
        "replica_id int32 | role text, is_leader bool, log_end_offset int64, last_fetch_timestamp_ms int64, "
        "last_caught_up_timestamp_ms int64, read_at time"
    ),
)
LOG_DIRS = Dataset(
    name="log_dirs", columns="broker_id int32, path text | error text, total_bytes int64, usable_bytes int64", nullable=("path",)
)
REPLICA_SIZES = Dataset(
    name="replica_sizes",
    columns="broker_id int32, path text, topic text, partition int32 | size_bytes int64, offset_lag int64, is_future bool",
)
GROUPS = Dataset(
    name="groups",
    columns=(
        "group_id text | group_type text, state text, protocol_type text, coordinator_id int32, error text, authorized_operations "
        "texts, assignor text"
    ),
    core=True,
    light=True,
)
MEMBERS = Dataset(
    name="members",
    columns="group_id text, member_id text | client_id text, instance_id text, assignment partitions, subscribed_topics texts",
    light=True,
)
GROUP_CONFIGS = Dataset(
    name="group_configs", columns="group_id text, name text | value text, source text, is_sensitive bool, synonyms synonyms"
)
COMMITTED_OFFSETS = Dataset(
    name="committed_offsets",
    columns="group_id text, topic text, partition int32 | committed int64, leader_epoch int32, error text, read_at time",
    core=True,
    light=True,
)
OFFSETS = Dataset(
    name="offsets",
    columns=(
        "topic text, partition int32 | log_start int64, log_end int64, last_stable int64, max_timestamp_ms int64, "
        "max_timestamp_offset int64, headroom_timestamp_ms int64, headroom_offset int64, error text, read_at time"
    ),
    core=True,
    light=True,
)
SLA_OFFSETS = Dataset(
    name="sla_offsets",
    columns="topic text, partition int32, max_lag_seconds int32 | timestamp_ms int64, offset int64, error text, read_at time",
    light=True,
)
TIERED_OFFSETS = Dataset(
    name="tiered_offsets",
    columns=(
        "topic text, partition int32 | local_start int64, latest_tiered int64, due_timestamp_ms int64, due_offset int64, error text, "
        "read_at time"
    ),
)
FIRST_UNREAD = Dataset(
    name="first_unread",
    columns=(
        "topic text, partition int32, offset int64 | record_offset int64, timestamp_ms int64, timestamp_type text, error text, read_at time"
    ),
    light=True,
)
LAST_BATCHES = Dataset(
    name="last_batches",
    columns=(
        "topic text, partition int32 | base_offset int64, last_offset int64, producer_id int64, producer_epoch int32, base_sequence "
        "int32, is_transactional bool, is_control bool, max_timestamp_ms int64, error text, read_at time"
    ),
)
PRODUCERS = Dataset(
    name="producers",
    columns=(
        "topic text, partition int32, producer_id int64 | producer_epoch int32, last_sequence int32, last_timestamp_ms int64, "
        "coordinator_epoch int32, current_txn_start_offset int64"
    ),
)
TRANSACTIONS = Dataset(
    name="transactions",
    columns=(
        "transactional_id text | producer_id int64, state text, coordinator_id int32, timeout_ms int64, start_time_ms int64, "
        "partitions partitions"
    ),
)
ERRORS = Dataset(
    name="errors",
    columns="dataset text, api text, broker_id int32, topic text, partition int32, group_id text, error text, message text",
    light=True,
)
CAPABILITIES = Dataset(
    name="capabilities", columns="api text | api_key int32, min_version int32, max_version int32, supported bool, allowed bool, detail text"
)

DATASETS: Mapping[str, Dataset] = {one.name: one for one in tuple(globals().values()) if isinstance(one, Dataset)}
"""Every dataset by its name; a whole snapshot has them all."""


def is_known(name: str) -> bool:
    """Whether an error's ``dataset`` is one of these, or a column of one as ``dataset.column``."""
    dataset, dot, column = name.partition(".")
    return dataset in DATASETS and (not dot or column in DATASETS[dataset].schema.names)
