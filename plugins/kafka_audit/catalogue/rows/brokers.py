"""Wide rows of brokers, and of the cluster as a whole."""

from kafka_audit.catalogue.rows.columns import CONFIG, ERRORS, HISTORY_MS, INTS, RESOURCE, SNAPSHOTS, columns

BROKER = columns(f"""
    {RESOURCE}
    broker_id           int           broker id
    rack                string        broker.rack
    alive               boolean       registered in the cluster's metadata
    answered            boolean       answered every request that was sent to it
    config              {CONFIG}      effective broker configuration with source and synonyms
    replication_throttles array<string> throttle rates in its dynamic configuration, as 'leader.replication.throttled.rate=1000 (bytes per
        second)'; empty when none is set, NULL when its configuration could not be read
    reassigning_partitions bigint     partitions of the cluster with a reassignment in progress; NULL when they could not be listed, or when
        none is seen and the snapshot does not cover every topic
    led_partitions      int           partitions that it leads; NULL when partitions could not be read, and so are the next two
    preferred_partitions int          partitions whose preferred leader it is: the first of their assigned replicas
    preferred_led_elsewhere int       of those, partitions that another broker leads although this one is in sync
    may_be_active_controller boolean  it is a voter of the metadata quorum, or the cluster is on ZooKeeper, so that its own settings may be
        those of the active controller; NULL when the voters are not known
    log_dirs            int           number of log dirs it reports
    failed_log_dirs     array<string> log dirs that report an error, with the error's name
    cordoned_log_dirs   array<string> log dirs that take no new replicas (KIP-1066), or '*' for all; empty when there is none; NULL when its
        configuration could not be read, or leaves the setting out although the broker is not known to be older than 4.3
    fullest_log_dir     string        of the log dirs that tell their size (KIP-827), the one with the smallest share of free space
    total_bytes         bigint        capacity of that volume
    usable_bytes        bigint        free space of that volume
    unmeasured_log_dirs array<string> log dirs that do not tell their size
    days_to_full        double        fewest days until a log dir's volume is full, at the pace of a day; at most 3650; NULL without that
        history
    pace_ms             bigint        the time over which that pace was seen; 0 when not every log dir is in a snapshot that old
    stray_replicas      array<string> replicas on its disks that the assignment of their partition does not name, with the log dir; at most
        20; NULL when its log dirs could not be read, and so are the next four
    lasting_stray_replicas array<string> of those, the ones that were stray in the newest snapshot that is ten minutes older, too
    moving_replicas     int           replicas that it is moving to another of its log dirs
    stuck_moves         array<string> of those, the ones that are no less behind than in that snapshot, with both offset lags; at most 20
    uncompared_moves    int           of those, the ones whose progress is not known: without such a snapshot, or without an offset lag
    {ERRORS}
""")

_CLUSTER_POLICY = "struct<tier:string,replication_factor:int,interval_ms:bigint,clients_declared:boolean>"
_ATTESTATIONS = (
    "map<string,struct<attested_by:string,attested_on:string,expires:string,statement:string,outcome:string,file:string,sha256:string,"
    "in_force:boolean>>"
)
_UNDECLARED = "array<struct<what:string,count:bigint,names:array<string>>>"
CLUSTER = columns(f"""
    {RESOURCE}
    cluster_id                 string        Kafka's cluster id
    brokers_known              {INTS}        ids seen in metadata, replica lists or the quorum's voters that are brokers
    brokers_alive              {INTS}        ids registered now
    brokers_answered           {INTS}        ids that answered every request
    racks                      int           distinct racks of the alive brokers, unknown ones not counted
    brokers_without_rack       {INTS}        alive brokers without broker.rack
    voters                     {INTS}        voters of the metadata quorum
    healthy_voters             {INTS}        voters within 10 s of the leader's clock; NULL when the cluster reports no times (KIP-836)
    observers                  {INTS}        alive brokers that are no voters, and so read the metadata log as observers of the quorum
    caught_up_observers        {INTS}        of those, the ones that the leader lists within 60 s of its clock; NULL when it reports
        no times
    dedicated_controllers      {INTS}        voters of the metadata quorum that are no brokers; empty when every voter is a broker, or the
        cluster is on ZooKeeper; NULL when the voters are not known
    controllers_answered       {INTS}        of those, the ones that told their configuration to the auditor
    controller_values          map<string,array<string>> distinct effective values of a key on those dedicated controllers that told it
    controller_settings        array<string> what these told, as 'controller 3000: unclean.leader.election.enable=false (DEFAULT_CONFIG),
        default.replication.factor=3 (STATIC_BROKER_CONFIG)'; sorted, at most 20
    transaction_count          bigint        transactional ids that coordinators list; NULL when they could not be listed, or none is listed
        and a transaction is open, or may be where producers could not be read
    unfinished_transaction_count bigint      of those, transactions that should have ended: open or prepared a minute after their timeout,
        or prepared in a snapshot that is a minute older, too; NULL as above
    unfinished_transactions    array<string> these, as 'till-3: PrepareCommit since 1260 s (timeout 60 s)'; sorted, at most 20
    drifting_keys              array<string> durability keys whose value differs between brokers, with the values; sorted, at most 50
    weaker_override_count      bigint        topic overrides weaker than the brokers' value
    weaker_overrides           array<string> topic: key=value (broker value); sorted, at most 20
    clock_skew_ms              bigint        auditor's clock minus the quorum leader's, at most this far apart; NULL when not known
    unread_items               bigint        items of evidence that could not be read
    unread_by_dataset          map<string,bigint> the same by dataset
    hidden_topics              array<string> topics on disk that metadata does not show: Describe permission is missing; at most 20
    snapshot_seconds           double        how long the snapshot took
    features                   map<string,struct<finalized:int,supported:int>> feature -> finalized level, and highest level that every
        broker supports; 0 where brokers know none
    authorizers                array<string> distinct authorizer.class.name of the brokers that have one; NULL when no broker told
    brokers_without_authorizer {INTS}        alive brokers that have none; NULL when no such broker is known and not all of them told
    allow_if_no_acl            string        allow.everyone.if.no.acl.found: true, false, not set, or hidden: brokers hide a set value
    acls_disabled              boolean       DescribeAcls returned SECURITY_DISABLED: no authorizer; NULL when it was refused or failed
    destructive_grant_count    bigint        ACLs that let an unapproved principal alter or delete all of a kind, or the cluster
    destructive_grants         array<string> these, as 'User:bob may Delete on topic *'; sorted, at most 50
    own_operation_count        bigint        operations beyond reading that the auditor itself may do on cluster, topics, groups (KIP-430)
    own_operations             array<string> where and what that is, as 'topic orders: Delete, Write'; sorted, at most 50
    own_rights_unread          bigint        of the cluster, its topics and its groups, those whose brokers did not tell the auditor's
        rights; groups that are Empty, which are not asked, do not count
    group_count                bigint        groups that brokers list; NULL when none is listed and not every broker told
    group_count_before         bigint        groups in the last audit's snapshot, or the nearest of this scope before it; 0 without one,
        NULL when it does not tell
    {SNAPSHOTS}
    {HISTORY_MS}
    longest_gap_ms             bigint        longest time between two snapshots that follow each other in the history
    incomplete_snapshots       array<string> earlier snapshots with a missing or silent broker, or with clocks not compared; at most 20
    clock_skew_before_ms       bigint        largest difference between the clocks in these snapshots; NULL when none told
    unusable_snapshots         array<string> earlier snapshots that were left out of the history, with the reason; at most 20
    client_quotas              array<struct<entity:string,key:string,value:double>> quotas that limit clients (producer_byte_rate and
        consumer_byte_rate in bytes per second and broker, request_percentage), of each key the 20 lowest; NULL when they could not be read
    write_bytes_per_s          double        bytes per second that the busiest broker took on average since an earlier snapshot, estimated
        by log ends and sizes; NULL when not known, and without a producer_byte_rate
    undeclared                 {_UNDECLARED} what owners have not declared, of topics and groups of tiers that demand it: what, how many,
        the first 20 names; empty when nothing is missing; NULL when topics or groups could not be listed
    attestations               {_ATTESTATIONS} control code -> the newest attestation of it in attestations.yaml that was given before the
        snapshot; in_force: it had not expired then
    policy                     {_CLUSTER_POLICY} the default tier's requirements, the interval between snapshots the policy promises, and
        whether any tier demands that clients are declared
    {ERRORS}
""")
