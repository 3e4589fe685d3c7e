"""Kafka's jars and the jars of Spark's Kafka connector: fetched once, and used only with the sha256 that ``jars.sha256`` lists.

Nothing here starts a broker or a Spark session.
"""
