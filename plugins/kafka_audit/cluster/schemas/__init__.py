"""Kafka message definitions that kafka-python 3.0.12 lacks, copied unchanged from kafka-clients 4.3.1 (Apache License 2.0)."""
