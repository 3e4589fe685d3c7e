"""Judges groups and the partitions they read: lag, lost records and missing commits."""

import sys
from pathlib import Path

from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from kafka_audit.subjects import LAG_JOB
from spark_jobs import subjects
from spark_jobs.datasets import Evidence
from spark_jobs.verification import main, write_parquet


def write_group_partitions(evidence: Evidence, policy: Policy, folder: Path) -> None:
    """Write group_partitions.parquet: the wide rows, ordered, with ``errors`` as JSON text; the report shows them."""
    rows = subjects.build("group_partition", evidence, policy)
    rows = rows.withColumn("errors", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("errors")))))
    write_parquet(rows.repartition(1).sortWithinPartitions("group_id", "topic", "partition"), folder / "group_partitions.parquet")


if __name__ == "__main__":
    sys.exit(main(LAG_JOB, lambda audit: audit.lag, write_group_partitions))
