"""Reliability audit for Apache Kafka: evidence, controls, verdicts and reports."""

__version__ = "0.1.0"
