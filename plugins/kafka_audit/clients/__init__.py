"""Settings of producers and consumers: reads them from files, and computes what the client would do with them.

Nothing here contacts a broker or judges a setting: controls do.
"""

from kafka_audit.clients.settings import Setting, effective, unknown_settings
from kafka_audit.clients.startup import start_problems

__all__ = ["Setting", "effective", "start_problems", "unknown_settings"]
