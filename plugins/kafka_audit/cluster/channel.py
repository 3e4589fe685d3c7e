"""The one place that talks to brokers: connections, the read-only check, time limits, and the count of requests."""

import logging
import queue
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import kafka.errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.api_key import ApiKey

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.failures import (
    BROKER_NOT_AVAILABLE,
    DEADLINE_EXCEEDED,
    INVALID_RESPONSE,
    REQUEST_TIMED_OUT,
    TRANSPORT_ERRORS,
    UNSUPPORTED_VERSION,
    Failure,
    Outcomes,
    refused,
)
from kafka_audit.cluster.read_apis import check_read_only
from kafka_audit.errors import CollectionError

_MAX_RESPONSE_BYTES = 256 * 1024 * 1024
_PAUSE_SECONDS = 0.02
_CLIENT_ID = "kafka-audit"
Message: TypeAlias = Any
"""A message of kafka-python: they are generated from Kafka's JSON definitions at import, so no static type exists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What became of one request: a decoded response, or the failure that took its place."""

    broker_id: int | str
    request: Message
    response: Message = None
    failure: Failure | None = None


class _ReadOnlyManager(KafkaConnectionManager):  # type: ignore[misc]
    """kafka-python's connections with the read-only check in front of everything they send, its own requests included."""

    def __init__(self, net: Message, counts: "Counter[tuple[str, int | str]]", **arguments: object) -> None:
        super().__init__(net, **arguments)
        self._counts = counts

    def get_connection(self, node_id: int | str, *args: object, **kwargs: object) -> Message:
        fresh = node_id not in self._conns
        connection = super().get_connection(node_id, *args, **kwargs)
        if fresh:
            # Every path of KafkaConnection (handshake, SASL, buffered and direct requests) ends in _send_request.
            send = connection._send_request

            def checked(request: Message, *args: object, **kwargs: object) -> Message:
                self._counts[check_read_only(request), node_id] += 1
                return send(request, *args, **kwargs)

            connection._send_request = checked
        return connection

    async def _build_transport(self, *args: object, **kwargs: object) -> Message:
        """The connection's transport, mended: kafka-python 3.0.12 throws away what arrives together with the end of the stream.

        A broker that refuses credentials sends its reason and hangs up, so the reason would be lost in most cases. The end of the
        stream is seen again by the next read. Can go when ``KafkaTCPTransport._read_from_sock`` delivers data before errors.
        """
        transport = await super()._build_transport(*args, **kwargs)
        receive = transport._sock_recv

        def data_first() -> tuple[bytes, Exception | None]:
            data, error = receive()
            return data, None if data else error

        transport._sock_recv = data_first
        return transport


class Channel:
    """Sends read requests to brokers and waits for the answers, never longer than the deadline.

    Requests to one broker go one after another, brokers are asked concurrently. A broker that leaves one request unanswered
    is asked nothing more: the rest of its items fail at once, so a frozen broker costs one timeout, not one per dataset.
    """

    def __init__(self, settings: ConnectionSettings, *, deadline_seconds: float) -> None:
        quiet_kafka_logging()
        self.settings = settings
        self.request_counts: Counter[tuple[str, int | str]] = Counter()
        self.outcomes = Outcomes()
        self.unanswering: dict[int | str, Failure] = {}
        self.unanswered: set[int | str] = set()
        self.api_versions: dict[int, Mapping[int, tuple[int, int]]] = {}
        self.brokers: tuple[int, ...] = ()
        self._deadline = time.monotonic() + deadline_seconds
        self._net = NetworkSelector(client_id=_CLIENT_ID, slow_task_threshold_secs=0)
        arguments = {"client_id": _CLIENT_ID, "receive_message_max_bytes": _MAX_RESPONSE_BYTES, **settings.client_arguments()}
        self.manager = _ReadOnlyManager(self._net, self.request_counts, **arguments)
        self._net.start()

    def close(self) -> None:
        """Close every connection and end the network thread."""
        self.manager.close()
        self._net.close()

    def seconds_left(self) -> float:
        """Seconds until the deadline; 0 when it has passed."""
        return max(0.0, self._deadline - time.monotonic())

    def supports(self, api: str, version: int = 0) -> bool:
        """True when every broker that answered speaks at least this version of the API, named as in Kafka's protocol."""
        key = ApiKey[api]
        return bool(self.api_versions) and all(apis.get(key, (0, -1))[1] >= version for apis in self.api_versions.values())

    def ask(self, broker_id: int | str, request: Message) -> Reply:
        """Send one request and wait for its reply; failures come back in the reply, they are not raised."""
        return next(iter(self.ask_all({broker_id: [request]})))

    def ask_all(self, requests: Mapping[int, Sequence[Message]] | Mapping[int | str, Sequence[Message]]) -> Iterator[Reply]:
        """Send each broker its requests and yield every reply as it arrives, in no particular order."""
        for batch in requests.values():
            for request in batch:
                check_read_only(request)
        replies: queue.SimpleQueue[Reply] = queue.SimpleQueue()
        for broker_id, batch in requests.items():
            self._net.call_soon_with_future(self._ask_in_turn, broker_id, batch, replies)
        for _ in range(sum(len(batch) for batch in requests.values())):
            yield self._next(replies)

    def _next(self, replies: "queue.SimpleQueue[Reply]") -> Reply:
        while True:
            try:
                return replies.get(timeout=1.0)
            except queue.Empty:
                # Time limits are kept by the network thread; only its death can leave a request without a reply.
                if self._net._exception is not None:
                    raise CollectionError(f"the network thread ended: {self._net._exception}; run again") from None

    def ask_any(self, request: Message) -> Reply:
        """Ask whichever known broker answers; the last failure when none does."""
        return next(self.ask_any_each([request]))

    def ask_any_each(self, requests: Sequence[Message]) -> Iterator[Reply]:
        """Spread requests that every broker can answer over the brokers, and yield each reply.

        A request whose broker turns out not to answer goes to the next one.
        """
        open_requests = list(requests)
        failed: dict[int, Reply] = {}
        while open_requests:
            brokers = [broker for broker in self.brokers if broker not in self.unanswering]
            if not brokers:
                for request in open_requests:
                    yield failed.get(id(request)) or self.ask(self.brokers[0], request)
                return
            batches: dict[int, list[Message]] = {}
            for index, request in enumerate(open_requests):
                batches.setdefault(brokers[index % len(brokers)], []).append(request)
            open_requests = []
            for reply in self.ask_all(batches):
                if reply.failure is not None and reply.failure.error in TRANSPORT_ERRORS:
                    open_requests.append(reply.request)
                    failed[id(reply.request)] = reply
                else:
                    yield reply

    def response_of(self, reply: Reply) -> tuple[Message, Failure | None]:
        """What a broker answered to a request as a whole, or why it did not; the answer or the refusal is counted."""
        if reply.failure is not None:
            return None, reply.failure
        response, api = reply.response, api_of(reply.request)
        self.outcomes.note(api, response.error_code)
        if response.error_code:
            return None, refused(api, response.error_code, getattr(response, "error_message", None))
        return response, None

    async def _ask_in_turn(self, broker_id: int | str, batch: Sequence[Message], replies: "queue.SimpleQueue[Reply]") -> None:
        for request in batch:
            try:
                reply = await self._exchange(broker_id, request)
            except Exception as problem:  # noqa: BLE001  (the waiting thread needs one reply per request, whatever went wrong)
                reply = Reply(broker_id=broker_id, request=request, failure=self._failure_of(broker_id, request, problem))
            replies.put(reply)

    async def _exchange(self, broker_id: int | str, request: Message) -> Reply:
        if broker_id in self.unanswering:
            return Reply(broker_id=broker_id, request=request, failure=replace(self.unanswering[broker_id], api=api_of(request)))
        try:
            response = await self._send(broker_id, request)
        except (kafka_errors.KafkaConnectionError, kafka_errors.NodeNotReadyError, kafka_errors.Cancelled):
            # A connection that the broker closed while idle, or a reconnect pause: worth exactly one more try.
            if not self.seconds_left():
                raise
            await self._net.sleep(min(self.manager.connection_delay(broker_id) + _PAUSE_SECONDS, self.seconds_left()))
            response = await self._send(broker_id, request)
        return Reply(broker_id=broker_id, request=request, response=response)

    async def _send(self, broker_id: int | str, request: Message) -> Message:
        limit_ms = min(float(self.settings.request_timeout_ms), self.seconds_left() * 1000)
        if limit_ms <= 0:
            raise _DeadlineError("the time for this snapshot is used up")
        connection = self.manager.get_connection(broker_id, timeout_ms=limit_ms, refresh_metadata_on_err=False)
        # Bounded here as well: kafka-python's TLS handshake has no time limit of its own.
        await self.manager.wait_for(connection.init_future, limit_ms)
        while connection.paused:  # the broker throttles this client by quota: KIP-219 asks clients to wait
            if not self.seconds_left():
                raise _DeadlineError("the broker throttles this client (a quota) and the time for this snapshot is used up")
            await self._net.sleep(_PAUSE_SECONDS)
        return await connection.send_request(request, request_timeout_ms=limit_ms)

    def _failure_of(self, broker_id: int | str, request: Message, problem: Exception) -> Failure:
        number = broker_id if isinstance(broker_id, int) else None
        api = api_of(request)
        if not isinstance(problem, kafka_errors.IncompatibleBrokerVersion):
            self.unanswered.add(broker_id)
        if isinstance(problem, _DeadlineError):
            return Failure(api=api, error=DEADLINE_EXCEEDED, message=str(problem), broker_id=number)
        if isinstance(problem, kafka_errors.IncompatibleBrokerVersion):
            return Failure(api=api, error=UNSUPPORTED_VERSION, message=f"broker {broker_id} does not support {api}", broker_id=number)
        if isinstance(problem, kafka_errors.RequestTimedOutError | kafka_errors.KafkaTimeoutError):
            seconds = self.settings.request_timeout_ms / 1000
            message = f"broker {broker_id} did not answer {api} within {seconds:g} s"
            failure = Failure(api=api, error=REQUEST_TIMED_OUT, message=message, broker_id=number)
        elif isinstance(problem, kafka_errors.KafkaProtocolError):
            return Failure(api=api, error=INVALID_RESPONSE, message=f"broker {broker_id}: {problem}", broker_id=number)
        elif isinstance(problem, kafka_errors.BrokerResponseError):
            name = getattr(problem, "message", None) or type(problem).__name__
            failure = Failure(api=api, error=str(name), message=str(problem), broker_id=number)
        else:
            message = f"broker {broker_id} cannot be reached: {problem}"
            failure = Failure(api=api, error=BROKER_NOT_AVAILABLE, message=message, broker_id=number)
        self.unanswering[broker_id] = failure
        return failure

    def sleep(self, seconds: float) -> None:
        """Wait, but not past the deadline."""
        time.sleep(min(seconds, self.seconds_left()))


class _DeadlineError(Exception):
    """The deadline of the whole snapshot has passed."""


def api_of(request: Message) -> str:
    """Kafka's name of the API a request belongs to, such as ``ListOffsets``."""
    return str(type(request).__name__).partition("Request")[0]


def quiet_kafka_logging() -> None:
    """Keep kafka-python's log from showing credentials: below WARNING it writes authentication bytes and whole configurations.

    Errors it would log are in the ``errors`` dataset, so unless someone has set a level it is silent.
    """
    logger = logging.getLogger("kafka")
    if not logger.handlers:  # as kafka-python itself does, when its clients are loaded
        logger.addHandler(logging.NullHandler())
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)
    elif logger.level < logging.WARNING:
        logger.setLevel(logging.WARNING)
