"""Wide rows of topics, of their partitions, and of topics that the policy declares."""

from kafka_audit.catalogue.rows.columns import CONFIG, ERRORS, HISTORY_MS, INTS, IS_NEW, RESOURCE, SNAPSHOTS, TOPIC_POLICY, columns

TOPIC = columns(f"""
    {RESOURCE}
    topic                        string        topic name
    topic_id                     string        topic id (KIP-516)
    is_internal                  boolean       internal topic such as __consumer_offsets
    framework                    string        Kafka Connect, MirrorMaker 2 or Kafka Streams: whose own topic it is, by its name, its
        cleanup policy, and the groups and topics beside it (spark_jobs/rows/topic/framework_topics.py); NULL of another topic;
        perhaps Kafka Connect where not all topics and groups were read that could prove it
    partition_count              int           number of partitions
    replication_factor_min       int           fewest replicas of any partition; while it is reassigned the fewer of those that it has,
        without those being added, and of those that it will have, without those being removed
    replication_factor_max       int           most replicas of any partition, counted in the same way
    fewest_replicas_partition    int           the first partition with the fewest replicas
    reassigning_partitions       int           partitions with a reassignment in progress, as far as reassignments could be listed
    cluster_reassigning_partitions bigint      the same of all topics of the cluster; NULL when they could not be listed, or when none is
        seen and the snapshot does not cover every topic
    isr_count_min                int           fewest in-sync replicas of any partition
    min_insync_replicas          int           effective value: min(configured, fewest replicas without those being removed); where the
        topic inherits it and brokers differ, with the lowest value of a broker
    min_insync_replicas_max      int           the same with the highest value of a broker
    config                       {CONFIG}      effective topic configuration with source and synonyms; of an inherited setting on which
        alive brokers differ, the lowest min.insync.replicas, the shortest retention.ms and retention.bytes, and no value of another one;
        its source is then "brokers differ"
    timestamp_before_max_ms      bigint        message.timestamp.before.max.ms as brokers apply it: from 3.6 to 3.9 the value of
        message.timestamp.difference.max.ms where it is not set; NULL when it could not be read, and before 3.6
    timestamp_after_max_ms       bigint        message.timestamp.after.max.ms in the same way
    broker_values                map<string,array<string>> distinct effective values of a key, for keys that every broker answered
    dedicated_controllers        {INTS}        voters of the metadata quorum that are no brokers; empty when every voter is a broker, or the
        cluster is on ZooKeeper; NULL when the voters are not known
    elector_values               array<string> distinct values of unclean.leader.election.enable on the voters, with ZooKeeper on the
        brokers, but for brokers that are down, by their own word or by the cluster-wide dynamic value; NULL when none is true and one is
        not known
    racks                        int           distinct racks of the alive brokers; NULL when a broker has no rack
    rack_spread_min              int           fewest distinct racks of any partition's replicas, without those being removed; NULL when a
        replica's rack is unknown
    rack_spread_partition        int           the first partition with that spread, of those whose racks are known
    rack_survivors_min           int           fewest of these replicas left after losing any one rack; NULL when a rack is unknown
    rack_survivors_best_case     int           the same with every unknown rack taken as a rack of its own: the truth cannot be better
    rack_survivors_partition     int           the first partition where it is that few, at best
    in_sync_survivors_min        int           fewest replicas in sync now that are left after losing any one rack; NULL as above
    in_sync_survivors_best_case  int           the same with every unknown rack taken as a rack of its own
    in_sync_survivors_partition  int           the first partition where it is that few, at best
    tiered_retention_ms_max      bigint        for __remote_log_metadata: longest retention.ms of any topic known to be tiered, -1 when one
        is unlimited, 0 when none is tiered
    tiered_retention_gap         string        for __remote_log_metadata: why further topics may be tiered or keep records for longer; NULL
        when all are known
    upload_lag                   bigint        of a tiered topic: offsets up to the log end that are not in the remote store; NULL when not
        known of all partitions
    upload_overdue               bigint        of these, offsets of records that should have been uploaded an hour ago, by
        local.retention.ms and segment.ms; NULL when none is seen and it is not known of all partitions
    upload_overdue_partition     int           the partition with the most of these; NULL when there is none
    size_bytes_max               bigint        bytes of the largest partition (its largest replica)
    compacted_growth             double        largest factor by which a partition of a compacted topic grows in a day, since the newest
        snapshot that is a day older; 0 when none is larger than ten segments (segment.bytes), NULL when of none of those the size then is
        known
    grown_partition              int           the partition that grows by that factor; NULL without one
    grown_to_bytes               bigint        its bytes now (its largest replica)
    grown_from_bytes             bigint        its bytes then
    uncompared_partitions        int           partitions of more than ten segments whose size then is not known
    recent_write_partitions      int           partitions whose newest record is younger than 24 h
    identified_write_partitions  int           of those, partitions whose newest record is from an idempotent producer
    unidentified_write_partitions int           of those, partitions whose newest record has no producer id, or one unknown to the leader
    unidentified_partitions      {INTS}        their numbers, at most 20
    undecided_write_partitions   int           where that is not known: not readable, or a producer id's last record is less than 1 h older
    header_read_partitions       int           of those written within 24 h, partitions whose newest batch was read, with a producer id or
        not
    declared_producers           array<struct<name:string,settings:map<string,string>>> producers that clients.yaml declares for this topic,
        with their effective settings; empty when it declares none
    declared_consumers           array<struct<name:string,settings:map<string,string>>> consumers that clients.yaml declares for this topic,
        with their effective settings; empty when it declares none
    {SNAPSHOTS}
    {HISTORY_MS}
    {IS_NEW}
    earlier_topic_ids            array<string> other topic ids this name had in earlier snapshots, oldest first
    partition_count_before       int           number of partitions of this topic id in the last audit's snapshot; of a topic that was not
        there yet, in the first snapshot of any kind that shows it
    {TOPIC_POLICY}
    {ERRORS}
""")

_FORGOTTEN_TRANSACTIONS = "array<struct<producer_id:bigint,start_offset:bigint,silent_ms:bigint>>"
PARTITION = columns(f"""
    {RESOURCE}
    topic                      string        topic name
    partition                  int           partition number
    is_internal                boolean       of an internal topic
    leader                     int           leader's broker id, -1 when there is none
    leader_epoch               int           leader epoch
    leader_alive               boolean       the leader is a registered, unfenced broker
    replicas                   {INTS}        assigned replicas
    replication_factor         int           number of assigned replicas without those being added
    isr                        {INTS}        in-sync replicas
    isr_count                  int           number of in-sync replicas
    lagging_replicas           {INTS}        assigned replicas that are not in sync and not being added
    offline_replicas           {INTS}        replicas on dead brokers or failed log dirs
    min_insync_configured      int           min.insync.replicas as configured
    min_insync_replicas        int           effective value: min(configured, assigned replicas, those being added too); the configured
        value where the leader is of a release before 3.7; NULL when it exceeds the replicas and the leader's release is not known
    eligible_leader_replicas   {INTS}        ELR (KIP-966); NULL when the feature is off
    elr_supported              boolean       every broker supports eligible.leader.replicas.version 1
    elr_enabled                boolean       that level, or a higher one, is finalized
    reassigning                boolean       a reassignment is in progress
    confirmed                  boolean       a bad state was seen again in a second read some seconds later
    log_start                  bigint        log start offset
    log_end                    bigint        log end offset (high watermark)
    last_stable                bigint        last stable offset
    open_transactions          int           producers with an open transaction here; NULL when producers could not be read
    oldest_transaction_ms      bigint        time since the last record of the open transaction that has been silent longest
    forgotten_transactions     {_FORGOTTEN_TRANSACTIONS} open transactions that began below log_end and in which their coordinator does not
        know this partition, the longest silent first, at most 20; silent_ms: time since the last record; NULL when producers or
        transactions could not be read
    transaction_max_timeout_ms bigint        transaction.max.timeout.ms, the greatest of the brokers'; NULL when one did not tell
    {SNAPSHOTS}
    {HISTORY_MS}
    {IS_NEW}
    earlier_ms                 bigint        time since the last audit's snapshot, or the first one that shows this partition of this topic
        id, if that is later
    leader_changes             int           growth of the leader epoch since that snapshot
    log_end_before             bigint        largest log end of the same topic id that any snapshot of either kind read before this one's
    isr_counts                 {INTS}        isr_count of the snapshots, this one first, then back in time; at most 10
    behind_stable              array<bigint> log_end - last_stable of the snapshots, this one first, then back in time; at most 10
    under_replicated_ms        bigint        time since the first of the latest unbroken snapshots with replicas missing from the ISR
    reassigning_ms             bigint        time since the first of the latest unbroken snapshots with the reassignment that is running;
        NULL when none is
    reassigning_at_most_ms     bigint        time since the newest snapshot without it; NULL when there is none, or none is running
    {TOPIC_POLICY}
    {ERRORS}
""")

DECLARED_TOPIC = columns(f"""
    {RESOURCE}
    topic    string  a topic that the policy declares
    in_scope boolean the audit was asked to look at it
    present  boolean metadata lists it; NULL when topics could not be listed or it may be hidden by a missing permission
    tier     string  its tier
    {ERRORS}
""")
