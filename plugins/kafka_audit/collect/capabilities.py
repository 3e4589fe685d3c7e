"""Which read APIs this cluster offers and this principal may use."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import attrgetter

import pyarrow as pa

from kafka_audit.cluster.failures import Outcomes
from kafka_audit.cluster.read_apis import ASKED_APIS
from kafka_audit.collect.datasets import CAPABILITIES
from kafka_audit.collect.tables import table

Versions = Mapping[int, Mapping[int, tuple[int, int]]]
"""Broker -> key of an API -> oldest and newest version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capability:
    """One API: the versions that all answering brokers share, and what happened when it was used."""

    api: str
    api_key: int
    min_version: int | None
    max_version: int | None
    supported: bool
    allowed: bool | None
    detail: str

    @property
    def word(self) -> str:
        """``allowed``, ``denied``, ``unsupported`` or ``unknown``, as the manifest says it."""
        if not self.supported:
            return "unsupported"
        return {True: "allowed", False: "denied", None: "unknown"}[self.allowed]


def read_capabilities(versions: Versions, outcomes: Outcomes, operations: Collection[str] | None) -> tuple[Capability, ...]:
    """The matrix after the collection: versions from ApiVersions, permissions from what was answered and refused.

    ``operations``: what the principal may do on the cluster; None where the broker did not tell.
    """
    return tuple(_capability(versions, outcomes, name, key, operations or ()) for name, key in sorted(ASKED_APIS.items()))


def capabilities(matrix: tuple[Capability, ...]) -> pa.Table:
    """One row per API that the audit uses."""
    return table(CAPABILITIES.schema, map(attrgetter(*CAPABILITIES.schema.names), matrix))


def words(matrix: tuple[Capability, ...]) -> Mapping[str, str]:
    """API -> allowed, denied, unsupported or unknown."""
    return {c.api: c.word for c in matrix}


def _capability(versions: Versions, outcomes: Outcomes, name: str, key: int, operations: Collection[str]) -> Capability:
    ranges = [apis.get(key) for apis in versions.values()]
    known = [found for found in ranges if found is not None]
    supported = bool(known) and len(known) == len(ranges)
    allowed, detail = _permission(outcomes, name, operations) if supported else (None, "not offered by every broker")
    return Capability(
        api=name,
        api_key=key,
        min_version=max(low for low, _ in known) if known else None,
        max_version=min(high for _, high in known) if known else None,
        supported=supported,
        allowed=allowed,
        detail=detail,
    )


def _permission(outcomes: Outcomes, name: str, operations: Collection[str]) -> tuple[bool | None, str]:
    answered, denied = outcomes.answered(name), outcomes.denied(name)
    refused = ", ".join(f"{count} refused with {error}" for error, count in sorted(denied.items()))
    if name == "ApiVersions":
        return True, "answered by every broker that answers at all"
    if name == "ListGroups" and answered and "Describe" not in operations:
        return None, "without Describe on the cluster, groups that the principal may not describe are left out silently"
    if answered:
        return True, f"{answered} answered, {refused}" if refused else ""
    if denied:
        return False, refused
    return None, "nothing to ask it about, or no answer"
