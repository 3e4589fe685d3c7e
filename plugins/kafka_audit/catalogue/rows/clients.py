"""Wide rows of producers and consumers: what clients.yaml declares, and what the cluster shows of them."""

from kafka_audit.catalogue.rows.columns import ERRORS, RESOURCE, columns
from kafka_audit.catalogue.rows.groups import BEHAVIOUR_OF_GROUP

_SETTINGS = "map<string,struct<value:string,source:string>>"
_ABOUT = f"""
    declared         boolean       clients.yaml declares it; false where the cluster shows a client that nobody declared
    client           string        its name in clients.yaml
    implementation   string        java, spring-kafka, kafka-connect, librdkafka, kafka-python or other; NULL when not declared
    declaration      string        who declares it, when and from where, and what is odd about it, as text
    owner            string        who declares
    declared_on      string        date of the declaration, YYYY-MM-DD
    source           string        where the declaration comes from: a file, a repository, a ticket
    settings         {_SETTINGS}   effective setting by its Java name, in Java's words; source: declared, a default, or why it was changed
    unknown_settings array<string> declared settings that the client does not have: 20 with the nearest one, and how many have odd names
    start_problems   array<string> why the client refuses to start with its settings; empty when no reason is known
    topics           array<string> existing topics that its declared patterns match, or without patterns those its group reads; at most 20
    topic_count      int           number of these; NULL when topics could not be listed or the client was read from a file alone
"""

PRODUCER = columns(f"""
    {RESOURCE}
    {_ABOUT}
    topic                       string  for an undeclared producer: the topic that somebody may write to
    attested_error_handling     boolean the owner attests that failed sends are handled
    recent_write_partitions     int     undeclared: partitions of the topic whose newest record is younger than 24 h
    idempotent_write_partitions int     of those, partitions whose newest record was written by an idempotent producer
    plain_write_partitions      int     of those, partitions whose newest record has no producer id, or one unknown to the leader
    undecided_write_partitions  int     undeclared: partitions of which it cannot be told who wrote their newest record
    tier                        string  the strictest tier of its topics
    {ERRORS}
""")

CONSUMER = columns(f"""
    {RESOURCE}
    {_ABOUT}
    group_id             string        its group
    group_type           string        classic, consumer, share, streams or unknown; NULL when no such group is listed
    state                string        state from ListGroups
    assignor             string        partition assignor: of a classic group its protocol, of a consumer group the broker's
    member_count         int           members; NULL when they could not be described
    static_members       int           members with a group.instance.id
    group_config         {_SETTINGS}   effective group configuration on the brokers (KIP-848); NULL for a classic group or when not read
    session_min_ms       bigint        group.min.session.timeout.ms, the greatest of the brokers'
    session_max_ms       bigint        group.max.session.timeout.ms, the least of the brokers'
    transactional_topics array<string> topics it reads that have transactional writers; at most 20; NULL when not known
    unclean_topics       array<string> of those, topics that allow unclean leader election
    attested_processing  boolean       the owner attests that offsets are committed only after records were processed
    tier                 string        the stricter of its group's and its topics' tiers
    {BEHAVIOUR_OF_GROUP}
    {ERRORS}
""")
