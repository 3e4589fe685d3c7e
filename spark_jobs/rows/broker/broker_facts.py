"""What all rows share about the brokers: who is alive, where they stand, and which of them left which dataset unread.

These facts grow with the brokers, not with topics or groups. They are read once, here, and become constants of the plan: as tables they
would have to be joined to every subject, and each join starts Spark jobs of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import constant
from spark_jobs.rows import missing

PER_BROKER = (
    *("broker_configs", "log_dirs", "replica_sizes", "offsets", "last_batches", "producers"),
    *("groups", "members", "committed_offsets", "transactions"),
)
"""Datasets that are asked of each broker."""
_SINCE_3_7 = 1  # KIP-919 gave DescribeCluster version 1 in 3.7, with ZooKeeper and with KRaft


@dataclass(frozen=True, kw_only=True)
class BrokerFacts:
    """``alive`` and ``racks`` (broker -> rack) are None when metadata could not be read, ``alive`` also when it contradicts itself.

    ``unread``: dataset -> broker -> reason.

    ``bounds``: broker -> whether it bounds min.insync.replicas by the number of replicas, as releases since 3.7 do (KAFKA-15583);
    without those of which the release is not known. ``coordinators``: ``groups`` and ``transactions`` -> why a part of them is missing,
    because a partition of the coordinators' topic has no leader.
    """

    alive: tuple[int, ...] | None
    racks: Mapping[int, str | None] | None
    bounds: Mapping[int, bool]
    unread: Mapping[str, Mapping[int, str]]
    coordinators: Mapping[str, str]

    @property
    def alive_ids(self) -> Column:
        """The brokers that are alive, as array<int>."""
        return ints(self.alive)

    @property
    def alive_racks(self) -> Column:
        """How many racks the alive brokers stand in, as int; NULL when one of them has none."""
        found = None if self.alive is None or self.racks is None else [self.racks[broker] for broker in self.alive]
        return F.lit(None if found is None or None in found else len(set(found))).cast("int")

    def rack_of(self, broker: Column) -> Column:
        """The rack of a broker; NULL when it is not known."""
        if not self.racks:
            return F.lit(None).cast("string")
        return constant(self.racks, "map<string,string>")[broker.cast("string")]

    def bounds_min_insync(self, broker: Column) -> Column:
        """Whether a broker bounds min.insync.replicas by the number of replicas; NULL when its release is not known."""
        if not self.bounds:
            return F.lit(None).cast("boolean")
        return constant(self.bounds, "map<string,boolean>")[broker.cast("string")]

    def unread_of(self, dataset: str, broker: Column) -> Column | None:
        """Why a dataset is missing from one broker: NULL where it is not, None when no broker left it out."""
        return self._unread(dataset, lambda number: broker == number)

    def unread_of_some(self, dataset: str, brokers: Column) -> Column | None:
        """Why a dataset is missing from one of several brokers (array<int>), the first if there are more; else as :meth:`unread_of`."""
        return self._unread(dataset, lambda number: F.array_contains(brokers, number))

    def _unread(self, dataset: str, concerned: Callable[[int], Column]) -> Column | None:
        missing = self.unread.get(dataset)
        return F.coalesce(*[F.when(concerned(number), F.lit(reason)) for number, reason in missing.items()]) if missing else None

    def unread_of_any(self, dataset: str) -> str | None:
        """Why a dataset is missing from at least one broker, or from a coordinator that no broker is; None when it is whole."""
        return next(iter(self.unread.get(dataset, {}).values()), self.coordinators.get(dataset))


def ints(values: Sequence[int] | None) -> Column:
    """A constant array<int>, NULL for None."""
    if values is None:
        return F.lit(None).cast("array<int>")
    return F.array(*[F.lit(value) for value in values]).cast("array<int>")


def broker_facts(evidence: Evidence) -> BrokerFacts:
    """The facts of a snapshot, from the datasets brokers and errors."""
    return evidence.memo("broker_facts", lambda: _read(evidence))


def reassigning_partitions(evidence: Evidence) -> int | None:
    """How many partitions are being reassigned; None when that is not known of the whole cluster and none is seen."""
    seen = evidence.rows("reassignments")
    whole = not evidence.topic_scope or "*" in evidence.topic_scope
    return seen if seen or (whole and not missing.failed(evidence, "reassignments")) else None


def _read(evidence: Evidence) -> BrokerFacts:
    columns = ("broker_id", "rack", "alive", "answered", "describe_cluster_version")
    brokers = sorted(evidence.small("brokers", *columns), key=lambda row: row["broker_id"])
    releases = {row["broker_id"]: row.get("describe_cluster_version") for row in brokers}  # older snapshots lack the column
    unread: dict[str, dict[int, str]] = {}
    for row in evidence.broker_errors:
        node = "controller" if row["dataset"] == "controller_configs" else "broker"
        reason = f"{row['error']} ({row['api']} on {node} {row['broker_id']}): {row['message']}"
        unread.setdefault(row["dataset"], {}).setdefault(row["broker_id"], reason)
    told = all(row["alive"] is not None for row in brokers)
    explained = {broker for reasons in unread.values() for broker in reasons}
    for row in brokers:
        # A broker that is alive and did not answer, without a word on what is missing: then nothing of it can be relied on.
        if row["alive"] and not row["answered"] and row["broker_id"] not in explained:
            for dataset in PER_BROKER:
                unread.setdefault(dataset, {})[row["broker_id"]] = f"broker {row['broker_id']} did not answer every request"
    return BrokerFacts(
        alive=tuple(row["broker_id"] for row in brokers if row["alive"]) if brokers and told else None,
        racks={row["broker_id"]: row["rack"] for row in brokers} if brokers else None,
        bounds={broker: version >= _SINCE_3_7 for broker, version in releases.items() if version is not None},
        unread={dataset: dict(sorted(reasons.items())) for dataset, reasons in unread.items()},
        coordinators=evidence.coordinator_errors,
    )
