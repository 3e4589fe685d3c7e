"""Builds typed Arrow tables from rows, and the table of what could not be read, and why.

``pyarrow.array`` would build columns, too, but it imports pandas when pandas is installed: a third of a second and 45 MB for nothing.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from typing import Any

import pyarrow as pa

from kafka_audit.cluster.failures import Failure
from kafka_audit.collect.datasets import ERRORS, Dataset

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_CODES: Mapping[pa.DataType, str] = {pa.int16(): "h", pa.int32(): "i", pa.int64(): "q", pa.float64(): "d"}
_DIGITS = bytes.maketrans(b"\x00\x01", b"01")
Values = Sequence[Any]


def table(schema: pa.Schema, rows: Iterable[tuple[object, ...]]) -> pa.Table:
    """A table with one column per field of ``schema``; each row gives the values in that order, structs as mappings.

    OverflowError, TypeError or KeyError when a value does not fit its column.
    """
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [column_of(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def column_of(values: Values, kind: pa.DataType) -> pa.Array:
    """An Arrow array of ``kind`` with null where a value is None."""
    build = next((build for matches, build in _BUILDERS if matches(kind)), None)
    if build is None:
        raise TypeError(f"datasets hold no columns of type {kind}")
    return build(values, kind)


def _validity(values: Values) -> tuple[pa.Buffer | None, int]:
    nulls = values.count(None)
    return (_bits([value is not None for value in values]), nulls) if nulls else (None, 0)


def _bits(flags: Sequence[bool]) -> pa.Buffer:
    digits = bytes(flags[::-1]).translate(_DIGITS) or b"0"  # the first flag is the lowest bit
    return pa.py_buffer(int(digits, 2).to_bytes((len(flags) + 7) // 8, "little"))


def _numbers(values: Values, kind: pa.DataType) -> pa.Array:
    validity, nulls = _validity(values)
    known = values if not nulls else [0 if value is None else value for value in values]
    return pa.Array.from_buffers(kind, len(values), [validity, pa.py_buffer(array(_CODES[kind], known))], nulls)


def _timestamps(values: Values, kind: pa.DataType) -> pa.Array:
    # Most columns hold one moment many times.
    cache: dict[datetime | None, int | None] = {None: None}
    for moment in set(values) - {None}:
        cache[moment] = (moment - _EPOCH) // _MICROSECOND
    whole = _numbers([cache[value] for value in values], pa.int64())
    return pa.Array.from_buffers(kind, len(values), whole.buffers(), whole.null_count)


def _booleans(values: Values, kind: pa.DataType) -> pa.Array:
    validity, nulls = _validity(values)
    return pa.Array.from_buffers(kind, len(values), [validity, _bits([value is True for value in values])], nulls)


def _texts(values: Values, kind: pa.DataType) -> pa.Array:
    validity, nulls = _validity(values)
    texts = values if not nulls else ["" if value is None else value for value in values]
    joined = "".join(texts)
    if joined.isascii():
        return pa.Array.from_buffers(kind, len(values), [validity, _ends(texts), pa.py_buffer(joined.encode())], nulls)
    # Kafka's names are UTF-8 by protocol; a lone surrogate cannot be stored and is replaced.
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return pa.Array.from_buffers(kind, len(values), [validity, _ends(encoded), pa.py_buffer(b"".join(encoded))], nulls)


def _lists(values: Values, kind: pa.ListType) -> pa.Array:
    validity, nulls = _validity(values)
    known = [() if value is None else value for value in values]
    children = column_of([item for value in known for item in value], kind.value_type)
    return pa.Array.from_buffers(kind, len(values), [validity, _ends(known)], nulls, children=[children])


def _structs(values: Values, kind: pa.StructType) -> pa.Array:
    children = [column_of([value[field.name] for value in values], field.type) for field in kind]
    return pa.Array.from_buffers(kind, len(values), [None], 0, children=children)


def _ends(parts: Sequence[Sequence[object]]) -> pa.Buffer:
    return pa.py_buffer(array("i", accumulate(map(len, parts), initial=0)))


_BUILDERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Values, Any], pa.Array]], ...] = (
    (pa.types.is_integer, _numbers),
    (pa.types.is_floating, _numbers),
    (pa.types.is_string, _texts),
    (pa.types.is_boolean, _booleans),
    (pa.types.is_timestamp, _timestamps),
    (pa.types.is_list, _lists),
    (pa.types.is_struct, _structs),
)


class ErrorLog:
    """Collects failures, each under the dataset that lacks something because of it."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, Failure], None] = {}

    def add(self, dataset: Dataset, failure: Failure, *, column: str | None = None) -> None:
        """Record that ``dataset`` lacks what the failure is about: nothing named = the whole dataset.

        With ``column`` only that column is missing, and the rows hold all else: the error is of ``dataset.column``.
        """
        self._failures[dataset.name if column is None else f"{dataset.name}.{column}", failure] = None

    def add_all(self, dataset: Dataset, failures: Iterable[Failure]) -> None:
        """Record several failures of one dataset."""
        for failure in failures:
            self.add(dataset, failure)

    def add_rows(self, rows: pa.Table) -> None:
        """Record what another log wrote with :meth:`to_table`."""
        for row in rows.to_pylist():
            dataset = row.pop("dataset")
            self._failures[dataset, Failure(**row)] = None

    def counts(self) -> dict[str, int]:
        """Number of failures per dataset."""
        return dict(sorted(Counter(dataset for dataset, _ in self._failures).items()))

    def to_table(self) -> pa.Table:
        """The dataset ``errors``: one row per failure, ordered; no topic, partition, group or broker = the whole dataset is missing.

        Its column ``dataset`` names a dataset, or a column of one as ``dataset.column``.
        """
        rows = [(dataset, f.api, f.broker_id, f.topic, f.partition, f.group_id, f.error, f.message) for dataset, f in self._failures]
        return table(ERRORS.schema, sorted(rows, key=lambda row: tuple((value is not None, value) for value in row)))
