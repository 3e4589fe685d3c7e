"""Decoding of commits batch by batch, without Spark."""

import os
import struct
import sys
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.commit_history.decode.batch import OFFSETS, decode_part
from spark_jobs.commit_history.decode.commits import regular_commits
from spark_jobs.commit_history.read.raw_writer import RAW

KEY = struct.pack(">hh5sh6si", 1, 5, b"group", 6, b"orders", 3)
VALUE = struct.pack(">hqi", 4, 1017, 0) + b"\x03hi" + struct.pack(">q", 1_795_206_777_313) + b"\x01\x00\x10" + bytes(range(16))


def batch(*records: tuple[bytes | None, bytes | None]) -> pa.RecordBatch:
    rows = [(0, offset, None, *record) for offset, record in enumerate(records)]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), RAW, strict=True)], schema=RAW
    )


def calls(rows: pa.RecordBatch) -> int:
    """How many Python functions run while the rows are decoded."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        regular_commits(rows)
    finally:
        sys.setprofile(None)
    return count


def test_no_python_runs_row_by_row() -> None:
    few, many = batch(*[(KEY, VALUE)] * 10), batch(*[(KEY, VALUE)] * 10_000)
    regular_commits(few)  # what is loaded at the first call
    assert calls(few) == calls(many)


def test_no_more_than_a_row_group_of_a_part_is_held_in_memory_however_large_its_records(tmp_path: Path) -> None:
    megabyte, groups = 1 << 20, 32  # the writer itself holds six
    held: list[int] = []

    def split(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        held.append(pa.total_allocated_bytes() - before)
        return regular_commits(rows)

    with pq.ParquetWriter(tmp_path / "raw.parquet", RAW) as writer:
        for _ in range(groups):
            writer.write_batch(batch((KEY, VALUE), (None, os.urandom(megabyte))))
    for table in OFFSETS.tables:
        (tmp_path / f"{table.name}.parquet").mkdir()
    before = pa.total_allocated_bytes()
    rows = decode_part(replace(OFFSETS, split=split), tmp_path / "raw.parquet", tmp_path)
    assert rows == {"offset_commits": groups, "group_records": 0, "undecoded": groups}
    assert max(held) < groups // 2 * megabyte


@pytest.mark.parametrize("large", ["key", "value"])
def test_rows_that_are_read_field_by_field_are_taken_two_megabytes_at_a_time(tmp_path: Path, large: str) -> None:
    megabyte = bytes(1 << 20)
    unknown = (b"\x7f\xff", megabyte) if large == "value" else (b"\x7f\xff" + megabyte, b"")
    with pq.ParquetWriter(tmp_path / "raw.parquet", RAW) as writer:
        writer.write_batch(batch(*[(b"\x7f\xff", b"small")] * 12_000, *[unknown] * 9, (b"\x7f\xff", 3 * megabyte), *[(None, None)] * 3))
    for table in OFFSETS.tables:
        (tmp_path / f"{table.name}.parquet").mkdir()
    assert decode_part(OFFSETS, tmp_path / "raw.parquet", tmp_path)["undecoded"] == 12_013
    file = pq.ParquetFile(tmp_path / "undecoded.parquet" / "raw.parquet")  # each step writes row groups of its own
    steps = [file.read_row_group(number, ["log_offset", "key", "value"]) for number in range(file.num_row_groups)]
    assert [offset for step in steps for offset in step["log_offset"].to_pylist()] == list(range(12_013))
    sizes = [sum(len(data or b"") for name in ("key", "value") for data in step[name].to_pylist()) for step in steps]
    assert max(len(step) for step in steps) <= 10_000
    assert all(size <= 2 << 20 or len(step) == 1 for size, step in zip(sizes, steps, strict=True))


def test_a_slice_of_a_batch_is_decoded_like_the_batch() -> None:
    rows = batch((KEY, VALUE), (KEY, None), (b"\x00\x02", VALUE), (None, None), (KEY, VALUE[:-1]), (KEY, VALUE))
    commits, rest = regular_commits(rows.slice(1))
    assert commits.column("log_offset").to_pylist() == [1, 5]
    assert rest.column("offset").to_pylist() == [2, 3, 4]
    assert commits.slice(1).to_pylist() == regular_commits(rows.slice(5))[0].to_pylist()
    assert regular_commits(rows.slice(6))[0].num_rows == 0


@pytest.mark.parametrize(
    "broken", [KEY.replace(b"group", b"gr\xffup"), KEY.replace(b"orders", b"\xc0\x80ders"), KEY.replace(b"ord", b"\xed\xa0\x80")]
)
def test_a_name_that_is_no_text_is_left_to_the_slower_reading(broken: bytes) -> None:
    commits, rest = regular_commits(batch((KEY, VALUE), (broken, VALUE), (KEY, VALUE.replace(b"hi", b"h\xff"))))
    assert commits.column("log_offset").to_pylist() == [0]
    assert rest.column("offset").to_pylist() == [1, 2]


def test_recorded_commits_are_regular_but_for_long_metadata() -> None:
    table = pq.read_table(Path(__file__).parents[1] / "recorded" / "consumer_offsets_all_kinds.parquet")
    rows = [(row["key"], row["value"]) for row in table.to_pylist()]
    commits, rest = regular_commits(batch(*rows))
    longest = [key for key in rest.column("key").to_pylist() if key[:2] in (b"\x00\x00", b"\x00\x01")]
    assert commits.num_rows == 3940
    assert [key[4:14] for key in longest] == [b"g-longmeta"] * 2  # more metadata than a byte can tell
