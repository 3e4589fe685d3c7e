"""Kafka's own definitions of the records that its coordinators write, one JSON file for each key and each value, byte for byte.

They come from ``common/message/`` in the jars kafka-group-coordinator 4.3.1 and kafka-transaction-coordinator 4.3.1, are licensed under
the Apache License 2.0 (their headers; ``NOTICE`` is Kafka's), and are read by kafka-python's ``load_json``. A test compares them with the
jars. A newer Kafka that adds a record type, a version or a tagged field needs its newer files here.
"""
