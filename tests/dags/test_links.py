"""Addresses of Airflow's own pages."""

from kafka_audit.airflow.links import trigger_link


def test_a_run_is_started_from_the_page_of_its_dag_or_of_an_earlier_run() -> None:
    assert trigger_link("kafka_reliability_audit__orders") == "/dags/kafka_reliability_audit__orders"
    assert trigger_link("a/b", like_run="manual__2026-11-20T12:00:00+00:00") == "/dags/a%2Fb/runs/manual__2026-11-20T12%3A00%3A00%2B00%3A00"
