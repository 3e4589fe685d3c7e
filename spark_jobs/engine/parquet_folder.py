"""Writes tables as Parquet whose bytes and names are the same in every run."""

from pathlib import Path

from pyspark.sql import DataFrame


def write_parquet(rows: DataFrame, target: Path) -> None:
    """Write a folder with nothing but Parquet parts whose names are the same in every run."""
    rows.write.parquet(str(target))
    for leftover in [*target.glob(".*.crc"), *target.glob("_*")]:
        leftover.unlink()
    for index, part in enumerate(sorted(target.glob("part-*.parquet"))):
        part.rename(target / f"part-{index:05d}.parquet")


def write_one_file(rows: DataFrame, order: list[str], target: Path) -> None:
    """Write one Parquet file in the order of these columns."""
    folder = target.with_suffix(".parts")
    write_parquet(rows.repartition(1).sortWithinPartitions(*order), folder)
    (folder / "part-00000.parquet").rename(target)
    folder.rmdir()
