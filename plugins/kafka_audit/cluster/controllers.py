"""Reads the configuration of dedicated controllers from the controllers themselves (KIP-919): no broker knows their static values."""

import socket
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from kafka.protocol.metadata import MetadataResponse

from kafka_audit.cluster.brokers import Listener, QuorumReplica
from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.configs import Described, describe_node_configs
from kafka_audit.cluster.failures import BROKER_NOT_AVAILABLE, DEADLINE_EXCEEDED, UNSUPPORTED_VERSION, Failure

_API = "DescribeConfigs"
# Clients need no way to the controllers, so a firewall that drops their packets is normal: it may cost a snapshot this much, once.
_ALL_SECONDS, _LEAST_SECONDS = 4.0, 1.0


def describe_controller_configs(channel: Channel, controllers: Iterable[QuorumReplica], keys: Collection[str]) -> Iterator[Described]:
    """Effective values of ``keys`` on each of these controllers, asked at its own listener with the settings of ``channel``.

    All are asked at the same time, for a few seconds in all, and none is asked a second time. One that does not answer, that refuses, or
    whose address is not known is a failure of its own.
    """
    listeners: dict[int, Listener] = {}
    for controller in controllers:
        listener = _chosen(controller.listeners, channel.settings.security_protocol)
        if listener is None:
            message = f"the cluster does not tell where controller {controller.replica_id} listens; it does since Kafka 3.9 (KIP-853)"
            yield _failed(controller.replica_id, UNSUPPORTED_VERSION, message)
        else:
            listeners[controller.replica_id] = listener
    if not channel.seconds_left():
        yield from (_failed(number, DEADLINE_EXCEEDED, "the time for this snapshot is used up") for number in listeners)
        return
    deadline = time.monotonic() + min(_ALL_SECONDS, channel.seconds_left())
    unknown = _unresolved(listeners, deadline - _LEAST_SECONDS)
    for number, reason in sorted(unknown.items()):
        yield _failed(number, BROKER_NOT_AVAILABLE, f"controller {number} cannot be reached: {listeners[number].host}: {reason}")
    reachable = {number: listener for number, listener in listeners.items() if number not in unknown}
    if reachable:
        yield from _asked(channel, reachable, keys, max(_LEAST_SECONDS, deadline - time.monotonic()))


def _asked(channel: Channel, listeners: Mapping[int, Listener], keys: Collection[str], seconds: float) -> Iterator[Described]:
    settings = replace(channel.settings, request_timeout_ms=min(channel.settings.request_timeout_ms, int(seconds * 1000)))
    controllers = Channel(settings, deadline_seconds=seconds)
    try:
        address = MetadataResponse.MetadataResponseBroker
        known = [address(version=9, node_id=number, host=one.host, port=one.port, rack=None) for number, one in listeners.items()]
        # kafka-python connects to the nodes of the last Metadata; controllers do not answer Metadata.
        controllers.manager.cluster.update_metadata(
            MetadataResponse(version=9, throttle_time_ms=0, brokers=known, cluster_id=None, controller_id=-1, topics=[])
        )
        for described in describe_node_configs(controllers, listeners, keys):
            yield _named(described, listeners[int(described.resource)])
    finally:
        controllers.close()
        channel.request_counts.update(controllers.request_counts)


def _chosen(listeners: Collection[Listener], protocol: str) -> Listener | None:
    """The listener to ask: one whose name is that of the security protocol, if there is one; they are in the order of their names."""
    usable = [one for one in listeners if one.host and one.port > 0]
    return next((one for one in usable if one.name.upper() == protocol), next(iter(usable), None))


def _unresolved(listeners: Mapping[int, Listener], deadline: float) -> dict[int, str]:
    """Controllers whose host name has no address here, with the reason.

    Names of controllers may be known within the cluster's network only, and a resolver may take longer to say so than all else here.
    """
    answers: dict[str, str | None] = {}

    def resolve(host: str) -> None:
        try:
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            answers[host] = None
        except (OSError, UnicodeError) as problem:
            answers[host] = f"its name has no address here ({problem})"

    threads = [threading.Thread(target=resolve, args=(host,), daemon=True) for host in sorted({one.host for one in listeners.values()})]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    late = "its name was not resolved in time"
    found = {number: answers.get(one.host, late) for number, one in listeners.items()}
    return {number: reason for number, reason in found.items() if reason is not None}


def _named(described: Described, listener: Listener) -> Described:
    """With the words of controllers, and the address that was asked, in its failure."""
    failure = described.failure
    if failure is None:
        return described
    message = failure.message.replace(f"broker {described.resource}", f"controller {described.resource}").replace(
        "the broker", "the controller"
    )
    place = f"listener {listener.name} at {listener.host}:{listener.port}"
    return replace(described, failure=replace(failure, message=f"{message} ({place})"))


def _failed(number: int, error: str, message: str) -> Described:
    return Described(resource=str(number), failure=Failure(api=_API, error=error, message=message, broker_id=number))
