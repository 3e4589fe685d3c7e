"""What a pass over a cluster learns beside its rows: which brokers there are, who answered, and what was allowed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kafka_audit.cluster.bootstrap import BrokerAddress
from kafka_audit.cluster.failures import Outcomes
from kafka_audit.cluster.read_apis import ASKED_APIS
from kafka_audit.collect import brokers, capabilities
from kafka_audit.collect.datasets import BROKERS, CAPABILITIES, Dataset
from kafka_audit.errors import CollectionError

_ASKED_BY_ALL = frozenset(
    {"ApiVersions", "DescribeQuorum", "DescribeTransactions", "ListGroups", "ListPartitionReassignments", "ListTransactions", "Metadata"}
)
"""What each part of a snapshot, or each part of its topics, asks about the whole cluster."""


@dataclass(frozen=True, kw_only=True)
class OfCluster:
    """What is asked once for a cluster. ``operations``: what the audit's principal may do on it; None where the broker did not tell."""

    registered: Sequence[BrokerAddress] = ()
    replica_owners: Sequence[int] = ()
    controller_id: int | None = None
    operations: Sequence[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What one pass, or all parts of a snapshot together, learned.

    ``answering``: brokers that were asked and left nothing unanswered. ``versions``: broker -> key of an API -> oldest and newest version.

    ``answered`` and ``denied``: number of items by API, as in :class:`Outcomes`. ``of_cluster``: None where it was left to another part.
    """

    cluster_id: str | None
    alive: Sequence[BrokerAddress]
    answering: Sequence[int]
    versions: Mapping[int, Mapping[int, tuple[int, int]]]
    answered: Mapping[str, int]
    denied: Mapping[str, Mapping[str, int]]
    of_cluster: OfCluster | None = None

    def capabilities(self) -> tuple[capabilities.Capability, ...]:
        """What the brokers offer and the principal may use."""
        operations = self.of_cluster.operations if self.of_cluster else None
        return capabilities.read_capabilities(self.versions, Outcomes(self.answered, self.denied), operations)

    def datasets(self) -> Iterator[tuple[Dataset, pa.Table]]:
        """The datasets that only the end of the pass can tell."""
        of_cluster = self.of_cluster or OfCluster()
        releases = {broker: apis.get(ASKED_APIS["DescribeCluster"], (0, -1))[1] for broker, apis in self.versions.items()}
        of_brokers = brokers.brokers(
            alive=self.alive,
            registered=of_cluster.registered,
            replica_owners=of_cluster.replica_owners,
            answering=self.answering,
            releases=releases,
            controller_id=of_cluster.controller_id,
        )
        yield BROKERS, of_brokers
        yield CAPABILITIES, capabilities.capabilities(self.capabilities())


def joined_facts(found: Sequence[Facts]) -> Facts:
    """The facts of all parts together; a broker answered if every part says so. CollectionError when they are of several clusters."""
    if len(ids := {one.cluster_id for one in found}) > 1:
        raise CollectionError(
            f"the parts of the snapshot are of several clusters ({', '.join(sorted(map(str, ids)))}): check the addresses"
        )
    answered: Counter[str] = Counter()
    denied: dict[str, Counter[str]] = {}
    for one in found:
        for api, count in one.answered.items():
            answered[api] = _together(api, answered[api], count)
        for api, errors in one.denied.items():
            so_far = denied.setdefault(api, Counter())
            for error, count in errors.items():
                so_far[error] = _together(api, so_far[error], count)
    return Facts(
        cluster_id=found[0].cluster_id,
        alive=tuple({broker.broker_id: broker for one in found for broker in one.alive}.values()),
        answering=sorted(set.intersection(*(set(one.answering) for one in found))),
        versions={broker: apis for one in found for broker, apis in one.versions.items()},
        answered=answered,
        denied=denied,
        of_cluster=next((one.of_cluster for one in found if one.of_cluster), None),
    )


def _together(api: str, *counts: int) -> int:
    """The number of items over several parts; what each part asks about the whole cluster counts once."""
    return max(counts) if api in _ASKED_BY_ALL else sum(counts)
