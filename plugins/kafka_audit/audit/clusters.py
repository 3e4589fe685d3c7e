"""Which clusters this installation's DAGs read, and when: a DAG of each kind for each cluster, which reads that one and no other."""

import os
import re
from dataclasses import dataclass

from kafka_audit.errors import ConfigurationError

CLUSTER_VARIABLE = "KAFKA_AUDIT_CLUSTER"
CLUSTERS_VARIABLE = "KAFKA_AUDIT_CLUSTERS"
OFFSETS_SCHEDULE_VARIABLE = "KAFKA_AUDIT_OFFSETS_SCHEDULE"
COMMITS_SCHEDULE_VARIABLE = "KAFKA_AUDIT_COMMITS_SCHEDULE"
CLUSTER_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"
KINDS = ("kafka_reliability_audit", "kafka_offsets_snapshot", "kafka_offsets_roll_up", "kafka_commit_history")
"""The ids of the DAGs of a cluster that has none of its own: the names of the kinds."""

_EVERY_5_MINUTES = "*/5 * * * *"
_EVERY_15_MINUTES = "*/15 * * * *"
_NAME_RULE = "a name has 1-63 of a-z 0-9 . _ -, starting with a letter or a digit"


@dataclass(frozen=True, kw_only=True)
class DagCluster:
    """The one cluster that a DAG reads and the one connection it reads it by; ``listed``: the DAG's id ends with the cluster's name.

    Neither is a choice of who starts a run: a right to start runs of one DAG must reach no other cluster, connection or evidence.
    """

    name: str = "kafka"
    kafka_conn_id: str = "kafka_default"
    listed: bool = False

    def dag_id(self, kind: str) -> str:
        """``kind`` itself, or ``<kind>__<cluster>`` for a cluster with DAGs of its own."""
        return f"{kind}__{self.name}" if self.listed else kind

    @property
    def offsets_schedule(self) -> str:
        """When offsets snapshots are taken: ``KAFKA_AUDIT_OFFSETS_SCHEDULE``, else every 5 minutes."""
        return os.environ.get(OFFSETS_SCHEDULE_VARIABLE) or _EVERY_5_MINUTES

    @property
    def commits_schedule(self) -> str:
        """When the offsets topic is read: ``KAFKA_AUDIT_COMMITS_SCHEDULE``, else every 15 minutes."""
        return os.environ.get(COMMITS_SCHEDULE_VARIABLE) or _EVERY_15_MINUTES


def dag_clusters() -> list[DagCluster]:
    """One for each DAG of a kind: those that ``KAFKA_AUDIT_CLUSTERS`` lists, or else the one of the plain DAGs.

    ``KAFKA_AUDIT_CLUSTERS`` holds ``name=connection id`` pairs, separated by commas. Without it the plain DAGs read by the connection
    ``kafka_default``, and ``KAFKA_AUDIT_CLUSTER`` is the cluster's name (else ``kafka``). With it there are no plain DAGs: one that reads
    another cluster than those listed would be filed among them. ConfigurationError names what cannot be used.
    """
    pairs = [pair.strip() for pair in os.environ.get(CLUSTERS_VARIABLE, "").split(",") if pair.strip()]
    listed = [_read(pair) for pair in pairs]
    names = [one.name for one in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{CLUSTERS_VARIABLE}: lists {', '.join(twice)} twice; give each cluster one name and one connection")
    only = os.environ.get(CLUSTER_VARIABLE) or ""
    if only and listed:
        raise ConfigurationError(
            f"{CLUSTER_VARIABLE} names one cluster and {CLUSTERS_VARIABLE} lists {', '.join(names)}: set one of the two"
        )
    if only and not re.fullmatch(CLUSTER_PATTERN, only):
        raise ConfigurationError(f"{CLUSTER_VARIABLE}: {only!r} is not usable: {_NAME_RULE}")
    return listed or [DagCluster(name=only or DagCluster.name)]


def cluster_of_dag(dag_id: str) -> DagCluster:
    """The cluster that the DAG of that id reads, by the settings of this process; ConfigurationError when they give no such DAG."""
    clusters = dag_clusters()
    found = next((one for one in clusters if dag_id in {one.dag_id(kind) for kind in KINDS}), None)
    if found is None:
        names = ", ".join(one.name for one in clusters)
        raise ConfigurationError(
            f"the DAG {dag_id} is none of this installation, whose clusters are {names}: "
            f"set {CLUSTERS_VARIABLE} to the same for every Airflow component"
        )
    return found


def of_kind(dag_id: str, kind: str) -> bool:
    """Whether ``dag_id`` is the plain DAG ``kind`` or the same DAG for a listed cluster."""
    return dag_id == kind or dag_id.startswith(f"{kind}__")


def _read(pair: str) -> DagCluster:
    name, _, kafka_conn_id = (part.strip() for part in pair.partition("="))
    if not re.fullmatch(CLUSTER_PATTERN, name) or not kafka_conn_id:
        raise ConfigurationError(
            f"{CLUSTERS_VARIABLE}: {pair!r} is not usable: write name=connection id, such as orders=kafka_orders; {_NAME_RULE}"
        )
    return DagCluster(name=name, kafka_conn_id=kafka_conn_id, listed=True)
