"""Decoding of records of ``__transaction_state`` batch by batch, without Spark."""

import struct
import sys
from pathlib import Path
from types import FrameType

import pyarrow as pa

from spark_jobs.commit_history.decode.transactions import SCHEMA, regular_transactions
from spark_jobs.commit_history.read.raw_writer import RAW

LINES = (Path(__file__).parents[1] / "recorded" / "transaction_values.txt").read_text().splitlines()
VALUES = {(name, version): bytes.fromhex(text) for name, version, text in map(str.split, LINES)}
KEY = VALUES.pop(("key", "0"))
TAGGED = VALUES["tagged", "1"]


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
        regular_transactions(rows)
    finally:
        sys.setprofile(None)
    return count


def test_no_python_runs_row_by_row() -> None:
    few, many = (batch(*[(KEY, value) for value in VALUES.values()] * times) for times in (1, 1000))
    regular_transactions(few)  # what is loaded at the first call
    assert calls(few) == calls(many)


def test_what_kafka_writes_is_regular_but_for_fields_of_later_releases() -> None:
    records, rest = regular_transactions(batch(*((KEY, value) for value in VALUES.values())))
    assert records.schema == SCHEMA
    assert [list(VALUES)[at] for at in rest.column("offset").to_pylist()] == [("unknown_tag", "1")]
    assert set(records.column("transactional_id").to_pylist()) == {"pay é"}


def test_a_slice_of_a_batch_is_decoded_like_the_batch() -> None:
    empty = VALUES["empty", "0"]
    rows = batch((KEY, TAGGED), (KEY, None), (b"\x00\x01", TAGGED), (None, None), (KEY, TAGGED[:-1]), (KEY, empty), (KEY, TAGGED))
    records, rest = regular_transactions(rows.slice(1))
    assert records.column("log_offset").to_pylist() == [1, 5, 6]
    assert rest.column("offset").to_pylist() == [2, 3, 4]
    assert records.slice(2).to_pylist() == regular_transactions(rows.slice(6))[0].to_pylist()
    assert regular_transactions(rows.slice(7))[0].num_rows == 0


def test_a_topic_that_is_no_text_leaves_the_other_rows_as_they_are() -> None:
    broken = TAGGED.replace(b"orders", b"ord\xffrs")
    records, rest = regular_transactions(batch((KEY, TAGGED), (KEY, broken), (KEY, TAGGED)))
    assert rest.column("offset").to_pylist() == [1]
    topics = [[each["topic"] for each in row] for row in records.column("partitions").to_pylist()]
    assert topics == [["orders", "__consumer_offsets"]] * 2


def test_lengths_beyond_the_record_are_not_followed() -> None:
    value = VALUES["ongoing", "0"]
    broken = [value[:17] + struct.pack(">i", count) + value[21:] for count in (-2, 3, 2**31 - 1)]
    broken += [value[:21] + struct.pack(">h", length) + value[23:] for length in (-1, 7, 32767)]
    assert regular_transactions(batch(*((KEY, each) for each in broken)))[0].num_rows == 0
