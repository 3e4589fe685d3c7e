"""Reads Kafka clusters with kafka-python, read-only: connection settings, batching per broker, retries and isolation of bad items.

Only this package (and the sandbox) imports ``kafka``; it is loaded when :class:`Cluster` is first used.
"""
