"""Decoded records of the offsets topic, as a test defines them."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.commit_history.decode.commits import SCHEMA

START = datetime(2026, 11, 20, 20, 0, tzinfo=timezone.utc)
WEEK_MS = 7 * 86_400_000


class Log:
    """Records of the offsets topic in the order in which they are added."""

    def __init__(self, first_offset: int = 0) -> None:
        self.first_offset = first_offset
        self.rows: list[dict[str, Any]] = []

    def add(self, group: str, at_ms: float, committed: int | None, *, topic: str = "orders", partition: int = 0, **more: Any) -> None:
        time = START + timedelta(milliseconds=at_ms)
        gone = committed is None
        value = (
            {}
            if gone
            else {"version": 4, "committed": committed, "leader_epoch": 0, "metadata": "", "commit_time": time, "topic_id": "id-1"}
        )
        place = {"log_partition": 0, "log_offset": self.first_offset + len(self.rows), "append_time": time, "tombstone": gone}
        self.rows.append(
            {**dict.fromkeys(SCHEMA.names), **place, "group_id": group, "topic": topic, "partition": partition, **value, **more}
        )

    def series(self, group: str, times: Iterable[float], step: Callable[[], int], **more: Any) -> None:
        committed = 100
        for at in times:
            committed += step()
            self.add(group, at, committed, **more)

    def table(self, spark: SparkSession) -> DataFrame:
        # Of an Arrow table Spark makes a local relation; a list of rows would start Python workers in every query.
        return spark.createDataFrame(pa.Table.from_pylist(self.rows, schema=SCHEMA))
