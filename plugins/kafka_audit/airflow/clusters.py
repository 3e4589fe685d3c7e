"""Which clusters this installation's DAGs read, and when: a DAG of each kind for each cluster."""

import os
import re
from dataclasses import dataclass
from typing import Any

from kafka_audit.airflow.assets import asset, offsets_asset
from kafka_audit.errors import ConfigurationError

CLUSTERS_VARIABLE = "KAFKA_AUDIT_CLUSTERS"
SCHEDULE_VARIABLE = "KAFKA_AUDIT_SCHEDULE"
OFFSETS_SCHEDULE_VARIABLE = "KAFKA_AUDIT_OFFSETS_SCHEDULE"
COMMITS_SCHEDULE_VARIABLE = "KAFKA_AUDIT_COMMITS_SCHEDULE"
CLUSTER_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"

_EVERY_5_MINUTES = "*/5 * * * *"
_EVERY_15_MINUTES = "*/15 * * * *"


@dataclass(frozen=True, kw_only=True)
class DagCluster:
    """The cluster that a DAG reads unless a run's Params name another; ``listed``: it has DAGs of its own."""

    name: str = "kafka"
    kafka_conn_id: str = "kafka_default"
    listed: bool = False
    by_hand: bool = False

    def dag_id(self, kind: str) -> str:
        """``kind`` itself, or ``<kind>__<cluster>`` for a cluster with DAGs of its own."""
        return f"{kind}__{self.name}" if self.listed else kind

    def when(self, schedule: Any) -> Any:  # noqa: ANN401  (whatever Airflow takes as a schedule)
        """``schedule``, or None for a DAG that runs only by hand."""
        return None if self.by_hand else schedule

    @property
    def audit_schedule(self) -> Any:  # noqa: ANN401
        """When audits run by themselves, by ``KAFKA_AUDIT_SCHEDULE``; None when that is not set.

        ``asset``: after each offsets snapshot of this cluster. A text with ``://``: on updates of the asset of that uri.
        Anything else: a cron expression or preset.
        """
        said = os.environ.get(SCHEDULE_VARIABLE) or None
        if said == "asset":
            return self.when([offsets_asset(self.name)])
        return self.when([asset(said)] if said and "://" in said else said)

    @property
    def offsets_schedule(self) -> Any:  # noqa: ANN401
        """When offsets snapshots are taken: ``KAFKA_AUDIT_OFFSETS_SCHEDULE``, else every 5 minutes."""
        return self.when(os.environ.get(OFFSETS_SCHEDULE_VARIABLE) or _EVERY_5_MINUTES)

    @property
    def commits_schedule(self) -> Any:  # noqa: ANN401
        """When the offsets topic is read: ``KAFKA_AUDIT_COMMITS_SCHEDULE``, else every 15 minutes."""
        return self.when(os.environ.get(COMMITS_SCHEDULE_VARIABLE) or _EVERY_15_MINUTES)


def dag_clusters() -> list[DagCluster]:
    """One for each DAG of a kind: that of the plain DAG, then those that ``KAFKA_AUDIT_CLUSTERS`` lists.

    The variable holds ``name=connection id`` pairs, separated by commas; ConfigurationError names one that cannot be used. With it,
    each cluster is read by DAGs of its own and the plain ones run only by hand.
    """
    pairs = [pair.strip() for pair in os.environ.get(CLUSTERS_VARIABLE, "").split(",") if pair.strip()]
    listed = [_read(pair) for pair in pairs]
    names = [one.name for one in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{CLUSTERS_VARIABLE}: lists {', '.join(twice)} twice; give each cluster one name and one connection")
    return [DagCluster(by_hand=bool(listed)), *listed]


def of_kind(dag_id: str, kind: str) -> bool:
    """Whether ``dag_id`` is the plain DAG ``kind`` or the same DAG for a listed cluster."""
    return dag_id == kind or dag_id.startswith(f"{kind}__")


def _read(pair: str) -> DagCluster:
    name, _, kafka_conn_id = (part.strip() for part in pair.partition("="))
    if not re.fullmatch(CLUSTER_PATTERN, name) or not kafka_conn_id:
        raise ConfigurationError(
            f"{CLUSTERS_VARIABLE}: {pair!r} is not usable: write name=connection id, such as orders=kafka_orders; "
            "a name has 1-63 of a-z 0-9 . _ -, starting with a letter or a digit"
        )
    return DagCluster(name=name, kafka_conn_id=kafka_conn_id, listed=True)
