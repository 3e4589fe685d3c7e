"""The quotas that limit clients, and how many bytes brokers take: what a producer's quota is compared with."""

import json

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import constant
from spark_jobs.lag.positions import offsets_between
from spark_jobs.lag.samples import dataset
from spark_jobs.rows import missing
from spark_jobs.rows.topic.partition import largest_replicas

_PLACE = ["topic", "partition"]
_OF_CLIENTS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
_LOWEST = 20
_LEAST_MS = 60_000
"""Over a shorter time a few records would decide."""


def client_quotas(evidence: Evidence) -> Column:
    """The column ``client_quotas`` (kafka_audit.catalogue.rows); NULL when quotas could not be read."""
    kind = SUBJECTS["cluster"].columns["client_quotas"].type
    return F.lit(None).cast(kind) if missing.failed(evidence, "client_quotas") else constant(_lowest(evidence), kind)


def write_rate(evidence: Evidence) -> DataFrame | None:
    """One row, write_bytes_per_s double: what the busiest broker took on average since the newest snapshot that is a minute older.

    Estimated by the growth of log ends and the mean size of the records that are there. NULL when a partition's growth or size is not
    known. None without a producer's quota, and without such a snapshot.
    """
    before = next((one for one in reversed(evidence.history.all) if evidence.taken_ms - one.taken_ms >= _LEAST_MS), None)
    if before is None or not any(one["key"] == "producer_byte_rate" for one in _lowest(evidence)):
        return None
    return _measured(evidence, before)


def _lowest(evidence: Evidence) -> list[dict[str, object]]:
    """The lowest quotas of each kind that limits clients. There is a row for each user and client with a quota, not for each topic."""

    def read() -> list[dict[str, object]]:
        rows = [row for row in evidence.small("client_quotas", "entity", "key", "value") if row["key"] in _OF_CLIENTS]
        rows.sort(key=lambda row: (row["key"], row["value"], row["entity"]))
        of_kind = [[row for row in rows if row["key"] == key][:_LOWEST] for key in _OF_CLIENTS]
        return [{**row, "entity": _name(row["entity"])} for found in of_kind for row in found]

    return evidence.memo("client_quotas", read)


def _name(entity: str) -> str:
    """The entity in the words of kafka-configs.sh, such as ``client-id loader, user default``."""
    return ", ".join(f"{kind} {'default' if name is None else name}" for kind, name in json.loads(entity))


def _measured(evidence: Evidence, before: Snapshot) -> DataFrame:
    columns = "topic string, partition int, log_end bigint, read_at timestamp"
    past = dataset(evidence.tables, [before], "offsets", columns).select(
        *_PLACE, F.col("log_end").alias("end_before"), F.col("read_at").alias("before")
    )
    now = evidence.table("offsets").select(*_PLACE, "log_start", "log_end", "read_at")
    rows = evidence.table("partitions").select(*_PLACE, "leader").join(now, on=_PLACE, how="left").join(past, on=_PLACE, how="left")
    rows = rows.join(largest_replicas(evidence, *_PLACE), on=_PLACE, how="left")
    went_back = offsets_between(F.col("log_end"), F.col("end_before")) > 0
    grown = F.when(~went_back, offsets_between(F.col("end_before"), F.col("log_end")))
    held = offsets_between(F.col("log_start"), F.col("log_end"))
    seconds = (F.unix_millis("read_at") - F.unix_millis("before")) / 1000
    rate = F.when(grown == 0, F.lit(0.0)).when((grown > 0) & (held > 0) & (seconds > 0), grown * F.col("size_bytes") / held / seconds)
    of_leaders = rows.select("leader", rate.alias("rate")).groupBy("leader")
    summed = of_leaders.agg(F.sum("rate").alias("rate"), F.count_if(F.col("rate").isNull()).alias("unknown"))
    known = F.coalesce(F.sum("unknown"), F.lit(0)) == 0
    return summed.agg(F.when(known, F.max("rate")).alias("write_bytes_per_s"))
