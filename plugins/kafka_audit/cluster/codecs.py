"""Decompresses record batches piece by piece, so that a small batch that expands to gigabytes does not fill the memory.

The library of a codec is imported by its name when a batch needs it: most snapshots need none, and one may not be installed.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from kafka_audit.cluster.failures import CORRUPT_MESSAGE, RECORD_BATCH_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE

# Kafka limits what a batch has when compressed: 1 MB by default (message.max.bytes). Records compress 5 to 20 times, so this leaves room.
MOST_BYTES = 64 * 1024 * 1024
"""So much of a batch is decompressed at most, in search of its records."""

_PIECE_IN, _PIECE_OUT = 16 * 1024, 64 * 1024
_LEAST_COST = 1024  # of a piece, whatever it holds: a batch of a million empty blocks costs time as well
_ZSTD_WINDOW = 128 * 1024 * 1024  # what zstd's own decoders accept by default; a frame may ask for 2 GB
_XERIAL = b"\x82SNAPPY\x00"  # what Java's snappy writes first; two version numbers follow, which some clients write wrong
_XERIAL_HEADER_BYTES = 16
_SNAPPY_LENGTH_BYTES = 5
_NONE = 0


class UnreadableBatchError(Exception):
    """The rest of a batch cannot be read. ``error`` names the reason in Kafka's style, ``message`` completes a sentence."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error, self.message = error, message


def decompressed(codec: int, data: memoryview) -> Iterator[bytes | memoryview]:
    """The records of a batch in pieces of at most 64 KB (of snappy: its blocks); ``codec`` as in the batch's attributes.

    UnreadableBatchError for damage, for a codec that is unknown or not installed, and once more than MOST_BYTES would be needed.
    Bytes that were not compressed come in one piece: the fetched answer is their bound.
    """
    if codec == _NONE:
        yield data
        return
    if codec not in _CODECS:
        raise UnreadableBatchError(UNSUPPORTED_COMPRESSION_TYPE, f"its codec {codec} is unknown")
    name, pieces = _CODECS[codec]
    spent = 0
    try:
        for piece in pieces(data):
            spent += max(len(piece), _LEAST_COST)
            if spent > MOST_BYTES:
                raise _too_large()
            yield piece
    except ImportError as problem:
        raise UnreadableBatchError(UNSUPPORTED_COMPRESSION_TYPE, f"the codec {name} is not installed") from problem


def _gzip(data: memoryview) -> Iterator[bytes]:
    position = 0
    while position < len(data):  # RFC 1952: a stream is a series of members
        member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not member.eof:
            piece = data[position : position + _PIECE_IN]
            if not piece:
                raise corrupt("its gzip stream ends too early")
            position += len(piece)
            try:
                yield member.decompress(piece, _PIECE_OUT)
                while member.unconsumed_tail and not member.eof:
                    yield member.decompress(member.unconsumed_tail, _PIECE_OUT)
            except zlib.error as problem:
                raise corrupt(f"its gzip stream is damaged ({problem})") from problem
        position -= len(member.unused_data)


def _snappy(data: memoryview) -> Iterator[bytes]:
    if bytes(data[: len(_XERIAL)]) != _XERIAL:
        yield _snappy_block(data)
        return
    position = _XERIAL_HEADER_BYTES
    while position < len(data):
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        block = data[position + 4 : position + 4 + max(size, 0)]
        if size <= 0 or len(block) < size:
            raise corrupt(f"a snappy block of it has a length of {size}, which is not there")
        yield _snappy_block(block)
        position += 4 + size


def _snappy_block(block: memoryview) -> bytes:
    """Decompress one block. It begins with its decompressed length, by which the codec reserves memory, so that length is checked first."""
    snappy = import_module("snappy")
    length = 0
    for index, byte in enumerate(block[:_SNAPPY_LENGTH_BYTES]):
        length |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            break
    else:
        raise corrupt("a snappy block of it has no length")
    if length > MOST_BYTES:
        raise _too_large()
    try:
        return bytes(snappy.decompress(bytes(block)))
    except snappy.UncompressError as problem:
        raise corrupt("a snappy block of it is damaged") from problem


def _lz4(data: memoryview) -> Iterator[bytes]:
    lz4 = import_module("lz4.frame")
    position = 0
    while position < len(data):
        frame = lz4.LZ4FrameDecompressor()
        while not frame.eof:
            piece = data[position : position + _PIECE_IN] if frame.needs_input else memoryview(b"")
            if frame.needs_input and not piece:
                raise corrupt("its lz4 stream ends too early")
            position += len(piece)
            try:
                found: bytes = frame.decompress(bytes(piece), max_length=_PIECE_OUT)
            except (RuntimeError, EOFError) as problem:
                raise corrupt(f"its lz4 stream is damaged ({problem})") from problem
            yield found
        position -= len(frame.unused_data or b"")


def _zstd(data: memoryview) -> Iterator[bytes]:
    zstandard = import_module("zstandard")
    with zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(data, read_across_frames=True) as stream:
        while True:
            try:
                piece = stream.read(_PIECE_OUT)
            except zstandard.ZstdError as problem:
                raise corrupt(f"its zstd stream is damaged ({problem})") from problem
            if not piece:
                return
            yield piece


def corrupt(message: str) -> UnreadableBatchError:
    """The error of a damaged batch."""
    return UnreadableBatchError(CORRUPT_MESSAGE, message)


def _too_large() -> UnreadableBatchError:
    text = f"more than {MOST_BYTES // 1024**2} MB of it would have to be decompressed, which is the most that is read of a batch"
    return UnreadableBatchError(RECORD_BATCH_TOO_LARGE, text)


_CODECS: Mapping[int, tuple[str, Callable[[memoryview], Iterator[bytes]]]] = {
    1: ("gzip", _gzip),
    2: ("snappy", _snappy),
    3: ("lz4", _lz4),
    4: ("zstd", _zstd),
}
