"""The DAGs that take an offsets snapshot of a Kafka cluster every few minutes, as a history of lag; one per cluster."""

from kafka_audit.airflow import audit_dags

audit_dags("kafka_offsets_snapshot")
