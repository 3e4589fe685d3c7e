"""Layouts of Kafka protocol messages that kafka-python 3.0.12 lacks: the wire format of Kafka 4.3.1, fields only.

KIP-848 (consumer groups), KIP-932 (share groups), KIP-1071 (streams groups).

The type ``bitfield`` is kafka-python's word for an int32 of authorized operations.
"""
