"""The configuration keys a snapshot may keep: those that decide whether data survives, and no other.

An allow-list in place of a dump: brokers hold passwords, JAAS lines and file paths that an audit has no business storing.
"""


def _keys(*themes: str) -> frozenset[str]:
    return frozenset(key for theme in themes for key in theme.split())


TOPIC_KEYS = _keys(
    "cleanup.policy compression.type max.message.bytes min.insync.replicas preallocate unclean.leader.election.enable",
    "delete.retention.ms max.compaction.lag.ms min.cleanable.dirty.ratio min.compaction.lag.ms",
    "file.delete.delay.ms flush.messages flush.ms segment.bytes segment.jitter.ms segment.ms",
    "retention.bytes retention.ms local.retention.bytes local.retention.ms",
    "remote.storage.enable remote.log.copy.disable remote.log.delete.on.disable",
    "message.timestamp.type message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.difference.max.ms",
    "leader.replication.throttled.replicas follower.replication.throttled.replicas",
)

# Brokers define these for dynamic configuration only: they list them where they are set, and nowhere else (seen on Kafka 4.3.1).
THROTTLE_RATE_KEYS = _keys("leader.replication.throttled.rate follower.replication.throttled.rate")

BROKER_KEYS = THROTTLE_RATE_KEYS | _keys(
    "process.roles broker.rack controlled.shutdown.enable authorizer.class.name delete.topic.enable unclean.leader.election.enable",
    "auto.create.topics.enable auto.leader.rebalance.enable default.replication.factor min.insync.replicas num.partitions",
    "replica.lag.time.max.ms replica.selector.class replica.fetch.max.bytes replica.fetch.response.max.bytes num.replica.fetchers",
    "message.max.bytes socket.request.max.bytes remote.log.storage.system.enable",
    "log.retention.bytes log.retention.ms log.retention.minutes log.retention.hours log.retention.check.interval.ms",
    "cordoned.log.dirs log.cleanup.policy log.cleaner.enable log.cleaner.delete.retention.ms log.cleaner.min.compaction.lag.ms",
    "log.flush.interval.messages log.flush.interval.ms log.flush.scheduler.interval.ms",
    "log.roll.hours log.roll.ms log.segment.bytes log.segment.delete.delay.ms",
    "log.message.timestamp.type log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms",
    "group.coordinator.rebalance.protocols group.initial.rebalance.delay.ms group.min.session.timeout.ms group.max.session.timeout.ms",
    "group.consumer.session.timeout.ms group.consumer.min.session.timeout.ms group.consumer.max.session.timeout.ms",
    "group.consumer.heartbeat.interval.ms group.consumer.min.heartbeat.interval.ms group.consumer.max.heartbeat.interval.ms",
    "offsets.retention.minutes offsets.retention.check.interval.ms offsets.commit.timeout.ms",
    "offsets.topic.num.partitions offsets.topic.replication.factor offsets.topic.segment.bytes offsets.topic.compression.codec",
    "transaction.max.timeout.ms transactional.id.expiration.ms transaction.partition.verification.enable producer.id.expiration.ms",
    "transaction.state.log.num.partitions transaction.state.log.replication.factor transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor share.coordinator.state.topic.min.isr",
    # The broker does not define these, because plug-ins read them: it lists them only where they are set, and answers them as
    # sensitive, without a value (seen on Kafka 4.3.1 with StandardAuthorizer: allow.everyone.if.no.acl.found=false came back as
    # null). So a row says that the key is set, not to what. rlmm.config. is the default of remote.log.metadata.manager.impl.prefix.
    "allow.everyone.if.no.acl.found",
    "rlmm.config.remote.log.metadata.topic.replication.factor rlmm.config.remote.log.metadata.topic.min.isr",
)

# What the active controller applies by itself (ReplicationControlManager, ConfigurationControlManager and QuorumController of Kafka 4.3.1).
# min.insync.replicas is the value that turning eligible leader replicas on sets for the whole cluster (maybeGenerateElrSafetyRecords).
CONTROLLER_KEYS = _keys(
    "process.roles unclean.leader.election.enable auto.leader.rebalance.enable",
    "default.replication.factor min.insync.replicas num.partitions",
)

# GroupConfig of Kafka 4.3.1 (KIP-848, KIP-932, KIP-1071); older brokers answer those that they have.
GROUP_KEYS = _keys(
    "consumer.assignment.interval.ms consumer.heartbeat.interval.ms consumer.session.timeout.ms",
    "share.assignment.interval.ms share.heartbeat.interval.ms share.session.timeout.ms share.auto.offset.reset share.isolation.level",
    "share.delivery.count.limit share.partition.max.record.locks share.record.lock.duration.ms share.renew.acknowledge.enable",
    "streams.assignment.interval.ms streams.heartbeat.interval.ms streams.session.timeout.ms",
    "streams.initial.rebalance.delay.ms streams.num.standby.replicas",
)
