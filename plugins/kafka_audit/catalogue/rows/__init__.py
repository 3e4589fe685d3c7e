"""The wide rows that rules read: for each subject its columns, their Spark SQL types and what they mean.

A rule may name only the columns of its subject. ``spark_jobs/rows/<subject>.py`` builds exactly these columns,
in this order; a test holds the two together. NULL always means "not known", never "none" or 0.
"""

from collections.abc import Mapping

from kafka_audit.catalogue.rows import brokers, clients, groups, topics
from kafka_audit.catalogue.rows.columns import Column, Subject

SETTINGS, LAG = "settings", "lag"
"""The parts of a verification, each with a folder of the audit: which subjects each judges."""

SUBJECTS: Mapping[str, Subject] = {
    subject.name: subject
    for subject in (
        Subject(name="topic", part=SETTINGS, about="a topic", columns=topics.TOPIC),
        Subject(name="partition", part=SETTINGS, about="a partition of a topic", columns=topics.PARTITION),
        Subject(name="broker", part=SETTINGS, about="a broker", columns=brokers.BROKER),
        Subject(name="cluster", part=SETTINGS, about="the cluster as a whole and its snapshots", columns=brokers.CLUSTER),
        Subject(name="declared_topic", part=SETTINGS, about="a topic that the policy says must exist", columns=topics.DECLARED_TOPIC),
        Subject(name="producer", part=SETTINGS, about="a declared producer, or a topic nobody declared one for", columns=clients.PRODUCER),
        Subject(name="consumer", part=LAG, about="a declared consumer, or a group nobody declared one for", columns=clients.CONSUMER),
        Subject(name="group", part=LAG, about="a consumer group", columns=groups.GROUP),
        Subject(name="group_sla", part=LAG, about="a lag SLA of a group, or a group without one", columns=groups.GROUP_SLA),
        Subject(name="group_partition", part=LAG, about="a partition that a group reads", columns=groups.GROUP_PARTITION),
        Subject(name="declared_group", part=LAG, about="a group that the policy says must be alive", columns=groups.DECLARED_GROUP),
    )
}

__all__ = ["LAG", "SETTINGS", "SUBJECTS", "Column", "Subject"]
