"""The DAGs that audit a Kafka cluster, from snapshot to report and gate; one per cluster."""

from kafka_audit.airflow import audit_dags

audit_dags("kafka_reliability_audit")
