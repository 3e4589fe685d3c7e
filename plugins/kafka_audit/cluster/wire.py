"""The type of kafka-python's messages: they are generated from Kafka's JSON definitions at import, so no static type exists."""

from typing import Any, TypeAlias

Message: TypeAlias = Any
