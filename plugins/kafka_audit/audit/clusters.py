"""The clusters that this installation's DAGs read, and their schedules: one DAG of each kind per cluster, which reads only that cluster."""

import os
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kafka_audit.audit.cluster_file import CLUSTER_PATTERN, NAME_RULE, ListedCluster, read_cluster_file
from kafka_audit.audit.installation import policy_folder
from kafka_audit.errors import ConfigurationError

CLUSTER_VARIABLE = "KAFKA_AUDIT_CLUSTER"
CLUSTERS_VARIABLE = "KAFKA_AUDIT_CLUSTERS"
SCHEDULE_VARIABLE = "KAFKA_AUDIT_SCHEDULE"
OFFSETS_SCHEDULE_VARIABLE = "KAFKA_AUDIT_OFFSETS_SCHEDULE"
COMMITS_SCHEDULE_VARIABLE = "KAFKA_AUDIT_COMMITS_SCHEDULE"
KINDS = ("kafka_reliability_audit", "kafka_offsets_snapshot", "kafka_offsets_roll_up", "kafka_commit_history")
"""The ids of the DAGs of a cluster that has none of its own: the names of the kinds."""

_NIGHT_MINUTES = 6 * 60
_PRESETS = {"@hourly": "{minute} * * * *", "@daily": "{night}", "@weekly": "{night_of_sunday}", "@monthly": "{night_of_first}"}


@dataclass(frozen=True, kw_only=True)
class DagCluster:
    """The one cluster that a DAG reads and the one connection it reads it by; ``listed``: the DAG's id ends with the cluster's name.

    Neither is a choice of who starts a run: a right to start runs of one DAG must reach no other cluster, connection or evidence.
    ``policy`` is the cluster's own; None: the installation's. The fields ``audits``, ``offsets`` and ``commits`` are its own schedules.
    """

    name: str = "kafka"
    kafka_conn_id: str = "kafka_default"
    listed: bool = False
    policy: str | None = None
    owners: tuple[str, ...] = ("kafka-audit",)
    audits: str | None = None
    offsets: str | None = None
    commits: str | None = None

    def dag_id(self, kind: str) -> str:
        """``kind`` itself, or ``<kind>__<cluster>`` for a cluster with DAGs of its own."""
        return f"{kind}__{self.name}" if self.listed else kind

    @property
    def audit_schedule(self) -> str | None:
        """When audits run: the cluster's own schedule or ``KAFKA_AUDIT_SCHEDULE``; None: only by hand."""
        said = self.audits or os.environ.get(SCHEDULE_VARIABLE)
        return self._spread(said) if said else None

    @property
    def offsets_schedule(self) -> str:
        """When offsets snapshots are taken: as the cluster or ``KAFKA_AUDIT_OFFSETS_SCHEDULE`` says, else every 5 minutes."""
        return self._spread(self.offsets or os.environ.get(OFFSETS_SCHEDULE_VARIABLE) or self._every(5))

    @property
    def commits_schedule(self) -> str:
        """When the offsets topic is read: as the cluster or ``KAFKA_AUDIT_COMMITS_SCHEDULE`` says, else every 15 minutes."""
        return self._spread(self.commits or os.environ.get(COMMITS_SCHEDULE_VARIABLE) or self._every(15))

    @property
    def roll_up_schedule(self) -> str:
        """Half an hour after the day's end (UTC), so that late snapshots have arrived; of a listed cluster up to half an hour later."""
        return f"{30 + self._slot(30)} 0 * * *"

    def _every(self, minutes: int) -> str:
        slot = self._slot(minutes)
        return f"{slot}-59/{minutes} * * * *" if slot else f"*/{minutes} * * * *"

    def _spread(self, schedule: str) -> str:
        """A preset as a time of the cluster's own, so that many clusters do not begin together; a cron expression as it is."""
        if not self.listed or schedule not in _PRESETS:
            return schedule
        hour, minute = divmod(self._slot(_NIGHT_MINUTES), 60)
        night = f"{minute} {hour}"
        return _PRESETS[schedule].format(
            minute=self._slot(60), night=f"{night} * * *", night_of_sunday=f"{night} * * 0", night_of_first=f"{night} 1 * *"
        )

    def _slot(self, slots: int) -> int:
        """A number below ``slots`` that hangs on the cluster's name alone; 0 for the one cluster of an installation."""
        return int.from_bytes(sha256(self.name.encode()).digest()[:8]) % slots if self.listed else 0


def dag_clusters() -> list[DagCluster]:
    """One for each DAG of a kind: those that ``KAFKA_AUDIT_CLUSTERS`` lists, or else the one of the plain DAGs.

    ``KAFKA_AUDIT_CLUSTERS`` holds ``name=connection id`` pairs, separated by commas, or the absolute path of a file of clusters. Without it
    the plain DAGs read by the connection ``kafka_default``, and ``KAFKA_AUDIT_CLUSTER`` is the cluster's name (else ``kafka``). With it
    there are no plain DAGs: one that reads another cluster than those listed would be filed among them. ConfigurationError names what
    cannot be used.
    """
    listed = _listed(os.environ.get(CLUSTERS_VARIABLE, "").strip())
    only = os.environ.get(CLUSTER_VARIABLE) or ""
    if only and listed:
        names = ", ".join(one.name for one in listed)
        raise ConfigurationError(f"{CLUSTER_VARIABLE} names one cluster and {CLUSTERS_VARIABLE} lists {names}: set one of the two")
    if only and not re.fullmatch(CLUSTER_PATTERN, only):
        raise ConfigurationError(f"{CLUSTER_VARIABLE}: {only!r} is not usable: {NAME_RULE}")
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


def cluster_policy(name: str) -> Path | None:
    """The policy of a cluster's runs whose Params name none: its own (file of clusters) or the installation's; None: the shipped one.

    ConfigurationError (exit 2) when it is not the absolute path of a folder.
    """
    own = next((one.policy for one in dag_clusters() if one.name == name), None)
    if own is None:
        return policy_folder()
    if not Path(own).is_dir():
        file = os.environ.get(CLUSTERS_VARIABLE)
        raise ConfigurationError(f"{file}: policy of {name}: {own} is not a folder on this machine: correct it")
    return Path(own).resolve()


def of_kind(dag_id: str, kind: str) -> bool:
    """Whether ``dag_id`` is the plain DAG ``kind`` or the same DAG for a listed cluster."""
    return dag_id == kind or dag_id.startswith(f"{kind}__")


def _listed(value: str) -> list[DagCluster]:
    if Path(value).is_absolute():
        return [_of_file(one) for one in read_cluster_file(Path(value))]
    listed = [_read(pair.strip()) for pair in value.split(",") if pair.strip()]
    names = [one.name for one in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigurationError(f"{CLUSTERS_VARIABLE}: lists {', '.join(twice)} twice; give each cluster one name and one connection")
    return listed


def _of_file(one: ListedCluster) -> DagCluster:
    return DagCluster(
        name=one.name,
        kafka_conn_id=one.connection,
        listed=True,
        policy=one.policy,
        owners=tuple(one.owners) or DagCluster.owners,
        audits=one.schedules.audit,
        offsets=one.schedules.offsets,
        commits=one.schedules.commits,
    )


def _read(pair: str) -> DagCluster:
    name, _, kafka_conn_id = (part.strip() for part in pair.partition("="))
    if not re.fullmatch(CLUSTER_PATTERN, name) or not kafka_conn_id:
        raise ConfigurationError(
            f"{CLUSTERS_VARIABLE}: {pair!r} is not usable: write name=connection id, such as orders=kafka_orders, or the absolute path "
            f"of a file of clusters; {NAME_RULE}"
        )
    return DagCluster(name=name, kafka_conn_id=kafka_conn_id, listed=True)
