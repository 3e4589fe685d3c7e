"""The wide rows that rules read: for each subject its columns, their Spark SQL types and what they mean.

A rule may name only the columns of its subject. ``spark_jobs/subjects/<subject>.py`` builds exactly these columns,
in this order; a test holds the two together. NULL always means "not known", never "none" or 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_CONFIG = "map<string,struct<value:string,source:string,synonyms:array<struct<name:string,value:string,source:string>>>>"
_INTS = "array<int>"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a wide row: Spark SQL type and meaning."""

    type: str
    meaning: str


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One kind of thing that is judged: its wide row and the job that builds it."""

    name: str
    job: str
    about: str
    columns: Mapping[str, Column]

    @property
    def ddl(self) -> str:
        """The row's schema as a Spark DDL string."""
        return ", ".join(f"`{name}` {column.type}" for name, column in self.columns.items())


def _columns(*rows: tuple[str, str, str]) -> dict[str, Column]:
    return {name: Column(type=kind, meaning=meaning) for name, kind, meaning in rows}


_RESOURCE = ("resource", "string", "name of the judged thing, unique within the subject")
_ERRORS = ("errors", "map<string,string>", "dataset -> why its evidence for this row is missing; empty when nothing is missing")

_TOPIC_POLICY = (
    "policy",
    "struct<tier:string,replication_factor:int,min_insync_replicas:int,retention_ms:bigint>",
    "what the topic's tier asks for",
)

_TOPIC = _columns(
    _RESOURCE,
    ("topic", "string", "topic name"),
    ("topic_id", "string", "topic id (KIP-516)"),
    ("is_internal", "boolean", "internal topic such as __consumer_offsets"),
    ("partition_count", "int", "number of partitions"),
    ("replication_factor_min", "int", "fewest target replicas of any partition; replicas being added or removed do not count twice"),
    ("replication_factor_max", "int", "most target replicas of any partition"),
    ("min_insync_replicas", "int", "effective value: min(configured, replication factor)"),
    ("config", _CONFIG, "effective topic configuration with source and synonyms"),
    ("broker_values", "map<string,array<string>>", "distinct effective values of a key over the brokers, for keys every broker answered"),
    ("racks", "int", "distinct racks of the alive brokers; NULL when a broker has no rack"),
    ("rack_spread_min", "int", "fewest distinct racks of any partition's replicas; NULL when a replica's rack is unknown"),
    ("rack_survivors_min", "int", "fewest replicas left after losing any one rack; NULL when a replica's rack is unknown"),
    ("rack_survivors_best_case", "int", "the same with every unknown rack taken as a rack of its own: the truth cannot be better"),
    ("size_bytes_max", "bigint", "bytes of the largest partition (its largest replica)"),
    ("recent_write_partitions", "int", "partitions whose newest record is younger than 24 h"),
    ("identified_write_partitions", "int", "of those, partitions where an idempotent producer's last record is the newest record"),
    ("unidentified_write_partitions", "int", "of those, partitions where no active producer id explains the newest record"),
    ("unidentified_partitions", _INTS, "their numbers, at most 20"),
    (
        "undecided_write_partitions",
        "int",
        "where that cannot be told: not readable, or a producer id's last record is less than 1 h older",
    ),
    _TOPIC_POLICY,
    _ERRORS,
)

_PARTITION = _columns(
    _RESOURCE,
    ("topic", "string", "topic name"),
    ("partition", "int", "partition number"),
    ("is_internal", "boolean", "of an internal topic"),
    ("leader", "int", "leader's broker id, -1 when there is none"),
    ("leader_epoch", "int", "leader epoch"),
    ("leader_alive", "boolean", "the leader is a registered, unfenced broker"),
    ("replicas", _INTS, "assigned replicas"),
    ("replication_factor", "int", "target number of replicas (assigned minus being added)"),
    ("isr", _INTS, "in-sync replicas"),
    ("isr_count", "int", "number of in-sync replicas"),
    ("lagging_replicas", _INTS, "assigned replicas that are not in sync and not being added"),
    ("offline_replicas", _INTS, "replicas on dead brokers or failed log dirs"),
    ("min_insync_replicas", "int", "effective value: min(configured, replication factor)"),
    ("eligible_leader_replicas", _INTS, "ELR (KIP-966)"),
    ("reassigning", "boolean", "a reassignment is in progress"),
    ("confirmed", "boolean", "a bad state was seen again in a second read some seconds later"),
    _TOPIC_POLICY,
    _ERRORS,
)

_BROKER = _columns(
    _RESOURCE,
    ("broker_id", "int", "broker id"),
    ("rack", "string", "broker.rack"),
    ("alive", "boolean", "registered in the cluster's metadata"),
    ("answered", "boolean", "answered every request that was sent to it"),
    ("config", _CONFIG, "effective broker configuration with source and synonyms"),
    ("log_dirs", "int", "number of log dirs it reports"),
    ("failed_log_dirs", "array<string>", "log dirs that report an error, with the error's name"),
    _ERRORS,
)

_CLUSTER = _columns(
    _RESOURCE,
    ("cluster_id", "string", "Kafka's cluster id"),
    ("brokers_known", _INTS, "ids seen in metadata, replica lists or the quorum's voters that are brokers"),
    ("brokers_alive", _INTS, "ids registered now"),
    ("brokers_answered", _INTS, "ids that answered every request"),
    ("racks", "int", "distinct racks of the alive brokers, unknown ones not counted"),
    ("brokers_without_rack", _INTS, "alive brokers without broker.rack"),
    ("voters", _INTS, "voters of the metadata quorum"),
    ("healthy_voters", _INTS, "voters caught up within 10 s of the leader's clock; NULL when the cluster reports no times (KIP-836)"),
    ("drifting_keys", "array<string>", "durability keys whose value differs between brokers, with the values; sorted, at most 50"),
    ("weaker_override_count", "bigint", "topic overrides weaker than the brokers' value"),
    ("weaker_overrides", "array<string>", "topic: key=value (broker value); sorted, at most 20"),
    ("clock_skew_ms", "bigint", "auditor's clock minus the quorum leader's, at most this far apart; NULL when not known"),
    ("unread_items", "bigint", "items of evidence that could not be read"),
    ("unread_by_dataset", "map<string,bigint>", "the same by dataset"),
    ("hidden_topics", "array<string>", "topics on disk that metadata does not show: Describe permission is missing; at most 20"),
    ("snapshot_seconds", "double", "how long the snapshot took"),
    ("policy", "struct<replication_factor:int>", "the default tier's requirements"),
    _ERRORS,
)

_DECLARED_TOPIC = _columns(
    _RESOURCE,
    ("topic", "string", "a topic that the policy declares"),
    ("present", "boolean", "metadata lists it; NULL when topics could not be listed or it may be hidden by a missing permission"),
    ("tier", "string", "its tier"),
    _ERRORS,
)

_GROUP = _columns(
    _RESOURCE,
    ("group_id", "string", "group id: free text"),
    ("group_type", "string", "classic, consumer, share, streams or unknown"),
    ("state", "string", "state from ListGroups"),
    ("member_count", "int", "members; NULL when they could not be described"),
    ("partition_count", "int", "partitions with a committed offset"),
    ("lag_known", "bigint", "records behind the log end, summed over the partitions where both offsets were read"),
    ("lag_max", "bigint", "largest of these"),
    ("lag_max_partition", "string", "where it is, as topic-partition"),
    ("unknown_partitions", "int", "partitions with a commit whose lag could not be computed"),
    ("policy", "struct<sla:string,max_lag_records:bigint>", "the lag SLA that matches the group, if any"),
    _ERRORS,
)

_GROUP_PARTITION = _columns(
    _RESOURCE,
    ("group_id", "string", "group id: free text"),
    ("topic", "string", "topic name"),
    ("partition", "int", "partition number"),
    ("group_type", "string", "classic, consumer, share, streams or unknown"),
    ("state", "string", "state of the group"),
    ("topic_exists", "boolean", "metadata lists the topic"),
    ("assigned", "boolean", "a member has the partition assigned; NULL when members could not be described"),
    ("has_commit", "boolean", "the group has a committed offset here; NULL when it could not be read"),
    ("committed", "bigint", "committed offset"),
    ("log_start", "bigint", "log start offset"),
    ("log_end", "bigint", "log end offset (high watermark)"),
    ("last_stable", "bigint", "last stable offset"),
    ("lag", "bigint", "log_end - max(committed, log_start), never negative"),
    ("lost", "bigint", "log_start - committed where positive: records deleted unread (an upper bound), else 0"),
    ("beyond_end", "bigint", "committed - log_end where positive, else 0"),
    ("abandoned", "boolean", "the group is Stable and none of its members reads the topic any more"),
    ("compacted", "boolean", "cleanup.policy contains compact: lag and loss are upper bounds"),
    ("deletes", "boolean", "cleanup.policy contains delete: retention deletes records"),
    ("tiered", "boolean", "remote.storage.enable: sizes on local disks are only a part"),
    ("retention_ms", "bigint", "effective retention.ms, -1 for none"),
    ("retention_bytes", "bigint", "effective retention.bytes, -1 for none"),
    ("headroom_timestamp_ms", "bigint", "snapshot time minus a quarter of retention.ms"),
    ("headroom_offset", "bigint", "first offset with a record at least that young, or the log end"),
    ("unread_bytes", "bigint", "lag in bytes, estimated from the partition's size and record count; local disks only; NULL when not known"),
    ("tier", "string", "the topic's tier"),
    _ERRORS,
)

_DECLARED_GROUP = _columns(
    _RESOURCE,
    ("group_id", "string", "a group that the policy declares"),
    ("present", "boolean", "ListGroups names it; NULL when groups could not be listed from every broker"),
    ("group_type", "string", "classic, consumer, share, streams or unknown"),
    ("state", "string", "state from ListGroups"),
    ("member_count", "int", "members; NULL when they could not be described"),
    _ERRORS,
)

SETTINGS_JOB = "verify_settings"
LAG_JOB = "verify_lag"

SUBJECTS: Mapping[str, Subject] = {
    subject.name: subject
    for subject in (
        Subject(name="topic", job=SETTINGS_JOB, about="a topic", columns=_TOPIC),
        Subject(name="partition", job=SETTINGS_JOB, about="a partition of a topic", columns=_PARTITION),
        Subject(name="broker", job=SETTINGS_JOB, about="a broker", columns=_BROKER),
        Subject(name="cluster", job=SETTINGS_JOB, about="the cluster as a whole and its snapshot", columns=_CLUSTER),
        Subject(name="declared_topic", job=SETTINGS_JOB, about="a topic that the policy says must exist", columns=_DECLARED_TOPIC),
        Subject(name="group", job=LAG_JOB, about="a consumer group", columns=_GROUP),
        Subject(name="group_partition", job=LAG_JOB, about="a partition that a group reads", columns=_GROUP_PARTITION),
        Subject(name="declared_group", job=LAG_JOB, about="a group that the policy says must be alive", columns=_DECLARED_GROUP),
    )
}
