"""Decodes the partition assignment that a classic consumer stored with its group."""

from struct import error as struct_error
from struct import unpack_from

_MAX_NAME_BYTES = 249  # Kafka's limit for topic names


class MalformedAssignmentError(ValueError):
    """The bytes are not a consumer protocol assignment; any client may store anything there."""


def decode_assignment(data: bytes) -> tuple[tuple[str, int], ...]:
    """Partitions in a ConsumerProtocolAssignment: int16 version, then topics with their partitions, then user data.

    Source: Kafka's ``ConsumerProtocolAssignment.json``; versions 0 to 3 are the same. MalformedAssignmentError for anything else.
    """
    try:
        (topics,) = unpack_from(">i", data, 2)
        position = 6
        found: list[tuple[str, int]] = []
        for _ in range(topics):
            (length,) = unpack_from(">h", data, position)
            if not 0 < length <= _MAX_NAME_BYTES:
                raise MalformedAssignmentError(f"a topic name of {length} bytes")
            name = data[position + 2 : position + 2 + length].decode("utf-8")
            position += 2 + length
            (count,) = unpack_from(">i", data, position)
            position += 4
            if count < 0 or count > (len(data) - position) // 4:
                raise MalformedAssignmentError(f"{count} partitions in {len(data) - position} bytes")
            found.extend((name, index) for index in unpack_from(f">{count}i", data, position))
            position += 4 * count
    except (struct_error, UnicodeDecodeError) as problem:
        raise MalformedAssignmentError(str(problem)) from problem
    return tuple(found)
