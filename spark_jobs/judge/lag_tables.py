"""The tables that the lag part of a verification leaves beside its findings: what the report shows of groups and their partitions."""

from contextlib import nullcontext
from pathlib import Path

from pyspark.sql import functions as F

from kafka_audit.store.durable_files import write_json
from spark_jobs.engine.session import whole_stages
from spark_jobs.judge.part import Part
from spark_jobs.lag.positions import KEYS
from spark_jobs.lag.series import lag_series, partition_figures, worst_groups
from spark_jobs.rows.group.commit_behaviour import group_table
from spark_jobs.rows.group.group_sla import judged_samples, lag_window


def write_lag_tables(part: Part, folder: Path) -> None:
    """Write them as Parquet folders.

    group_partitions and group_slas: the wide rows, ordered and with ``errors`` as JSON text. lag_series: the lag of the worst groups over
    time. partition_windows: what the window says of each group partition. lag_history.json lists what these were made of.
    group_behaviour: what groups did, where a commit history was used.
    """
    evidence, policy, tables = part.evidence, part.policy, part.evidence.tables
    for subject, order in (("group_partition", ["group_id", "topic", "partition"]), ("group_sla", ["resource"])):
        flat = part.wide_rows[subject].withColumn("errors", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("errors")))))
        tables.write(flat, folder / f"{subject}s.parquet", order)
    window = lag_window(evidence, policy)
    written = [tables.read_whole(folder / f"{name}.parquet") for name in ("group_slas", "group_partitions")]
    worst = worst_groups(*written)
    with whole_stages(evidence.spark) if window.samples.days else nullcontext():
        series, figures = lag_series(window, judged_samples(evidence, policy), worst), partition_figures(window)
        tables.write(series, folder / "lag_series.parquet", ["group_id", "bucket_ms"])
        tables.write(figures, folder / "partition_windows.parquet", KEYS)
    write_json(folder / "lag_history.json", window.samples.record)
    did = group_table(evidence)
    if did is not None:
        tables.write(did, folder / "group_behaviour.parquet", ["group_id"])
