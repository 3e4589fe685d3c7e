"""A decoded batch is read only if its files are exactly those of its manifest: none missing, added or changed."""

from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed_batch import seal

from kafka_audit.errors import IntegrityError
from kafka_audit.store.commit_batches import REPAIR_OF_DECODED, verify_batch
from kafka_audit.store.durable_files import write_json
from spark_jobs.commit_history.describe.behaviour_tables import newest_record

AT = datetime(2026, 11, 20, 20, tzinfo=timezone.utc)
READ_AT = datetime(2026, 11, 20, 21, tzinfo=timezone.utc)
TABLES = ("group_records", "offset_commits", "undecoded")
COMMITS = "offset_commits.parquet/part-00000.parquet"
Harm = Callable[[Path], object]


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    folder = tmp_path / "decoded" / "00000001"
    for table in TABLES:
        (folder / f"{table}.parquet").mkdir(parents=True)
        pq.write_table(pa.table({"append_time": [AT]}), folder / f"{table}.parquet" / "part-00000.parquet")
    seal(folder, rows=dict.fromkeys(TABLES, 1))
    write_json(tmp_path / "raw" / "00000001" / "manifest.json", {"read_at": READ_AT.isoformat()})
    return folder


def added(name: str) -> Harm:
    return lambda batch: (batch / name).write_bytes((batch / COMMITS).read_bytes())


def linked(name: str) -> Harm:
    def harm(batch: Path) -> None:
        (batch / name).rename(batch.parent / "elsewhere")
        (batch / name).symlink_to(batch.parent / "elsewhere")

    return harm


def missing(name: str) -> Harm:
    return lambda batch: (batch / name).unlink()


OTHER_FILES = [
    *[(added(name), name) for name in ("offset_commits.parquet/part-99999.parquet", "offset_commits.parquet/part-99999")],
    *[(missing(name), name) for name in (COMMITS, "undecoded.parquet/part-00000.parquet")],
    (linked(COMMITS), "is a link"),
    *[(lambda batch, files=files: write_json(batch / "manifest.json", files), "no list of files") for files in ({}, {"files": None})],
]


@pytest.mark.parametrize(("harm", "named"), OTHER_FILES)
def test_a_batch_of_other_files_than_its_manifest_names_is_refused_before_its_age_is_asked(batch: Path, harm: Harm, named: str) -> None:
    harm(batch)
    for check in (partial(verify_batch, repair=REPAIR_OF_DECODED), newest_record):
        with pytest.raises(IntegrityError, match=f"00000001.*{named}.*it is decoded anew from raw/"):
            check(batch)


def test_a_changed_file_is_refused_though_its_name_and_size_are_the_same(batch: Path) -> None:
    verify_batch(batch, REPAIR_OF_DECODED)
    whole = (batch / COMMITS).read_bytes()
    (batch / COMMITS).write_bytes(whole[:4] + bytes([whole[4] ^ 1]) + whole[5:])
    with pytest.raises(IntegrityError, match=f"00000001: {COMMITS}: its sha256 differs from the manifest's"):
        verify_batch(batch, REPAIR_OF_DECODED)


def test_a_hidden_file_is_no_part_of_a_batch(batch: Path) -> None:
    added("offset_commits.parquet/.part-00000.parquet.crc")(batch)
    verify_batch(batch, REPAIR_OF_DECODED)
    assert newest_record(batch) == AT


def test_a_batch_of_which_no_row_has_a_time_is_whole_and_as_old_as_its_reading(batch: Path) -> None:
    for table in TABLES[:2]:
        missing(f"{table}.parquet/part-00000.parquet")(batch)
    pq.write_table(
        pa.table({"append_time": pa.array([], pa.timestamp("us", "UTC"))}), batch / "group_records.parquet" / "part-00000.parquet"
    )
    seal(batch)
    verify_batch(batch, REPAIR_OF_DECODED)
    assert newest_record(batch) == READ_AT


def test_a_damaged_file_is_named(batch: Path) -> None:
    (batch / COMMITS).write_bytes(b"PAR1")
    with pytest.raises(IntegrityError, match=f"{COMMITS}: cannot be read as Parquet"):
        newest_record(batch)
