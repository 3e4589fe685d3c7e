"""Decodes what members of classic consumer groups store at the coordinator: their subscription and their assignment."""

from collections.abc import Iterator
from struct import error as struct_error
from struct import unpack_from

_MAX_NAME_BYTES = 249  # Kafka's limit for topic names


class MalformedAssignmentError(ValueError):
    """The bytes are not of the consumer protocol; any client may store anything there."""


def decode_subscription(data: bytes) -> tuple[str, ...]:
    """Topics in a ConsumerProtocolSubscription: int16 version, then topic names, then fields that differ between versions.

    Source: Kafka's ``ConsumerProtocolSubscription.json``. MalformedAssignmentError for anything else.
    """
    return tuple(name for name, _ in _topics(data, with_partitions=False))


def decode_assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    """Partitions in a ConsumerProtocolAssignment: int16 version, then topics with their partitions, then user data.

    Source: Kafka's ``ConsumerProtocolAssignment.json``; versions 0 to 3 are the same. MalformedAssignmentError for anything else.
    """
    return tuple((name, index) for name, indexes in _topics(data, with_partitions=True) for index in indexes)


def _topics(data: bytes, *, with_partitions: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    indexes: tuple[int, ...] = ()
    try:
        (topics,) = unpack_from(">i", data, 2)
        position = 6
        for _ in range(topics):
            name, position = _topic(data, position)
            if with_partitions:
                (count,) = unpack_from(">i", data, position)
                position += 4
                if count < 0 or count > (len(data) - position) // 4:
                    raise MalformedAssignmentError(f"{count} partitions in {len(data) - position} bytes")
                indexes = unpack_from(f">{count}i", data, position)
                position += 4 * count
            yield name, indexes
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedAssignmentError(str(problem)) from problem


def _topic(data: bytes, position: int) -> tuple[str, int]:
    """The topic name at a position, and the position after it."""
    (length,) = unpack_from(">h", data, position)
    end = position + 2 + length
    if not 0 < length <= _MAX_NAME_BYTES or end > len(data):
        raise MalformedAssignmentError(f"a topic name of {length} bytes")
    return data[position + 2 : end].decode("utf-8"), end
