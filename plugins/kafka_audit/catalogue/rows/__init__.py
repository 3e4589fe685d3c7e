"""The wide rows that rules read: for each subject its columns, their Spark SQL types and what they mean.

A rule may name only the columns of its subject. ``spark_jobs/subjects/<subject>.py`` builds exactly these columns,
in this order; a test holds the two together. NULL always means "not known", never "none" or 0.
"""

from collections.abc import Mapping

from kafka_audit.catalogue.rows import brokers, clients, groups, topics
from kafka_audit.catalogue.rows.columns import Column, Subject

SETTINGS_JOB = "verify_settings"
LAG_JOB = "verify_lag"

SUBJECTS: Mapping[str, Subject] = {
    subject.name: subject
    for subject in (
        Subject(name="topic", job=SETTINGS_JOB, about="a topic", columns=topics.TOPIC),
        Subject(name="partition", job=SETTINGS_JOB, about="a partition of a topic", columns=topics.PARTITION),
        Subject(name="broker", job=SETTINGS_JOB, about="a broker", columns=brokers.BROKER),
        Subject(name="cluster", job=SETTINGS_JOB, about="the cluster as a whole and its snapshots", columns=brokers.CLUSTER),
        Subject(name="declared_topic", job=SETTINGS_JOB, about="a topic that the policy says must exist", columns=topics.DECLARED_TOPIC),
        Subject(
            name="producer", job=SETTINGS_JOB, about="a declared producer, or a topic nobody declared one for", columns=clients.PRODUCER
        ),
        Subject(name="consumer", job=LAG_JOB, about="a declared consumer, or a group nobody declared one for", columns=clients.CONSUMER),
        Subject(name="group", job=LAG_JOB, about="a consumer group", columns=groups.GROUP),
        Subject(name="group_sla", job=LAG_JOB, about="a lag SLA of a group, or a group without one", columns=groups.GROUP_SLA),
        Subject(name="group_partition", job=LAG_JOB, about="a partition that a group reads", columns=groups.GROUP_PARTITION),
        Subject(name="declared_group", job=LAG_JOB, about="a group that the policy says must be alive", columns=groups.DECLARED_GROUP),
    )
}

__all__ = ["LAG_JOB", "SETTINGS_JOB", "SUBJECTS", "Column", "Subject"]
