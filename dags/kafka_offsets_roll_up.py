"""The DAGs that combine each day's offsets snapshots into one folder and delete expired history; one per cluster."""

from kafka_audit.airflow import audit_dags

audit_dags("kafka_offsets_roll_up")
