"""Fake brokers that speak Kafka's protocol on real sockets and give the answers that a test defines."""

import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from fake_answers import API_NAMES, EmptyAnswers, request_classes
from kafka.protocol.metadata import MetadataResponse

SILENCE = object()
Handler = Callable[[int, Any], Any]


class FakeCluster(EmptyAnswers):
    """Some brokers on 127.0.0.1. ``answers`` maps an API's name to handler(broker_id, request) -> response or SILENCE."""

    def __init__(self, broker_ids: tuple[int, ...] = (1, 2, 3)) -> None:
        self.answers: dict[str, Handler] = {name: getattr(self, f"_{name}") for name in API_NAMES}
        self.received: list[tuple[int, Any]] = []
        self.topics: list[Any] = []
        self.max_versions: dict[str, int] = {}
        self._servers = {broker_id: _Server(self, broker_id) for broker_id in broker_ids}
        self.ports = {broker_id: server.server_address[1] for broker_id, server in self._servers.items()}

    def __enter__(self) -> "FakeCluster":
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.shutdown()
            server.server_close()

    @property
    def bootstrap(self) -> str:
        return self.address(min(self._servers))

    def address(self, broker_id: int) -> str:
        return f"127.0.0.1:{self.ports[broker_id]}"

    def asked(self, api: str) -> Counter[int]:
        return Counter(broker_id for broker_id, request in self.received if type(request).__name__ == f"{api}Request")

    def requests(self, api: str) -> list[Any]:
        return [request for _, request in self.received if type(request).__name__ == f"{api}Request"]

    def add_topic(self, name: str, leaders: list[int], **changes: Any) -> None:
        topic = MetadataResponse.MetadataResponseTopic
        partitions = [
            topic.MetadataResponsePartition(
                error_code=0,
                partition_index=index,
                leader_id=leader,
                leader_epoch=3,
                replica_nodes=[1, 2, 3],
                isr_nodes=changes.get("isr", [1, 2, 3]),
                offline_replicas=[],
            )
            for index, leader in enumerate(leaders)
        ]
        internal = name.startswith("__")
        self.topics.append(topic(error_code=0, name=name, topic_id=None, is_internal=internal, partitions=partitions))

    def answer(self, broker_id: int, request: Any) -> Any:
        self.received.append((broker_id, request))
        return self.answers[type(request).__name__.removesuffix("Request")](broker_id, request)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, cluster: FakeCluster, broker_id: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.cluster, self.broker_id = cluster, broker_id
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True).start()


class _Connection(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        while (size := self._read(4)) is not None:
            frame = self._read(struct.unpack(">i", size)[0])
            if frame is None:
                return
            key, version, correlation_id = struct.unpack(">hhi", frame[:8])
            cls = request_classes()[key]
            request = cls.decode(frame, version=version, header=True)
            response = self.server.cluster.answer(self.server.broker_id, request)
            if response is SILENCE:
                continue
            response.API_VERSION = version
            response.with_header(correlation_id=correlation_id)
            self.request.sendall(response.encode(header=True, framed=True))

    def _read(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                part = self.request.recv(count - len(data))
            except ConnectionError:
                return None
            if not part:
                return None
            data += part
        return data
