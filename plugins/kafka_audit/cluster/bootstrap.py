"""Connects to a cluster: finds its brokers from the addresses a person gave, and says what to check when that fails."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.failures import Failure
from kafka_audit.errors import CollectionError

_CREDENTIALS_REFUSED = frozenset({"SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"})


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerAddress:
    """Where one broker listens, as the cluster advertises it."""

    broker_id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """One feature flag (KIP-584): the finalized level of the cluster, and the levels the asked broker supports."""

    name: str
    finalized_min: int | None
    finalized_max: int | None
    supported_min: int | None
    supported_max: int | None


Versions = tuple[Mapping[int, tuple[int, int]], tuple[Feature, ...]]
"""The APIs of one broker as ``api_key -> (min, max)``, and its features."""


class Cluster(Channel):
    """A channel to a cluster whose brokers are found: the functions of this folder read through it.

    Each item that they return carries its own failure; CollectionError is raised only when the cluster cannot be reached at all.
    ``deadline_seconds`` bounds the whole life of the object: what is asked later fails with DEADLINE_EXCEEDED.
    """

    def __init__(self, settings: ConnectionSettings, *, deadline_seconds: float = 600.0) -> None:
        super().__init__(settings, deadline_seconds=deadline_seconds)
        try:
            self.addresses = find_brokers(self)
            versions = read_versions(self, self.addresses)
        except BaseException:
            self.close()
            raise
        self.brokers = tuple(broker.broker_id for broker in self.addresses)
        self.api_versions = {broker_id: apis for broker_id, (apis, _) in versions.items()}
        self.features = [feature for _, features in versions.values() for feature in features]

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_brokers(channel: Channel) -> tuple[BrokerAddress, ...]:
    """Ask the bootstrap servers, one after another, who the brokers are; CollectionError when none of them tells."""
    attempts: list[str] = []
    for server in channel.manager.cluster.bootstrap_brokers():
        reply = channel.ask(server.node_id, MetadataRequest(topics=[], allow_auto_topic_creation=False))
        address = f"{server.host}:{server.port}"
        if reply.failure is None and reply.response.brokers:
            channel.manager.cluster.update_metadata(reply.response)
            channel.manager.close(server.node_id)
            return addresses_in(reply.response)
        if reply.failure is not None and reply.failure.error in _CREDENTIALS_REFUSED:
            raise _credentials_refused(channel, address, reply.failure)
        reason = "it knows no brokers yet" if reply.failure is None else _without_prefix(reply.failure)
        attempts.append(f"{address}: {reason}")
    raise CollectionError(
        f"no bootstrap server could be reached ({'; '.join(attempts)}). Check that address and port are right, that the brokers run and "
        f"that no firewall is between; and that the listener on this port speaks {channel.settings.security_protocol} (security.protocol)"
    )


def addresses_in(response: Message) -> tuple[BrokerAddress, ...]:
    """The brokers that an answer to Metadata lists, by id: those that are alive, fenced ones left out."""
    return tuple(
        BrokerAddress(broker_id=b.node_id, host=b.host, port=b.port, rack=b.rack)
        for b in sorted(response.brokers, key=lambda broker: broker.node_id)
    )


def read_versions(channel: Channel, brokers: tuple[BrokerAddress, ...]) -> dict[int, Versions]:
    """Ask every broker for its APIs and features (ApiVersions); brokers that do not answer are left out.

    CollectionError when no broker answers although a bootstrap server did: then the advertised addresses are wrong for this machine.
    """
    requests = {
        broker.broker_id: [ApiVersionsRequest(client_software_name="kafka-audit", client_software_version="0")] for broker in brokers
    }
    found: dict[int, Versions] = {}
    failures: list[Failure] = []
    for reply in channel.ask_all(requests):
        if reply.failure is not None:
            failures.append(reply.failure)
        else:
            found[int(reply.broker_id)] = _versions(reply.response)
    if not found:
        refused = next((failure for failure in failures if failure.error in _CREDENTIALS_REFUSED), None)
        if refused is not None:
            raise _credentials_refused(channel, f"broker {refused.broker_id}", refused)
        listed = ", ".join(f"{broker.host}:{broker.port}" for broker in brokers)
        reasons = "; ".join(sorted({_without_prefix(failure) for failure in failures}))
        raise CollectionError(
            f"a bootstrap server answered, but none of the addresses that the brokers advertise does: {listed} ({reasons}). "
            "Check advertised.listeners on the brokers, and that this machine can resolve and reach these addresses"
        )
    return dict(sorted(found.items()))


def _versions(response: Message) -> Versions:
    supported = {feature.name: feature for feature in response.supported_features or ()}
    known = response.finalized_features_epoch >= 0
    finalized = {feature.name: feature for feature in response.finalized_features or ()} if known else {}
    features = tuple(
        Feature(
            name=name,
            finalized_min=finalized[name].min_version_level if name in finalized else None,
            finalized_max=finalized[name].max_version_level if name in finalized else None,
            supported_min=supported[name].min_version if name in supported else None,
            supported_max=supported[name].max_version if name in supported else None,
        )
        for name in sorted({*supported, *finalized})
    )
    return {a.api_key: (a.min_version, a.max_version) for a in response.api_keys}, features


def _credentials_refused(channel: Channel, address: str, failure: Failure) -> CollectionError:
    return CollectionError(
        f"authentication failed at {address} as {channel.settings.identity} ({failure.message}). Check sasl.mechanism, sasl.username and "
        "sasl.password, and that the account exists on the cluster"
    )


def _without_prefix(failure: Failure) -> str:
    # Names such as "broker bootstrap-0" and exception classes mean nothing to the reader.
    text = failure.message.partition("cannot be reached: ")[2] or re.sub(r"^broker bootstrap-\d+ ", "", failure.message)
    return text.removeprefix("KafkaConnectionError: ")
