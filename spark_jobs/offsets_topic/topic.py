"""The coordinators' topics that are read, and how a raw batch of each is decoded."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from spark_jobs.offsets_topic.decoded import decode
from spark_jobs.offsets_topic.source import TOPIC
from spark_jobs.offsets_topic.transactions import decode_transactions


@dataclass(frozen=True, kw_only=True)
class Topic:
    """``decode`` takes the folder of raw parts and an empty one for the tables, and returns the rows of each table."""

    name: str
    decode: Callable[[SparkSession, Path, Path], dict[str, int]]


OFFSETS = Topic(name=TOPIC, decode=decode)
TRANSACTIONS = Topic(name="__transaction_state", decode=decode_transactions)
