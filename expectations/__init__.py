"""The gates: Great Expectations suites, and what runs them on the evidence and on the findings; ``policy/`` is the shipped policy.

Nothing here imports Airflow, Spark or a Kafka client.
"""
