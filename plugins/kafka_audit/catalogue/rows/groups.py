"""Wide rows of groups, of the partitions they read, and of groups that the policy declares."""

from kafka_audit.catalogue.rows.columns import ERRORS, HISTORY_MS, RESOURCE, SNAPSHOTS, columns

STATUSES = (
    *("LOST", "LOSING", "REWOUND", "STOPPED", "STALLED", "GROWING", "SLOW", "NO_COMMIT", "ORPHAN", "ABANDONED"),
    *("NOT_ASSESSED", "INSUFFICIENT_HISTORY", "OK"),
)
"""What a group partition can be, worst first (docs/lag.md)."""

# From the commit history: one struct, NULL if the offsets topic was not read, and the reason for NULL.
_READ = "as_of:string,hours:double"
GROUP_BEHAVIOUR = (
    f"struct<{_READ},auto_commit:string,auto_commit_interval_ms:bigint,auto_commit_confidence:string,auto_commit_reason:string,"
    "assignor:string,member_count:int,static_members:int,session_timeout_ms:bigint,rebalance_timeout_ms:bigint,generations:bigint,"
    "rebalances:bigint,longest_rebalance_ms:bigint,window_hours:double>"
)
PARTITION_BEHAVIOUR = (
    f"struct<{_READ},as_of_ms:bigint,commits:bigint,unchanged:bigint,rewinds:bigint,last_rewind_at:string,rewound_from:bigint,"
    "unclear_from:bigint,last_commit_ms:bigint,longest_gap_ms:bigint,jumps:bigint,committed:bigint,moved_ms:bigint,empty_ms:bigint,own_expiry:boolean,"
    "lost_ms:bigint>"
)

_REASON = """behaviour_reason string why behaviour is NULL: no commit history could be used, with the cause, or it shows nothing of this;
        else NULL
"""
BEHAVIOUR_OF_GROUP = f"""
    behaviour {GROUP_BEHAVIOUR} what the records of the offsets topic show of the group in the `window_hours` up to `as_of`; NULL where they
        were not read. `hours` is how much of that, up to as_of, was read without a hole, for which what is not shown was not there.
        auto_commit is consistent, unlikely, excluded or unknown, inferred from the times between commits; timeouts, assignor and members
        are those of the newest records; rebalances are series of generations or epochs less than 30 s apart, and each further 30 s of one
    {_REASON}
"""
BEHAVIOUR_OF_PARTITION = f"""
    behaviour {PARTITION_BEHAVIOUR} what the group's commits on the partition show, over `hours` without a hole up to `as_of`, as_of_ms
        before the snapshot; NULL where they were not read. committed is the newest commit, however old, and last_commit_ms how long before
        the snapshot it was; moved_ms is how long before it a commit of the window moved forward, rewound_from the largest offset from which
        one went back; unclear_from the same of commits without topic id before an offset was removed, which may be of an earlier topic of
        that name; empty_ms is how long a classic group has had no members by its own records, NULL when these show some or were not
        read; own_expiry says that the newest commit carries an expiry of its own; lost_ms is how long before the snapshot newest records
        were last lost, NULL: never
    {_REASON}
"""

GROUP = columns(f"""
    {RESOURCE}
    group_id              string        group id: free text
    group_type            string        classic, consumer, share, streams or unknown
    protocol_type         string        what its members are: consumer, connect, ...; NULL for a group that has only committed
    state                 string        state from ListGroups
    member_count          int           members; NULL when they could not be described
    assignor              string        partition assignor: of a classic group its protocol, of a consumer group the broker's
    unassigned_partitions array<string> partitions of topics its members subscribe that no member has; at most 20; NULL when not known
    unassigned_count      int           number of these
    commit_count          int           partitions on which the group has a commit; NULL when its commits could not be read
    uncommitted_partitions array<string> of a group in state Empty: partitions with records and without a commit of the group, of topics on
        which it has one; at most 20; NULL when none was found and the offsets of one that has no commit could not be read
    uncommitted_count     int           number of these
    {SNAPSHOTS}
    {HISTORY_MS}
    snapshots_rebalancing int           snapshots of the history, this one included, in which the group was rebalancing
    tier                  string        the group's tier
    {BEHAVIOUR_OF_GROUP}
    {ERRORS}
""")

_SLA_POLICY = (
    "struct<tier:string,sla:string,max_lag_records:bigint,max_lag_ms:bigint,max_no_progress_ms:bigint,breach_samples:int,breach_of:int,"
    "target_percent:double,window_days:int>"
)
GROUP_SLA = columns(f"""
    {RESOURCE}
    group_id               string  group id: free text
    group_type             string  classic, consumer, share, streams or unknown
    protocol_type          string  protocol type of the group; NULL for one that has only committed, without members
    state                  string  state from ListGroups
    member_count           int     members; NULL when they could not be described
    partition_count        int     partitions with a committed offset that the SLA covers; without an SLA, all of the group's; of the
        topics in the audit's scope
    some_topics_only       boolean the audit was asked to look at some topics only, so commits on other topics are not seen
    unmeasured             string  what it may have to read that no lag shows: of a group without members, topics hidden from the
        auditor; and partitions of its topics with records and without a commit, whether a member reads them or not; or why that is
        unknown. NULL if there is none
    lag_known              bigint  sum of the records behind the log end, without transaction ends where known, over those of these
        partitions of which both offsets were read and whose commit is not beyond the end
    lag_least              bigint  lag_known without what may be no lag: partitions that are one offset behind, which may be the end of a
        transaction, and without a declared isolation level lag_held
    lag_held               bigint  unread records that open transactions hold back from read_committed consumers; they are not in lag_known
        if isolation is read_committed
    isolation              string  isolation.level by the declaration of the group's consumers; NULL when it is not known
    lag_max                bigint  largest lag of these partitions
    lag_max_partition      string  where it is, as topic-partition
    unknown_partitions     int     partitions with a commit whose lag could not be computed
    beyond_partitions      int     those of these whose commit lies beyond the log end
    {SNAPSHOTS}
    {HISTORY_MS}
    lag_growth             double  records per hour by which its lag grows, over snapshots of as many partitions; NULL below three of them
    behind_partitions      int     partitions whose commit is below the offset that the brokers named for the SLA in seconds
    behind_partition       string  the first of these, as topic-partition
    unasked_partitions     int     partitions with a commit of which that is not known
    hidden_record          string  the first whose first unread record hides its age, as topic-partition (error, or that its timestamp
        lies in the future)
    lag_ms                 bigint  largest lag in time of its partitions
    lag_ms_partition       string  where it is, as topic-partition
    lag_ms_method          string  how that lag was found (lag_ms_method of group_partition)
    unasked_lag_ms         bigint  largest lag in time of the unasked partitions
    lag_ms_is_bound        boolean on some unasked partition the history is too short to tell more than a lower bound
    lag_ms_least           bigint  largest lag_ms_least of the unasked partitions: what is proven
    lag_ms_gap             bigint  largest distance between lag_ms_least and lag_ms_most of an unasked partition: the time between snapshots
    lag_ms_unknown         int     unasked partitions whose lag in time could not be computed
    still_ms               bigint  how long records have waited on some partition without its commit moving, by samples without a gap
    quiet                  boolean the snapshot was taken in quiet hours of the SLA; NULL without an SLA
    recent_within_ms       bigint  how old the newest samples that breach asks for may be, quiet hours left out; NULL without an SLA
    recent_lag_known       bigint  of the newest samples that breach asks for: those whose lag in records could be judged
    recent_lag_outside     bigint  of these, samples in which it was not within limits
    recent_time_known      bigint  of the newest samples that breach asks for: those in which brokers told whether the seconds were kept
    recent_time_outside    bigint  of these, samples in which they were not
    samples                bigint  samples of the window that show the group; NULL without an SLA, as all that follows
    samples_outside        bigint  samples in which a limit was broken
    minutes_in             bigint  minutes of the window in which all limits were kept
    minutes_out            bigint  minutes in which one was broken
    minutes_quiet          bigint  minutes in quiet hours
    minutes_not_assessed   bigint  all other minutes: gaps, and samples that could not be judged
    known_percent          double  share of the window, without quiet hours, of which it is known whether all limits were kept; NULL if it
        is all quiet
    availability_percent   double  minutes_in of minutes_in and minutes_out; NULL without any
    budget_allowed_minutes double  minutes of the window, without quiet ones, that may be out by the target; NULL without a target
    budget_used_minutes    double  minutes that were out; NULL without a target
    budget_left_minutes    double  what is left of those allowed, negative when it is overspent; NULL without a target
    worst_lag              bigint  largest lag in records while a limit was broken
    worst_still_ms         bigint  longest time without progress while a limit was broken
    policy                 {_SLA_POLICY} the SLA's tier or else the group's, and the lag SLA; NULL fields are not limited, and without an
        SLA all but the tier are NULL
    {ERRORS}
""")

GROUP_PARTITION = columns(f"""
    {RESOURCE}
    group_id              string  group id: free text
    topic                 string  topic name
    partition             int     partition number
    group_type            string  classic, consumer, share, streams or unknown
    protocol_type         string  protocol type of the group; NULL for one that has only committed, without members
    state                 string  state of the group
    topic_exists          boolean metadata lists the topic, with as many partitions
    assigned              boolean a member has the partition assigned; NULL when members could not be described
    has_commit            boolean the group has a committed offset here; NULL when it could not be read
    committed             bigint  committed offset
    log_start             bigint  log start offset
    log_end               bigint  log end offset (high watermark)
    last_stable           bigint  last stable offset
    lag                   bigint  log_end - max(committed, log_start), never negative
    lost                  bigint  log_start - committed where positive: records deleted unread (an upper bound), else 0
    beyond_end            bigint  committed - log_end where positive, else 0
    margin                bigint  committed - log_start: how many offsets the log start is away from the commit; negative after a loss
    recreated             boolean the history shows the topic with another id, too; NULL when no earlier snapshot shows it
    truncated             bigint  offsets by which the log end of this topic id went back at most; 0 if never; NULL with one snapshot
    abandoned             boolean the group is Stable and none of its members reads the topic any more; NULL when something is unread or
        lost, no member tells that it reads the topic, and not all tell what they have assigned and subscribe
    compacted             boolean cleanup.policy contains compact: lag and loss are upper bounds
    deletes               boolean cleanup.policy contains delete: retention deletes records
    tiered                boolean remote.storage.enable: sizes on local disks are only a part
    retention_ms          bigint  effective retention.ms, -1 for none
    retention_bytes       bigint  effective retention.bytes, -1 for none
    headroom_timestamp_ms bigint  snapshot time minus a quarter of retention.ms
    headroom_offset       bigint  first offset with a record at least that young, or the log end
    record_offset         bigint  offset of the first unread record; NULL when there is none or it was not read
    first_is_record       boolean that record, or the last batch with all that is unread, was read and holds records; false where nothing
        tells whether the first unread offset is a record
    unread_bytes          bigint  lag in bytes, estimated from size and record count of the partition; local disks only; NULL when not known
    hidden_record         string  what hides the first unread record's age although the log may be read: an error (too large, damaged) or a
        timestamp in the future
    only_markers_unread   boolean only ends of transactions and aborted records follow the commit; NULL without lag, or if neither the
        next record nor the last batch could be read
    snapshots             int     snapshots that show the group's commit on this topic (same topic id), this one included
    {HISTORY_MS}
    committed_before      bigint  largest committed offset of the earlier ones of these snapshots
    committed_before_at   string  when an offset above the present one was last seen, as UTC text; NULL when none was
    rewinds               int     how often the committed offset was smaller than in the snapshot before
    unchanged_ms          bigint  how long the commit has not changed, at least: since the first snapshot of the unbroken run that shows it
    changed_within_ms     bigint  how long ago the committed offset was another one, at most; NULL when no earlier snapshot shows another
    caught_up_within_ms   bigint  how long ago a group with this commit had read all records; 0 without lag; NULL when no snapshot shows it
    idle_snapshots        int     snapshots up to this one that show the same commit and after it a record it could read; 0 when lag is 0
    idle_ms               bigint  time from the first of these snapshots to this one; 0 when lag is 0
    idle_most_ms          bigint  the same, with snapshots in which a record may have followed: one offset may be the end of a transaction,
        and a read_committed group has to wait for an open one
    empty_ms              bigint  how long the group has had no members, at least as far as snapshots show; NULL when it has some
    empty_within_ms       bigint  how long ago it had some, at most; NULL when it has some, or no earlier snapshot shows any
    offsets_retention_ms  bigint  offsets.retention.minutes in milliseconds, the least of the brokers'; NULL when not all told
    lag_ms                bigint  lag in time, milliseconds: age of the first unread record, or of the log end there; 0 when caught up
    lag_ms_method         string  how it was found: 'caught up'; 'record timestamp' of the first unread record, which under CreateTime is a
        producer's clock; 'interpolated' between two snapshots, where there is none or it contradicts them; 'at least', where the history is
        too short
    lag_ms_is_bound       boolean the first unread record is older than the history: the lag is at least lag_ms
    lag_ms_least          bigint  how long the first unread record has been there, at least: by the later of the two snapshots, or by
        the first that shows more than one offset which may be the end of a transaction
    lag_ms_most           bigint  and at most: by the earlier of the two; if the history is too short, by the record's timestamp, else NULL
    behind_sla            boolean the group has not passed the offset that brokers named for its SLA in seconds, or its first unread record
        is older; false when caught up; NULL when not asked, with a commit beyond the log end, with a hidden_record that nothing shows to be
        late, where the one older offset may be the end of a transaction, and where snapshots contradict
    sla_seconds_asked     int     the SLA in seconds that this offset was asked for; NULL when it was not
    status                string  how the group does here: {", ".join(STATUSES)}; docs/lag.md has the rules
    status_reason         string  the figures that decided the status
    status_window_ms      bigint  how far the samples that were looked at reach back, in milliseconds; NULL without a lag
    detected_within_ms    bigint  how long a change of behaviour stays unseen at most, at the window's pace of samples; NULL with one sample
    produced_per_s        double  offsets per second written in the window; NULL with fewer than two samples or if the end went back
    consumed_per_s        double  offsets per second by which the commit moved; NULL with fewer than two samples or if it went back
    expired_per_s         double  offsets per second by which the log start moved, over all samples, as it jumps by segments; NULL with one
    catch_up_ms           bigint  how long reading the unread records takes at these rates; 0 when caught up; NULL when never or not known
    time_to_loss_ms       bigint  time from this snapshot until the first unread record is deleted, at these rates; NULL if not foreseeable
    time_to_loss_by       string  by what: 'retention.ms' or 'measured log start progress', whichever is earlier
    expires_in_ms         bigint  how long the commit of an Empty group is kept at least; NULL with members, or if their end is not known
    burrow                string  verdict of LinkedIn's Burrow on the samples: OK, WARN, STOP, STALL, REWIND; NULL without log end or
        commit, and of a share group
    tier                  string  the stricter of the topic's and the group's tier
    {BEHAVIOUR_OF_PARTITION}
    {ERRORS}
""")

DECLARED_GROUP = columns(f"""
    {RESOURCE}
    group_id     string  a group that the policy declares
    in_scope     boolean the audit was asked to look at it
    present      boolean ListGroups names it; NULL when groups could not be listed from every broker
    group_type   string  classic, consumer, share, streams or unknown
    state        string  state from ListGroups
    member_count int     members; NULL when they could not be described
    {ERRORS}
""")
