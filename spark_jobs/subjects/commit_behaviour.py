"""What the commit history shows of a group and of its partitions, where the offsets topic was read."""

from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.durable_files import read_json
from kafka_audit.evidence import EvidenceRoot
from kafka_audit.subjects.behaviour import GROUP_BEHAVIOUR, PARTITION_BEHAVIOUR
from spark_jobs.datasets import Evidence, parse_time

_MOST_HOURS_OLD = 2
"""A history that stopped longer ago says nothing about the group as the snapshot shows it."""


def with_group_behaviour(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``behaviour`` (kafka_audit.subjects.behaviour) by group_id; NULL where nothing was read of the group, or no history is there."""
    found = _newest(evidence)
    if found is None:
        return rows.withColumn("behaviour", F.lit(None).cast(GROUP_BEHAVIOUR))
    folder, about = found
    groups = evidence.spark.read.parquet(str(folder / "groups.parquet")).where(~F.coalesce("removed", F.lit(False)))
    values = groups.withColumns(_about(about)).select("group_id", _struct(GROUP_BEHAVIOUR))
    return rows.join(values, on="group_id", how="left")


def with_partition_behaviour(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``behaviour`` by group_id, topic and partition; NULL as in :func:`with_group_behaviour`."""
    found = _newest(evidence)
    if found is None:
        return rows.withColumn("behaviour", F.lit(None).cast(PARTITION_BEHAVIOUR))
    folder, about = found
    partitions = evidence.spark.read.parquet(str(folder / "group_partitions.parquet"))
    ages = {
        "last_commit_ms": F.lit(evidence.taken_ms) - F.unix_millis("last_commit"),
        "last_rewind_at": F.date_format("last_rewind", "yyyy-MM-dd HH:mm:ss'Z'"),
    }
    values = partitions.withColumns({**_about(about), **ages})
    return rows.join(
        values.select("group_id", "topic", "partition", _struct(PARTITION_BEHAVIOUR)), on=["group_id", "topic", "partition"], how="left"
    )


def _newest(evidence: Evidence) -> tuple[Path, dict[str, Any]] | None:
    """The newest behaviour tables from before the snapshot, of the same cluster and not too old, with their manifest."""
    root = EvidenceRoot(path=evidence.snapshot.path.parents[2])
    history = root.commit_history(str(evidence.snapshot.manifest["cluster"]))
    taken = parse_time(evidence.snapshot.manifest["started_at"])
    for manifest in sorted(history.glob("behaviour/[!.]*/manifest.json"), reverse=True):
        about = read_json(manifest)
        age = (taken - parse_time(about["end"])).total_seconds() / 3600
        if age >= 0:
            same = about["cluster_id"] == evidence.snapshot.manifest.get("cluster_id")
            return (manifest.parent, about) if same and age <= _MOST_HOURS_OLD else None
    return None


def _about(manifest: dict[str, Any]) -> dict[str, Column]:
    observed_from = manifest.get("observed_from") or manifest["end"]
    hours = (parse_time(manifest["end"]) - parse_time(observed_from)).total_seconds() / 3600
    return {"as_of": F.lit(_as_text(parse_time(manifest["end"]))), "hours": F.lit(hours)}


def _struct(ddl: str) -> Column:
    names = [field.split(":")[0] for field in ddl.removeprefix("struct<").removesuffix(">").split(",")]
    return F.struct(*names).cast(ddl).alias("behaviour")


def _as_text(time: datetime) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%SZ")
