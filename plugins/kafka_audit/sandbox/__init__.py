"""A Kafka cluster of three real brokers with a seeded workload, for the demo, the tests and ``bench/``.

Only ``cli``, the tests and ``bench/`` import it: what audits a cluster must not need it.
"""
