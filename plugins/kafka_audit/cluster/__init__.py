"""Reads Kafka clusters with kafka-python, read-only: connection settings, batching per broker, retries and isolation of bad items.

In this package only ``cluster`` and ``sandbox`` import ``kafka``; outside of it ``spark_jobs.commit_history.decode`` does. Nothing here
writes to a cluster, or knows in which tables the answers are stored: ``collect`` does.
"""

from kafka_audit.cluster.without_clients import put_clients_off

put_clients_off("kafka")
