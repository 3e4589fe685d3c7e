"""Binary columns of Arrow read by position, all rows at once: big-endian integers, texts and runs of bytes."""

from collections.abc import Callable
from copy import copy

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_MARGIN = 16  # a field that begins at the last byte can be read, and is then found to reach beyond its row


class Buffer:
    """The bytes of a binary array, one row after another; a NULL is a row of length 0. Positions count from 0 within each row.

    A field that reaches beyond its row reads what is there: whoever asks compares positions with ``lengths``.
    """

    def __init__(self, array: pa.BinaryArray) -> None:
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4).astype(np.int64) if len(array) else np.zeros(1, np.int64)
        held = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
        self.data = np.concatenate([held[ends[0] : ends[-1]], np.zeros(_MARGIN, np.uint8)])
        self.starts = ends[:-1] - ends[0]
        self.lengths = np.diff(ends)

    def integers(self, position: int | Ints, width: int) -> Ints:
        """Two's complement integers of 1, 2, 4 or 8 bytes at a position of each row."""
        found: Ints = self._fields(position, f">i{width}", width).astype(np.int64)
        return found

    def fixed(self, position: int | Ints, width: int, rows: Flags) -> pa.FixedSizeBinaryArray:
        """``width`` bytes at a position of each row, at most 16; NULL where ``rows`` is false."""
        fields = self._fields(position, f"V{width}", width)
        return pa.Array.from_buffers(pa.binary(width), len(fields), [_bits(rows), pa.py_buffer(np.ascontiguousarray(fields))])

    def texts(self, position: int | Ints, lengths: Ints, rows: Flags) -> tuple[pa.StringArray, Flags]:
        """Strings of each row's length at a position, NULL where ``rows`` is false; and which of them are UTF-8.

        One that is not is NULL.
        """
        run, ends = self.runs(position, np.where(rows, lengths, 0))
        buffers = [_bits(rows), pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(run)]
        found = pa.Array.from_buffers(pa.binary(), len(rows), buffers)
        try:
            return pc.cast(found, pa.string()), rows
        except pa.ArrowInvalid:
            sound = rows & np.array([_is_text(each) for each in found.to_pylist()])
            return self.texts(position, lengths, sound)

    def runs(self, position: int | Ints, lengths: Ints) -> tuple[npt.NDArray[np.uint8], Ints]:
        """The bytes of each row's length at a position, one row after another; and where each row's begin and the last one's end."""
        ends = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.starts + position - ends[:-1], lengths) + np.arange(ends[-1])
        return self.data[places], ends

    def take(self, rows: Ints) -> "Buffer":
        """The rows with these numbers, of the same bytes; one may come several times."""
        taken = copy(self)
        taken.starts, taken.lengths = self.starts[rows], self.lengths[rows]
        return taken

    def _fields(self, position: int | Ints, kind: str, width: int) -> npt.NDArray[np.void]:
        every = np.ndarray((len(self.data) - width + 1,), kind, self.data, strides=(1,))  # a view
        found: npt.NDArray[np.void] = every[np.clip(self.starts + position, 0, len(every) - 1)]
        return found


def split_rows(
    raw: pa.RecordBatch,
    schema: pa.Schema,
    read_keys: Callable[[pa.BinaryArray], tuple[Flags, list[pa.Array]]],
    read_values: Callable[[pa.BinaryArray], tuple[Flags, list[pa.Array]]],
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Raw rows (RAW, the key may be a dictionary) -> the regular ones as rows of ``schema``, and all other raw rows.

    ``read_keys`` and ``read_values`` say which of them are regular, and give the columns of ``schema`` before and after ``tombstone``.
    """
    key, value = raw.column("key"), raw.column("value")
    if not isinstance(key, pa.DictionaryArray):
        key = key.dictionary_encode()
    regular_key, of_key = read_keys(key.dictionary)  # keys recur: each is read once
    regular_value, of_value = read_values(value)
    regular = flags(pc.fill_null(pc.take(pa.array(regular_key), key.indices), False)) & regular_value
    place = (raw.column(name) for name in ("partition", "offset", "timestamp"))
    rows = pa.RecordBatch.from_arrays([*place, *(each.take(key.indices) for each in of_key), value.is_null(), *of_value], schema=schema)
    if regular.all():
        return rows, raw.slice(0, 0)
    return rows.filter(pa.array(regular)), raw.filter(pa.array(~regular))


def flags(array: pa.BooleanArray) -> Flags:
    """A boolean array without NULLs as numpy sees it."""
    found: Flags = array.to_numpy(zero_copy_only=False)
    return found


def masked(values: Ints, kind: pa.DataType, rows: Flags) -> pa.Array:
    """An array of ``kind``, NULL where ``rows`` is false."""
    return pa.array(values, mask=~rows).cast(kind)


def _bits(rows: Flags) -> pa.Buffer:
    return pa.py_buffer(np.packbits(rows, bitorder="little"))


def _is_text(value: bytes | None) -> bool:
    try:
        return value is None or value.decode() is not None
    except UnicodeDecodeError:
        return False
