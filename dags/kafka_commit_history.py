"""The DAGs that store and decode the records of `__consumer_offsets`; one per cluster."""

from kafka_audit.airflow import audit_dags

audit_dags("kafka_commit_history")
