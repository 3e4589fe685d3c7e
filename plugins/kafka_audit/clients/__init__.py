"""Settings of producers and consumers: reads them from files, and computes what the client would do with them.

Nothing here contacts a broker or judges a setting: controls do.
"""
