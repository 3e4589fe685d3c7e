"""The configuration keys a snapshot may keep: those that decide whether data survives, and no other.

An allow-list in place of a dump: brokers hold passwords, JAAS lines and file paths that an audit has no business storing.
"""

TOPIC_KEYS: frozenset[str] = frozenset(
    {
        "cleanup.policy",
        "compression.type",
        "delete.retention.ms",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.difference.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    }
)

# Keys that the broker itself does not define, because plug-ins read them: brokers list them only where they are set, and answer them
# as sensitive, without a value (seen on Kafka 4.3.1 with StandardAuthorizer: allow.everyone.if.no.acl.found=false came back as null).
# So a row says that the key is set, not to what; the prefix of rlmm.config. is remote.log.metadata.manager.impl.prefix's default.
HIDDEN_BROKER_KEYS: frozenset[str] = frozenset(
    {
        "allow.everyone.if.no.acl.found",
        "rlmm.config.remote.log.metadata.topic.min.isr",
        "rlmm.config.remote.log.metadata.topic.replication.factor",
    }
)

BROKER_KEYS: frozenset[str] = frozenset(
    {
        "authorizer.class.name",
        "auto.create.topics.enable",
        "auto.leader.rebalance.enable",
        "broker.rack",
        "controlled.shutdown.enable",
        "default.replication.factor",
        "delete.topic.enable",
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumer.max.session.timeout.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.session.timeout.ms",
        "group.coordinator.rebalance.protocols",
        "group.initial.rebalance.delay.ms",
        "group.max.session.timeout.ms",
        "group.min.session.timeout.ms",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.enable",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.flush.scheduler.interval.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.retention.bytes",
        "log.retention.check.interval.ms",
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "log.roll.hours",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "message.max.bytes",
        "min.insync.replicas",
        "num.partitions",
        "num.replica.fetchers",
        "offsets.commit.timeout.ms",
        "offsets.retention.check.interval.ms",
        "offsets.retention.minutes",
        "offsets.topic.compression.codec",
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
        "offsets.topic.segment.bytes",
        "process.roles",
        "producer.id.expiration.ms",
        "remote.log.storage.system.enable",
        "replica.fetch.max.bytes",
        "replica.fetch.response.max.bytes",
        "replica.lag.time.max.ms",
        "replica.selector.class",
        "share.coordinator.state.topic.min.isr",
        "share.coordinator.state.topic.replication.factor",
        "socket.request.max.bytes",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.state.log.min.isr",
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transactional.id.expiration.ms",
        "unclean.leader.election.enable",
    }
    | HIDDEN_BROKER_KEYS
)

# GroupConfig of Kafka 4.3.1 (KIP-848, KIP-932, KIP-1071); older brokers answer those that they have.
GROUP_KEYS: frozenset[str] = frozenset(
    {
        "consumer.assignment.interval.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.session.timeout.ms",
        "share.assignment.interval.ms",
        "share.auto.offset.reset",
        "share.delivery.count.limit",
        "share.heartbeat.interval.ms",
        "share.isolation.level",
        "share.partition.max.record.locks",
        "share.record.lock.duration.ms",
        "share.renew.acknowledge.enable",
        "share.session.timeout.ms",
        "streams.assignment.interval.ms",
        "streams.heartbeat.interval.ms",
        "streams.initial.rebalance.delay.ms",
        "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    }
)
