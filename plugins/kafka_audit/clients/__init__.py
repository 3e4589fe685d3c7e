"""Settings of producers and consumers: reads them from files, and computes what the client would do with them.

Nothing here contacts a broker or judges a setting: controls do.
"""

from kafka_audit.clients.settings import Setting, effective, start_problems, unknown_settings

__all__ = ["Setting", "effective", "start_problems", "unknown_settings"]
