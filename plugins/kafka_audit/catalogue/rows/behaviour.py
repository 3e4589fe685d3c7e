"""The columns of wide rows from the commit history: one struct, NULL if the offsets topic was not read, and the reason for NULL."""

_READ = "as_of:string,hours:double"
GROUP_BEHAVIOUR = (
    f"struct<{_READ},auto_commit:string,auto_commit_interval_ms:bigint,auto_commit_confidence:string,auto_commit_reason:string,"
    "assignor:string,member_count:int,static_members:int,session_timeout_ms:bigint,rebalance_timeout_ms:bigint,generations:bigint,"
    "rebalances:bigint,longest_rebalance_ms:bigint,window_hours:double>"
)
PARTITION_BEHAVIOUR = (
    f"struct<{_READ},as_of_ms:bigint,commits:bigint,unchanged:bigint,rewinds:bigint,last_rewind_at:string,rewound_from:bigint,"
    "last_commit_ms:bigint,longest_gap_ms:bigint,jumps:bigint,committed:bigint,moved_ms:bigint,empty_ms:bigint,own_expiry:boolean,"
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
        one went back; empty_ms is how long a classic group has had no members by its own records, NULL when these show some or were not
        read; own_expiry says that the newest commit carries an expiry of its own; lost_ms is how long before the snapshot newest records
        were last lost, NULL: never
    {_REASON}
"""
