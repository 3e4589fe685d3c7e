"""Reads a cluster into a snapshot: one function per dataset, named after it; ``datasets.py`` lists them, ``collection.py`` orders them.

Nothing here imports a Kafka client (``cluster`` sends the requests) or judges what was read.
"""
