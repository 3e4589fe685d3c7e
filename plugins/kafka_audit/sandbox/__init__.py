"""A Kafka cluster of three real brokers with a seeded workload, for the demo and the tests. Only ``cli`` and the tests import it."""
