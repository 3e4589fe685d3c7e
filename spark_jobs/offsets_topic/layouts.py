"""What Kafka 4.3's coordinators write: the layouts of the group and the transaction coordinator's records and of the consumer protocol.

Sources: the message definitions of Kafka's group-coordinator and transaction-coordinator modules; KIP-848 (consumer groups), KIP-932
(share groups), KIP-1071 (streams groups), KIP-1101 (metadata hash), KIP-890 (transactions) and, for the consumer protocol, KIP-429,
KIP-792 and KIP-881.
"""

from spark_jobs.offsets_topic.layout import (
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    Array,
    Embedded,
    Field,
    Struct,
    Type,
)


def _struct(*fields: Field) -> Struct:
    return Struct(fields)


def _f(name: str, type_: Type, *, nullable: bool = False, since: int = 0, until: int | None = None, tag: int | None = None) -> Field:
    return Field(name=name, type=type_, nullable=nullable, since=since, until=until, tag=tag)


_TOPIC_PARTITIONS = Array(_struct(_f("topic", STRING), _f("partitions", Array(INT32))))

SUBSCRIPTION = _struct(
    _f("topics", Array(STRING)),
    _f("user_data", BYTES, nullable=True),
    _f("owned_partitions", _TOPIC_PARTITIONS, since=1),
    _f("generation", INT32, since=2),
    _f("rack", STRING, nullable=True, since=3),
)
ASSIGNMENT = _struct(_f("partitions", _TOPIC_PARTITIONS), _f("user_data", BYTES, nullable=True))

OFFSET_COMMIT = _struct(
    _f("committed", INT64),
    _f("leader_epoch", INT32, since=3),
    _f("metadata", STRING),
    _f("commit_ms", INT64),
    _f("expire_ms", INT64, since=1, until=1),
    _f("topic_id", UUID, tag=0),
)

GROUP_METADATA = _struct(
    _f("protocol_type", STRING),
    _f("generation", INT32),
    _f("protocol", STRING, nullable=True),
    _f("leader", STRING, nullable=True),
    _f("state_ms", INT64, since=2),
    _f(
        "members",
        Array(
            _struct(
                _f("member_id", STRING),
                _f("instance_id", STRING, nullable=True, since=3),
                _f("client_id", STRING),
                _f("client_host", STRING),
                _f("rebalance_timeout_ms", INT32, since=1),
                _f("session_timeout_ms", INT32),
                _f("subscription", Embedded(SUBSCRIPTION)),
                _f("assignment", Embedded(ASSIGNMENT)),
            )
        ),
    ),
)

_CLASSIC_MEMBER = _struct(
    _f("session_timeout_ms", INT32),
    _f("protocols", Array(_struct(_f("name", STRING), _f("subscription", Embedded(SUBSCRIPTION))))),
)
CONSUMER_GROUP_METADATA = _struct(_f("epoch", INT32), _f("metadata_hash", INT64, tag=0))
CONSUMER_GROUP_PARTITION_METADATA = _struct(
    _f(
        "topics",
        Array(
            _struct(
                _f("topic_id", UUID),
                _f("topic", STRING),
                _f("partition_count", INT32),
                _f("partition_racks", Array(_struct(_f("partition", INT32), _f("racks", Array(STRING))))),
            )
        ),
    )
)
CONSUMER_GROUP_MEMBER_METADATA = _struct(
    _f("instance_id", STRING, nullable=True),
    _f("rack", STRING, nullable=True),
    _f("client_id", STRING),
    _f("client_host", STRING),
    _f("subscribed_topics", Array(STRING)),
    _f("subscribed_regex", STRING, nullable=True),
    _f("rebalance_timeout_ms", INT32),
    _f("server_assignor", STRING, nullable=True),
    _f("classic_member", _CLASSIC_MEMBER, nullable=True, tag=0),
)
CONSUMER_GROUP_REGULAR_EXPRESSION = _struct(_f("topics", Array(STRING)), _f("version", INT64), _f("resolved_ms", INT64))
TARGET_ASSIGNMENT_METADATA = _struct(_f("assignment_epoch", INT32), _f("assignment_ms", INT64, tag=0))
TARGET_ASSIGNMENT_MEMBER = _struct(_f("partitions", Array(_struct(_f("topic_id", UUID), _f("partitions", Array(INT32))))))

_OWNED = Array(_struct(_f("topic_id", UUID), _f("partitions", Array(INT32)), _f("assignment_epochs", Array(INT32), nullable=True, tag=0)))
CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = _struct(
    _f("member_epoch", INT32),
    _f("previous_member_epoch", INT32),
    _f("state", INT8),
    _f("assigned", _OWNED),
    _f("pending_revocation", _OWNED),
)

SHARE_GROUP_MEMBER_METADATA = _struct(
    _f("rack", STRING, nullable=True), _f("client_id", STRING), _f("client_host", STRING), _f("subscribed_topics", Array(STRING))
)
SHARE_GROUP_METADATA = _struct(_f("epoch", INT32), _f("metadata_hash", INT64))
SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = _struct(
    _f("member_epoch", INT32),
    _f("previous_member_epoch", INT32),
    _f("state", INT8),
    _f("assigned", Array(_struct(_f("topic_id", UUID), _f("partitions", Array(INT32))))),
)
_SHARE_TOPICS = Array(_struct(_f("topic_id", UUID), _f("topic", STRING), _f("partitions", Array(INT32))))
SHARE_GROUP_STATE_PARTITION_METADATA = _struct(
    _f("initializing", _SHARE_TOPICS),
    _f("initialized", _SHARE_TOPICS),
    _f("deleting", Array(_struct(_f("topic_id", UUID), _f("topic", STRING)))),
)

_KEY_VALUES = Array(_struct(_f("key", STRING), _f("value", STRING)))
STREAMS_GROUP_METADATA = _struct(
    _f("epoch", INT32),
    _f("metadata_hash", INT64),
    _f("validated_topology_epoch", INT32, tag=0),
    _f("last_assignment_configs", _KEY_VALUES, nullable=True, tag=1),
)
STREAMS_GROUP_MEMBER_METADATA = _struct(
    _f("instance_id", STRING, nullable=True),
    _f("rack", STRING, nullable=True),
    _f("client_id", STRING),
    _f("client_host", STRING),
    _f("rebalance_timeout_ms", INT32),
    _f("topology_epoch", INT32),
    _f("process_id", STRING),
    _f("user_endpoint", _struct(_f("host", STRING), _f("port", UINT16)), nullable=True),
    _f("client_tags", _KEY_VALUES),
)
_TASKS = Array(_struct(_f("subtopology", STRING), _f("partitions", Array(INT32))))
_OWNED_TASKS = Array(
    _struct(_f("subtopology", STRING), _f("partitions", Array(INT32)), _f("assignment_epochs", Array(INT32), nullable=True, tag=0))
)
STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = _struct(_f("active_tasks", _TASKS), _f("standby_tasks", _TASKS), _f("warmup_tasks", _TASKS))
STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = _struct(
    _f("member_epoch", INT32),
    _f("previous_member_epoch", INT32),
    _f("state", INT8),
    *(_f(f"{kind}_tasks", _OWNED_TASKS) for kind in ("active", "standby", "warmup")),
    *(_f(f"{kind}_tasks_pending_revocation", _OWNED_TASKS) for kind in ("active", "standby", "warmup")),
)
_TOPIC_INFO = Array(_struct(_f("topic", STRING), _f("partition_count", INT32), _f("replication_factor", INT16), _f("configs", _KEY_VALUES)))
STREAMS_GROUP_TOPOLOGY = _struct(
    _f("epoch", INT32),
    _f(
        "subtopologies",
        Array(
            _struct(
                _f("subtopology", STRING),
                _f("source_topics", Array(STRING)),
                _f("source_topic_regex", Array(STRING)),
                _f("state_changelog_topics", _TOPIC_INFO),
                _f("repartition_sink_topics", Array(STRING)),
                _f("repartition_source_topics", _TOPIC_INFO),
                _f(
                    "copartition_groups",
                    Array(
                        _struct(
                            _f("source_topics", Array(INT16)),
                            _f("source_topic_regex", Array(INT16)),
                            _f("repartition_source_topics", Array(INT16)),
                        )
                    ),
                ),
            )
        ),
    ),
)

TRANSACTION = _struct(
    _f("producer_id", INT64),
    _f("previous_producer_id", INT64, tag=0),
    _f("next_producer_id", INT64, tag=1),
    _f("producer_epoch", INT16),
    _f("next_producer_epoch", INT16, tag=3),
    _f("timeout_ms", INT32),
    _f("state_number", INT8),
    _f("partitions", _TOPIC_PARTITIONS, nullable=True),
    _f("last_update_ms", INT64),
    _f("start_ms", INT64),
    _f("client_version", INT16, tag=2),
)
