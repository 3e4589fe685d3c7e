"""Adapters between an audit and Airflow: tasks, operators, the hook, web pages, an Airflow for one audit. Nothing else imports Airflow."""
