"""Layouts of Kafka protocol messages that kafka-python 3.0.12 lacks: the wire format of Kafka 4.3.1 (KIP-848, KIP-932), fields only.

The type ``bitfield`` is kafka-python's word for an int32 of authorized operations.
"""
