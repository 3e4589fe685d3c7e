"""Tables of an index that others wrote, and names of any length: refused with a reason or read in parts, never an error of a library."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from overviews import overview

from kafka_audit.errors import IntegrityError
from kafka_audit.index import topic
from kafka_audit.index.group_history import lag_over_time
from kafka_audit.index.overview import GROUPS
from kafka_audit.index.read import IndexedAudit, checked_batches, checked_rows, group_row
from kafka_audit.index.tables import GROUP_ROW
from kafka_audit.store.durable_files import sha256_of
from kafka_audit.store.layout import Audit, Snapshot

KNOWN = {"place": 1, "status": "OK", "targets": 0, "targets_missed": 0}


def written(folder: Path, name: str, table: pa.Table) -> Mapping[str, str]:
    """A sealed file with that table: its sha256 by its name."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    return {name: sha256_of(folder / name)}


def groups(*ids: str) -> pa.Table:
    return pa.Table.from_pylist([{"group_id": one, **KNOWN} for one in ids], GROUP_ROW)


def test_a_table_is_read_in_parts_whatever_the_length_of_its_names(tmp_path: Path) -> None:
    files = written(tmp_path, GROUPS, groups(*(f"{number:05}" + "x" * 5_000 for number in range(3_000))))
    parts = list(checked_batches(tmp_path, files, GROUPS, columns=["group_id"]))
    assert [part.num_rows for part in parts] == [0, 1_024, 1_024, 952]
    found = group_row(tmp_path, files, "02999" + "x" * 5_000)
    assert found is not None and found["place"] == 1


def test_a_table_that_is_too_large_to_be_looked_through_is_refused_before_it_is(tmp_path: Path) -> None:
    files = written(tmp_path, GROUPS, groups(*(f"{number:03}" + "x" * 5_000 for number in range(500))))
    with pytest.raises(IntegrityError, match="2 MiB would have to be looked through"):
        group_row(tmp_path, files, "000", most=1 << 20)


def test_text_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    files = written(tmp_path, GROUPS, groups("a").set_column(0, GROUP_ROW.field(0), _broken_text()))
    with pytest.raises(IntegrityError, match="cannot be read as Parquet"):
        checked_rows(tmp_path, files, GROUPS)
    with pytest.raises(IntegrityError, match="cannot be read as Parquet"):
        group_row(tmp_path, files, "a")


def _broken_text() -> pa.Array:
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\x00\x00\x00\x00\x02\x00\x00\x00"), pa.py_buffer(b"\xff\xfe")])


@pytest.mark.parametrize("column", ["group_id", "status", "place"])
def test_a_row_without_what_every_row_has_is_refused(tmp_path: Path, column: str) -> None:
    files = written(tmp_path, GROUPS, pa.Table.from_pylist([{"group_id": "a", **KNOWN} | {column: None}], GROUP_ROW))
    with pytest.raises(IntegrityError, match=f"a row has no {column}"):
        checked_rows(tmp_path, files, GROUPS)


@pytest.mark.parametrize("table", [pa.table({"topic": [1]}), pa.table({"other": ["a"]}), pa.table({"topic": [[1]]})], ids=str)
def test_a_dataset_of_a_snapshot_with_other_columns_is_refused(tmp_path: Path, table: pa.Table) -> None:
    files = written(tmp_path, "topics.parquet", table)
    with pytest.raises(IntegrityError, match="cannot be read as Parquet"):
        checked_rows(tmp_path, files, "topics.parquet", ("topic", "orders"), ["topic"])


@pytest.mark.parametrize("share", [1e308, float("inf"), float("nan"), -1e308])
def test_a_share_that_no_step_writes_is_refused(tmp_path: Path, share: float) -> None:
    files = written(tmp_path, GROUPS, pa.Table.from_pylist([{"group_id": "a", **KNOWN, "budget_used_share": share}], GROUP_ROW))
    with pytest.raises(IntegrityError, match="budget_used_share holds numbers that are none"):
        checked_rows(tmp_path, files, GROUPS)


def test_a_history_of_lag_with_other_types_is_refused(tmp_path: Path) -> None:
    row = {"group_id": "a", "bucket_ms": "soon", "lag": 1, "lost": 0, "in_sla_share": 1.0, "known_share": 1.0}
    files = written(tmp_path, "lag/lag_series.parquet/part-0.parquet", pa.Table.from_pylist([row]))
    index = IndexedAudit(audit=Audit(path=tmp_path), overview=overview(), files=files, sequence=1)
    with pytest.raises(IntegrityError, match="holds values that no step writes"):
        lag_over_time(index, "a")


def test_a_snapshot_whose_replicas_are_no_lists_is_said_to_be_unusable(tmp_path: Path) -> None:
    columns = {
        "topic": ["orders"],
        "partition": [0],
        "leader": [1],
        "replicas": ["1"],
        "isr": ["1"],
        "offline_replicas": [""],
        "error": [None],
    }
    files = written(tmp_path, "partitions.parquet", pa.table(columns))
    snapshot = Snapshot(path=tmp_path, manifest={"files": {name: {"sha256": sha256} for name, sha256 in files.items()}})
    with pytest.raises(IntegrityError, match="columns of other types"):
        topic._rows(snapshot, "partitions", "orders", topic._PARTITION)


def test_a_small_file_that_repeats_a_long_text_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), pa.array(["x" * (1 << 19)]))
    path = tmp_path / "topics.parquet"
    table = pa.table({"topic": repeated})
    pq.write_table(table, path, compression="zstd", store_schema=False, write_statistics=False, dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 10_000
    with pytest.raises(IntegrityError, match="1,000 rows have 500 MiB of text"):
        checked_rows(tmp_path, {path.name: sha256_of(path)}, path.name)
