"""Whether the offsets that a batch skipped may have held records that compaction removed.

A consumer sees neither the markers that end transactions, nor aborted records, nor compacted ones. Keys tell some of them apart:
compaction up to some offset leaves each key below it once, at its newest record. Where a key occurs twice, the log was not compacted as far
as the second of its records, so that offsets skipped after that record are none that compaction removed. Nor are those just before it,
because no newer record, for which they would have been removed, lies in between.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.engine.tables import parts_of

_Ints = npt.NDArray[np.int64]

_NEAR = 5_000
"""Both records of a key must be this near, in offsets, to what follows them: a consumer fetches so many at once (1 MiB, about 130 bytes
each). A log that is compacted while it is read may else show a key from before and from after."""


def may_be_compacted(batch: Path, partition: int, start: int, end: int) -> bool:
    """Whether offsets without a record from ``start`` to before ``end`` may be compacted records, by the decoded tables of a batch.

    Where keys do not tell, as many are taken for markers as transactional requests stand there: each transaction has one marker in the
    partition and at least one request, whose commits have the same group and time. The request of one of these markers may be before
    ``start``, and that of the last one has its marker after what is looked at.
    """
    commits = _rows(batch / "offset_commits.parquet", partition, _COMMIT)
    others = _rows(batch / "group_records.parquet", partition, _PLACE)
    # Records of other types do not serve as keys that occur twice: each of them gets a number of its own.
    keys = np.concatenate([_numbers(commits, _KEY), -1 - np.arange(others.num_rows)])
    offsets: _Ints = np.concatenate([_ints(commits, "log_offset"), _ints(others, "log_offset")])
    requests = np.concatenate([_requests(commits), np.full(others.num_rows, -1)])
    order = np.argsort(offsets)
    offsets, keys, requests = offsets[order], keys[order], requests[order]
    after = np.append(offsets, end)
    missing = after - np.insert(offsets, 0, start - 1) - 1
    known = np.maximum.accumulate(np.append(_place_before(keys, offsets), -1))
    unclear = (known < 0) | (known < after - _NEAR)
    asked = requests[unclear[:-1]]
    return int(missing[unclear].sum()) > len(np.unique(asked[asked >= 0]))


_PLACE = ("log_offset",)
_KEY = ("group_id", "topic", "partition")
_COMMIT = (*_PLACE, *_KEY, "commit_time", "version", "topic_id")


def _rows(table: Path, partition: int, columns: Iterable[str]) -> pa.Table:
    """The rows of a partition. Ids are kept once: a batch may hold five million commits of one partition."""
    parts = [str(part) for part in parts_of([table])]
    read = ds.dataset(parts, format=ds.ParquetFileFormat(dictionary_columns=[name for name in columns if name in ("group_id", "topic")]))
    return read.to_table(columns=list(columns), filter=pc.field("log_partition") == partition)


def _ints(rows: pa.Table, column: str) -> _Ints:
    values: _Ints = rows[column].to_numpy()
    return values


def _numbers(rows: pa.Table, columns: Iterable[str]) -> _Ints:
    """A number for each row, from 0 on, equal where these columns are; NULL is a value."""
    numbers = np.zeros(rows.num_rows, dtype=np.int64)
    for name in columns if rows.num_rows else ():
        values = rows[name].unify_dictionaries() if pa.types.is_dictionary(rows[name].type) else rows[name].dictionary_encode()
        whole = values.combine_chunks()
        numbers = numbers * (len(whole.dictionary) + 1) + pc.add(pc.fill_null(whole.indices.cast(pa.int64()), -1), 1).to_numpy()
    return numbers


def _requests(commits: pa.Table) -> _Ints:
    """For each commit a number of the request in a transaction that it belongs to, -1 for those outside of transactions."""
    numbers = _numbers(commits, ("group_id", "commit_time"))
    # Of the commits that these brokers write, only transactional ones come without the topic's id.
    transactional = pc.and_(pc.greater_equal(commits["version"], 4), pc.is_null(commits["topic_id"]))
    return np.where(pc.fill_null(transactional, False).to_numpy(), numbers, -1)


def _place_before(keys: _Ints, offsets: _Ints) -> _Ints:
    """For each record the offset of the one before with the same key; -1 for the first one. ``offsets`` are in order."""
    order = np.argsort(keys, kind="stable")
    again = keys[order][1:] == keys[order][:-1]
    found = np.full(len(keys), -1, dtype=np.int64)
    found[order[1:][again]] = offsets[order[:-1][again]]
    return found
