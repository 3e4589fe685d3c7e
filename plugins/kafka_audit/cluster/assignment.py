"""Decodes what a classic consumer stored with its group: its subscription and its partition assignment."""

from struct import error as struct_error
from struct import unpack_from

_MAX_NAME_BYTES = 249  # Kafka's limit for topic names


class MalformedAssignmentError(ValueError):
    """The bytes are not of the consumer protocol; any client may store anything there."""


def decode_subscription(data: bytes) -> tuple[str, ...]:
    """Topics in a ConsumerProtocolSubscription: int16 version, then topic names, then fields that differ between versions.

    Source: Kafka's ``ConsumerProtocolSubscription.json``. MalformedAssignmentError for anything else.
    """
    try:
        (count,) = unpack_from(">i", data, 2)
        position = 6
        found: list[str] = []
        for _ in range(count):
            name, position = _topic(data, position)
            found.append(name)
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedAssignmentError(str(problem)) from problem
    return tuple(found)


def decode_assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    """Partitions in a ConsumerProtocolAssignment: int16 version, then topics with their partitions, then user data.

    Source: Kafka's ``ConsumerProtocolAssignment.json``; versions 0 to 3 are the same. MalformedAssignmentError for anything else.
    """
    try:
        (topics,) = unpack_from(">i", data, 2)
        position = 6
        found: list[tuple[str, int]] = []
        for _ in range(topics):
            name, position = _topic(data, position)
            (count,) = unpack_from(">i", data, position)
            position += 4
            if count < 0 or count > (len(data) - position) // 4:
                raise MalformedAssignmentError(f"{count} partitions in {len(data) - position} bytes")
            found.extend((name, index) for index in unpack_from(f">{count}i", data, position))
            position += 4 * count
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedAssignmentError(str(problem)) from problem
    return tuple(found)


def _topic(data: bytes, position: int) -> tuple[str, int]:
    """The topic name at a position, and the position after it."""
    (length,) = unpack_from(">h", data, position)
    end = position + 2 + length
    if not 0 < length <= _MAX_NAME_BYTES or end > len(data):
        raise MalformedAssignmentError(f"a topic name of {length} bytes")
    return data[position + 2 : end].decode("utf-8"), end
