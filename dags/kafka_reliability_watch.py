"""The DAG that tells people between audits: of stale clusters, audits that did not finish, and recoveries; one for all clusters."""

from kafka_audit.airflow import audit_dags

audit_dags("kafka_reliability_watch")
