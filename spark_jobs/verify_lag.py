"""Judges groups, their lag SLAs and the partitions they read: lag, lost records and missing commits."""

import sys
from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import functions as F

from kafka_audit.durable_files import write_json
from kafka_audit.subjects import LAG_JOB
from spark_jobs.lag.positions import KEYS
from spark_jobs.lag.series import lag_series, partition_figures, worst_groups
from spark_jobs.parquet_folder import write_parquet
from spark_jobs.session import whole_stages
from spark_jobs.subjects.commit_behaviour import group_table
from spark_jobs.subjects.group_sla import judged_samples, lag_window
from spark_jobs.verification import Job, main


def write_tables(job: Job, folder: Path) -> None:
    """Write what the report shows.

    group_partitions and group_slas: the wide rows, ordered and with ``errors`` as JSON text. lag_series: the lag of the worst groups over
    time. partition_windows: what the window says of each group partition. lag_history.json lists what these were made of.
    group_behaviour: what groups did, where a commit history was used.
    """
    evidence, policy = job.evidence, job.policy
    for subject, order in (("group_partition", ["group_id", "topic", "partition"]), ("group_sla", ["resource"])):
        flat = job.wide_rows[subject].withColumn("errors", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("errors")))))
        write_parquet(flat.repartition(1).sortWithinPartitions(*order), folder / f"{subject}s.parquet")
    window = lag_window(evidence, policy)
    written = [evidence.spark.read.parquet(str(folder / f"{name}.parquet")) for name in ("group_slas", "group_partitions")]
    worst = worst_groups(*written)
    with whole_stages(evidence.spark) if window.samples.days else nullcontext():
        series, figures = lag_series(window, judged_samples(evidence, policy), worst), partition_figures(window)
        write_parquet(series.repartition(1).sortWithinPartitions("group_id", "bucket_ms"), folder / "lag_series.parquet")
        write_parquet(figures.repartition(1).sortWithinPartitions(*KEYS), folder / "partition_windows.parquet")
    write_json(folder / "lag_history.json", window.samples.record)
    did = group_table(evidence)
    if did is not None:
        write_parquet(did.repartition(1).sortWithinPartitions("group_id"), folder / "group_behaviour.parquet")


if __name__ == "__main__":
    sys.exit(main(LAG_JOB, lambda audit: audit.lag, write_tables))
