"""Settings of producers and consumers: read from their files, in their own words, and understood as the client would."""

from kafka_audit.clients.settings import Setting, effective, unknown_settings
from kafka_audit.clients.startup import start_problems

__all__ = ["Setting", "effective", "start_problems", "unknown_settings"]
