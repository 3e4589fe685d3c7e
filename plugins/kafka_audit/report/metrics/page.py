"""Renders the metrics of all clusters: what Prometheus reads at ``/kafka-audit/metrics``."""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from kafka_audit.audit.clusters import cluster_policy
from kafka_audit.errors import AuditError
from kafka_audit.policy import Policy, load_policy
from kafka_audit.report.metrics.audits import NO_GROUPS, AuditFigures, read_audit
from kafka_audit.report.metrics.definitions import UP
from kafka_audit.report.metrics.newest import newest_audit, newest_offsets
from kafka_audit.report.metrics.offsets import OffsetsFigures, read_offsets
from kafka_audit.report.metrics.samples import Samples, add_audit, add_offsets
from kafka_audit.safe_text import visible
from kafka_audit.store.layout import EvidenceRoot

CONTENT_TYPE: str = CONTENT_TYPE_LATEST
"""The media type of what :func:`render_metrics` gives."""
LIMIT = 10_000
"""The largest number of series of a metric of groups and topics, for each cluster."""

_Made = TypeVar("_Made")
_UNREADABLE = (AuditError, OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError, pa.ArrowException)
"""What reading files raises that anybody may have written."""
log = logging.getLogger(__name__)


def render_metrics(root: EvidenceRoot, clusters: Sequence[str], *, limit: int = LIMIT) -> str:
    """The metrics (``definitions.LIVE``) of the newest evidence of each cluster, in OpenMetrics text of the type ``CONTENT_TYPE``.

    Lag is of the newest sealed snapshot with offsets; verdict, results, time to loss, time to expiry and error budgets are of the newest
    sealed audit; SLAs are those of the cluster's own policy, or else of the installation's. What cannot be read, or is not as it was
    sealed, has ``kafka_audit_up`` 0, and the log says why; other clusters and other evidence are not affected. ``limit``: see ``LIMIT``.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Page(root, tuple(dict.fromkeys(clusters)), limit))
    made: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return made.decode("utf-8")


class _Page(Collector):
    def __init__(self, root: EvidenceRoot, clusters: Sequence[str], limit: int) -> None:
        self._root, self._clusters, self._limit = root, clusters, limit

    def collect(self) -> Iterator[GaugeMetricFamily]:
        page = Samples()
        policies: dict[Path | None, Policy | None] = {}
        for name in self._clusters:
            policy = _tried(f"the policy of {name}", partial(_policy, name, policies))
            audit = _tried(f"the newest audit of {name}", partial(self._audit, name))
            groups = audit[0].groups if audit is not None else NO_GROUPS
            offsets = _tried(f"the newest offsets of {name}", partial(self._offsets, name, groups, policy))
            if any(made is not None and made[0].sample for made in (audit, offsets)):
                continue
            for evidence, found in (("audit", audit), ("offsets", offsets), ("slas", policy)):
                page.add(UP, found is not None, name, evidence)
            for made in (audit, offsets):
                if made is not None:
                    page.take(made[1])
        yield from page.families.values()

    def _audit(self, cluster: str) -> tuple[AuditFigures, Samples] | None:
        folder = newest_audit(self._root, cluster)
        if folder is None:
            return None
        figures, samples = read_audit(folder), Samples()
        add_audit(samples, cluster, figures, self._limit)
        return figures, samples

    def _offsets(self, cluster: str, groups: pa.Table, policy: Policy | None) -> tuple[OffsetsFigures, Samples] | None:
        snapshot = newest_offsets(self._root, cluster)
        if snapshot is None:
            return None
        figures, samples = read_offsets(snapshot, groups, None if policy is None else policy.lag_sla, self._limit), Samples()
        add_offsets(samples, cluster, figures, self._limit)
        return figures, samples


def _policy(cluster: str, loaded: dict[Path | None, Policy | None]) -> Policy | None:
    """The policy of scheduled audits of a cluster; ``loaded``: by folder, None where it cannot be used, so that each is read once."""
    folder = cluster_policy(cluster)
    if folder not in loaded:
        loaded[folder] = _tried(f"the policy in {folder or 'this release'}", partial(load_policy, folder))
    return loaded[folder]


def _tried(what: str, read: Callable[[], _Made | None]) -> _Made | None:
    """What is read; None, and a line in the log, if it cannot be."""
    try:
        return read()
    except _UNREADABLE as problem:
        log.warning("metrics leave out %s: %s", what, visible(f"{type(problem).__name__}: {problem}"))
        return None
