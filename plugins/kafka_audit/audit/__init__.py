"""The life of one audit: request, plan, steps, gates, outcome, kept inputs, the list of audits.

Nothing here imports Airflow, Spark or a Kafka client, and nothing here judges.
"""
