"""Builds the bytes of requests that no Python client can send: members of share and streams groups, and commits with their own expiry time.

Layouts: ShareGroupHeartbeatRequest v1 (KIP-932), StreamsGroupHeartbeatRequest v0 (KIP-1071) and OffsetCommitRequest v2, as in Kafka 4.3.
"""

import socket
import struct
from collections.abc import Callable

from lag_clients import wait_for

_COMMIT, _SHARE, _STREAMS = 8, 76, 88
_NOT_NOW = (3, 14, 15, 16)  # the topic is not known yet; the coordinator loads, is being made, is another broker
_NONE, _EMPTY, _NO_TAGS, _NO_STRUCT = b"\0", b"\1", b"\0", b"\xff"
_JOIN, _LEAVE = 0, -1


def share_member(bootstrap: str, group: str, topic: str, seen: Callable[[], bool]) -> None:
    """Join a share group, stay until ``seen``, and leave."""

    def body(epoch: int) -> bytes:
        topics = _array(_text(topic)) if epoch == _JOIN else _NONE
        return _text(group) + _text(f"{group}-member") + struct.pack(">i", epoch) + _NONE + topics + _NO_TAGS

    _stay(bootstrap, _SHARE, 1, body, seen)


def streams_member(bootstrap: str, group: str, topic: str, seen: Callable[[], bool]) -> None:
    """Join a streams group whose topology is one subtopology that reads ``topic``, stay until ``seen``, and leave."""
    subtopology = _text("0") + _array(_text(topic)) + 5 * _EMPTY + _NO_TAGS
    topology = b"\1" + struct.pack(">i", 0) + _array(subtopology) + _NO_TAGS

    def body(epoch: int) -> bytes:
        begin = _text(group) + _text(f"{group}-member") + struct.pack(">ii", epoch, 0) + 2 * _NONE
        if epoch == _JOIN:
            said = struct.pack(">i", 60_000) + topology + 3 * _EMPTY + _text("process") + _NO_STRUCT + _EMPTY
        else:
            said = struct.pack(">i", -1) + _NO_STRUCT + 3 * _NONE + _NONE + _NO_STRUCT + _NONE
        return begin + said + 2 * _NONE + b"\0" + _NO_TAGS

    _stay(bootstrap, _STREAMS, 0, body, seen)


def commit_that_expires(bootstrap: str, group: str, topic: str, offset: int, milliseconds: int) -> None:
    """Commit an offset of partition 0 as clients before Kafka 2.1 could: with the time for which it is to be kept."""
    body = _long_text(group) + struct.pack(">i", -1) + _long_text("") + struct.pack(">qi", milliseconds, 1)
    body += _long_text(topic) + struct.pack(">iiq", 1, 0, offset) + _long_text("")
    _ask(bootstrap, struct.pack(">hhi", _COMMIT, 2, 0) + _long_text("old-client") + body, lambda answer: _int16(answer, len(answer) - 2))


def _stay(bootstrap: str, api: int, version: int, body: Callable[[int], bytes], seen: Callable[[], bool]) -> None:
    def heartbeat(epoch: int) -> int:
        header = struct.pack(">hhi", api, version, 0) + _long_text("by hand") + _NO_TAGS
        answer = _ask(bootstrap, header + body(epoch), lambda answer: _int16(answer, 9))  # after correlation id, tags and throttle time
        at = 11
        for _ in range(2):  # error message and member id
            at += max(1, answer[at])
        return int(struct.unpack_from(">i", answer, at)[0])

    epoch = heartbeat(_JOIN)

    def stayed() -> bool:
        nonlocal epoch
        epoch = heartbeat(epoch)
        return seen()

    wait_for("the group's records are written", stayed)
    heartbeat(_LEAVE)


def _ask(bootstrap: str, request: bytes, error_of: Callable[[bytes], int]) -> bytes:
    """What the broker answers that takes the request; asked one after another, until one is the group's coordinator."""
    taken: list[bytes] = []

    def answered() -> bool:
        for address in bootstrap.split(","):
            host, port = address.rsplit(":", 1)
            with socket.create_connection((host, int(port)), 10) as connection, connection.makefile("rb") as stream:
                connection.sendall(struct.pack(">i", len(request)) + request)
                answer = stream.read(struct.unpack(">i", stream.read(4))[0])
            error = error_of(answer)
            assert error == 0 or error in _NOT_NOW, (error, answer)
            if error == 0:
                taken.append(answer)
                return True
        return False

    wait_for("a broker has taken the request", answered)
    return taken[0]


def _int16(data: bytes, at: int) -> int:
    return int(struct.unpack_from(">h", data, at)[0])


def _text(value: str) -> bytes:
    data = value.encode()
    assert len(data) < 127, "longer texts have a longer length"
    return bytes([len(data) + 1]) + data


def _long_text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _array(*items: bytes) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)
