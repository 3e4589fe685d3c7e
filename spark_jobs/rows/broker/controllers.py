"""Who may become the active controller, and which settings such a node applies to topics that have none of their own.

In KRaft the active controller elects leaders and creates topics, by its own configuration. A voter of the metadata quorum that is no
broker, a dedicated controller, is in no broker's answer. All of this grows with the brokers only and becomes constants of the plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_audit.collect.config_keys import CONTROLLER_KEYS
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import constant
from spark_jobs.rows.broker.broker_facts import broker_facts, ints

_UNCLEAN = "unclean.leader.election.enable"
_SHOWN = (_UNCLEAN, "default.replication.factor", "min.insync.replicas")
_CLUSTER_WIDE = "DYNAMIC_DEFAULT_BROKER_CONFIG"
_LISTED = 20


@dataclass(frozen=True, kw_only=True)
class Controllers:
    """``voters``: of the metadata quorum; none with ZooKeeper, where every broker may be the controller; None: not known.

    ``dedicated``: those that are no brokers; None: not known. ``settings``: dedicated controller -> key -> (value, source), as it told.
    ``unclean``: one value for each voter, with ZooKeeper for each broker, but for brokers that are down; None where it is not known. None
    where voters or brokers are not known.
    """

    voters: tuple[int, ...] | None
    dedicated: tuple[int, ...] | None
    settings: Mapping[int, Mapping[str, tuple[str, str]]]
    unclean: tuple[str | None, ...] | None

    @property
    def columns_of_cluster(self) -> dict[str, Column]:
        """The columns dedicated_controllers to controller_settings of the cluster (kafka_audit.catalogue.rows)."""
        whole = [one for one in self.dedicated or () if set(_SHOWN) <= set(self.settings.get(one, {}))]
        values: dict[str, list[str]] = {}
        for told in self.settings.values():
            for name, (value, _) in told.items():
                values[name] = sorted({*values.get(name, ()), value})
        texts = [_text(number, self.settings[number]) for number in sorted(self.settings)]
        return {
            "dedicated_controllers": ints(self.dedicated),
            "controllers_answered": ints(None if self.dedicated is None else whole),
            "controller_values": constant(dict(sorted(values.items())), "map<string,array<string>>"),
            "controller_settings": F.lit(texts[:_LISTED]).cast("array<string>"),
        }

    @property
    def columns_of_topic(self) -> dict[str, Column]:
        """The columns dedicated_controllers and elector_values of topics."""
        return {"dedicated_controllers": ints(self.dedicated), "elector_values": F.lit(self._elector_values).cast("array<string>")}

    @property
    def _elector_values(self) -> list[str] | None:
        values = set(self.unclean or (None,))
        return sorted(one for one in values if one) if "true" in values or None not in values else None

    def elect_unclean(self) -> Column:
        """Whether leaders of topics without a value of their own may be elected uncleanly; NULL when that is not known."""
        values = self._elector_values
        return F.lit(None if values is None else "true" in values).cast("boolean")

    def may_be_active(self, broker: Column) -> Column:
        """Whether a broker may become the active controller; NULL when the voters are not known."""
        if self.voters is None:
            return F.lit(None).cast("boolean")
        return broker.isin(*self.voters) if self.voters else F.lit(True)


def controllers(evidence: Evidence) -> Controllers:
    """From the datasets quorum, brokers, broker_configs and controller_configs."""
    return evidence.memo("controllers", lambda: _read(evidence))


def _read(evidence: Evidence) -> Controllers:
    voters = _voters(evidence)
    brokers = {row["broker_id"]: row["alive"] for row in evidence.small("brokers", "broker_id", "alive")}
    dedicated = None if voters is None or not brokers else tuple(one for one in voters if one not in brokers)
    settings: dict[int, dict[str, tuple[str, str]]] = {}
    for row in evidence.small("controller_configs", "controller_id", "name", "value", "source"):
        if row["value"] is not None and row["name"] in CONTROLLER_KEYS and row["controller_id"] in (dedicated or ()):
            settings.setdefault(row["controller_id"], {})[row["name"]] = (row["value"], row["source"])
    electors = [] if voters is None or dedicated is None else [one for one in voters or sorted(brokers) if brokers.get(one) is not False]
    unclean = tuple(_unclean_values(evidence, electors, settings)) or None
    return Controllers(voters=voters, dedicated=dedicated, settings=settings, unclean=unclean)


def _voters(evidence: Evidence) -> tuple[int, ...] | None:
    """The quorum's voters; none where every alive broker says that it has no role in KRaft, so that the cluster is on ZooKeeper."""
    voters = tuple(sorted(row["replica_id"] for row in evidence.small("quorum", "replica_id", "role") if row["role"] == "voter"))
    if voters:
        return voters
    alive = set(broker_facts(evidence).alive or ())
    rows = evidence.small("broker_configs", "broker_id", "name", "value")
    without = {row["broker_id"] for row in rows if row["name"] == "process.roles" and row["value"] == ""}
    return () if alive and alive <= without else None


def _unclean_values(evidence: Evidence, voters: Sequence[int], settings: Mapping[int, Mapping[str, tuple[str, str]]]) -> list[str | None]:
    """What each voter has for unclean.leader.election.enable: in its own words, or else what is set for the whole cluster.

    The cluster-wide value, which brokers tell, goes before a controller's file. Only a value that is set for that one controller while it
    runs would go before it, and only a client that can reach the controller can set one.
    """
    names = ("broker_id", "name", "value", "synonyms")
    of_brokers = [row for row in evidence.small("broker_configs", *names) if row["name"] == _UNCLEAN]
    synonyms = [one for row in of_brokers for one in row["synonyms"] or ()]
    cluster_wide = {one["value"] for one in synonyms if one["source"] == _CLUSTER_WIDE and one["name"] == _UNCLEAN}
    default = next(iter(cluster_wide)) if len(cluster_wide) == 1 else None
    values = {row["broker_id"]: row["value"] for row in of_brokers}
    values |= {number: told[_UNCLEAN][0] for number, told in settings.items() if _UNCLEAN in told}
    return [values.get(voter, default) for voter in voters]


def _text(number: int, told: Mapping[str, tuple[str, str]]) -> str:
    return f"controller {number}: " + ", ".join(f"{name}={told[name][0]} ({told[name][1]})" for name in _SHOWN if name in told)
