"""Adapters between an audit and Airflow: tasks, operators, the hook, web pages, an Airflow for one audit.

Besides this room only ``dags/`` and ``kafka_audit_plugin.py`` import Airflow. What an audit does without Airflow belongs in ``audit``.
"""
