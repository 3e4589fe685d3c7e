"""The schema of a seed file: brokers, topics, producers, groups, a disk failure, and the findings that an audit must give."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import repeated
from kafka_audit.input_files.yaml_file import read_model

SEEDS = Path(__file__).with_name("seeds")

Count = Annotated[int, Field(ge=1)]
ConfigMap = dict[str, str]
_TIERED_METADATA = "__remote_log_metadata"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Node(_Strict):
    """One broker process; a voter also runs the controller role. ``dynamic_config`` is set while it runs, ``config`` when it starts."""

    id: Count
    rack: str | None = None
    voter: bool = True
    log_dirs: Annotated[int, Field(ge=1, le=4)] = 1
    config: ConfigMap = {}
    dynamic_config: ConfigMap = {}


class Brokers(_Strict):
    """The three broker processes and the properties that they share.

    ``secured``: Kafka's authorizer is on, and the audit connects as a principal that may only read. ``features``: the feature levels to
    format the storage with, if they differ from Kafka's defaults.
    """

    config: ConfigMap = {}
    nodes: tuple[Node, ...]
    secured: bool = False
    features: dict[str, int] = {}


class Topic(_Strict):
    """A topic with one replica list per partition; the first replica is the preferred leader."""

    name: str
    replicas: tuple[tuple[Count, ...], ...]
    config: ConfigMap = {}


class Producer(_Strict):
    """One producer and how many records it writes to each partition of its topics.

    ``ends: open`` leaves its transaction open; ``ends: unknown`` writes a transaction that no coordinator knows, so that nobody ends it.
    """

    client: Literal["kafka-python", "confluent-kafka"]
    client_id: str
    mode: Literal["idempotent", "acks=1", "transactional"]
    records: dict[str, Count]
    age_hours: Annotated[int, Field(ge=0)] = 0
    ends: Literal["committed", "open", "unknown"] = "committed"

    @model_validator(mode="after")
    def _client_can(self) -> "Producer":
        if (self.mode == "idempotent") != (self.client == "kafka-python"):
            raise ValueError("kafka-python writes mode idempotent, confluent-kafka writes acks=1 and transactional")
        if self.ends != "committed" and self.mode != "transactional":
            raise ValueError("only a transaction can be left open: set mode: transactional")
        return self


class Group(_Strict):
    """A consumer group: its member's client, the topics that it reads, and the offsets that it commits in the end.

    behind maps "topic-partition" to the distance of the commit below the log end; negative: beyond the end. The commits of other
    partitions are at their log end; on those in ``without`` it commits nothing. ``static``: the member has a group.instance.id.
    ``stuck``: once the member has committed it polls no more, and another one joins: the group rebalances for as long as the first lives.
    """

    id: Annotated[str, Field(min_length=1)]
    client: Literal["kafka-python", "confluent-kafka", "admin"]
    protocol: Literal["classic", "consumer"] = "classic"
    topics: tuple[str, ...]
    commits: Literal["by hand", "auto", "never"] = "by hand"
    stays: bool = True
    static: bool = False
    stuck: bool = False
    behind: dict[str, int] = {}
    without: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _client_can(self) -> "Group":
        if self.client == "admin" and (self.stays or self.commits != "by hand"):
            raise ValueError("the admin client joins no group: set stays: false and commits: by hand")
        if (self.protocol == "consumer" or self.commits == "auto") and self.client != "confluent-kafka":
            raise ValueError("protocol consumer and auto-commit need client: confluent-kafka")
        if self.static and not self.stays:
            raise ValueError("a static member that leaves still belongs to its group: set stays: true or static: false")
        if self.stuck and not (self.client == "kafka-python" and self.stays and not self.static):
            raise ValueError("stuck needs client: kafka-python, stays: true and static: false")
        if self.behind and self.commits != "by hand":
            raise ValueError("behind needs commits: by hand")
        return self


class LogDirFailure(_Strict):
    """A log dir of a broker, by its number, fails; exactly these "topic-partition" replicas are in it. The first one has all others."""

    broker: Count
    log_dir: Annotated[int, Field(ge=2, le=4)] = 2
    replicas: tuple[str, ...]


class Change(_Strict):
    """What happens to the cluster between the last earlier snapshot and the audit.

    In this order: ``log_dir_failure``, another log dir that fails; ``reassign``: "topic-partition" -> its new replicas;
    ``configure``: topic -> settings; ``elect_uncleanly``: partitions without a leader that are given one by force; ``change_leaders``:
    "topic-partition" -> how often its leader changes; ``recreate``: topics to delete and create again; ``add_partitions``: topic -> how
    many to add; ``rewind``: group without members -> "topic-partition" -> the earlier offset to commit.
    """

    log_dir_failure: LogDirFailure | None = None
    reassign: dict[str, tuple[Count, ...]] = {}
    configure: dict[str, ConfigMap] = {}
    elect_uncleanly: tuple[str, ...] = ()
    change_leaders: dict[str, Count] = {}
    recreate: tuple[str, ...] = ()
    add_partitions: dict[str, Count] = {}
    rewind: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = {}


class Verdict(_Strict):
    """One expected result: a control's code and a resource, as an audit names them."""

    control: str
    resource: str

    @property
    def needs_own_brokers(self) -> bool:
        """True if the verdict depends on how the brokers are run, so that another cluster would not give it."""
        return self.control.startswith(("BRK-", "QRM-", "REP-", "AUD-", "SEC-", "TXN-01", "TXN-03")) or self.resource == _TIERED_METADATA


class Seed(_Strict):
    """One sandbox: how its brokers run, what is written to them, and what an audit of them must find.

    ``preferred_leaders``: "topic-partition" -> the replica that becomes the first one, without an election.
    """

    name: str
    description: str
    brokers: Brokers
    topics: tuple[Topic, ...] = ()
    internal_topics: dict[str, ConfigMap] = {}
    producers: tuple[Producer, ...] = ()
    groups: tuple[Group, ...] = ()
    delete_records: dict[str, Count] = {}
    preferred_leaders: dict[str, Count] = {}
    log_dir_failure: LogDirFailure | None = None
    earlier_snapshots: Annotated[int, Field(ge=0, le=10)] = 0
    change: Change | None = None
    faults: tuple[Verdict, ...] = ()
    not_assessed: tuple[Verdict, ...] = ()

    def log_dir_failures(self) -> tuple[LogDirFailure, ...]:
        """Return the log dirs that fail: after seeding, and between the last earlier snapshot and the audit."""
        later = self.change.log_dir_failure if self.change else None
        return tuple(failure for failure in (self.log_dir_failure, later) if failure)

    def for_another_kafka(self) -> "Seed":
        """Return the seed without what would change how the brokers run, now or when tiered storage is switched on."""
        topics = tuple(topic for topic in self.topics if topic.name != _TIERED_METADATA)
        producers = tuple(producer for producer in self.producers if producer.ends != "unknown")
        return self.model_copy(update={"topics": topics, "producers": producers})

    def partitions(self) -> dict[str, tuple[int, ...]]:
        """Return "topic-partition" -> broker ids of its replicas, for all topics."""
        return {f"{t.name}-{p}": replicas for t in self.topics for p, replicas in enumerate(t.replicas)}

    def _change_fits(self, change: Change) -> None:
        """Raise ValueError for what the change names and the seed does not have."""
        nodes = [node.id for node in self.brokers.nodes]
        topics, partitions = [topic.name for topic in self.topics], self.partitions()
        groups = {group.id: group for group in self.groups if not group.stays}
        for name, replicas in change.reassign.items():
            _known(f"change, reassign {name}", replicas, nodes)
        for named in (change.reassign, change.elect_uncleanly, change.change_leaders):
            _known("change, reassign, elect_uncleanly or change_leaders", named, partitions)
        _known("change, configure", change.configure, topics)
        _known("change, recreate", change.recreate, topics)
        _known("change, add_partitions", change.add_partitions, topics)
        _known("change, rewind (a group that does not stay)", change.rewind, groups)
        for name, offsets in change.rewind.items():
            _known(f"change, rewind {name}", offsets, partitions)
        if not self.earlier_snapshots:
            raise ValueError("change: needs earlier_snapshots, or no control would see it")

    @model_validator(mode="after")
    def _names_agree(self) -> "Seed":
        nodes = {node.id: node for node in self.brokers.nodes}
        partitions = self.partitions()
        topics = {topic.name for topic in self.topics}
        for name, replicas in partitions.items():
            _known(f"replicas of {name}", replicas, nodes)
        for producer in self.producers:
            _known(f"producer {producer.client_id}", producer.records, topics)
        for group in self.groups:
            _known(f"group {group.id}", group.topics, topics)
            _known(f"group {group.id}, behind", group.behind, partitions)
            _known(f"group {group.id}, without", group.without, partitions)
        _known("delete_records", self.delete_records, partitions)
        _known("preferred_leaders", self.preferred_leaders, partitions)
        for name, broker in self.preferred_leaders.items():
            _known(f"preferred_leaders, {name}", (broker,), partitions[name])
        if self.change:
            self._change_fits(self.change)
        for failure in self.log_dir_failures():
            _known("log_dir_failure", (failure.broker,), nodes)
            _known("log_dir_failure", failure.replicas, [n for n, replicas in partitions.items() if failure.broker in replicas])
            if nodes[failure.broker].log_dirs < failure.log_dir:
                raise ValueError(f"broker {failure.broker} has no log dir {failure.log_dir}; a broker whose only log dir fails stops")
        for kind, items in (("topic", [t.name for t in self.topics]), ("group", [g.id for g in self.groups])):
            if repeated(items):
                raise ValueError(f"a {kind} is named twice")
        if repeated(f"{verdict.control} {verdict.resource}" for verdict in (*self.faults, *self.not_assessed)):
            raise ValueError("a control is given twice for one resource")
        return self


def _known(where: str, used: object, known: object) -> None:
    unknown = [item for item in used if item not in known]  # type: ignore[attr-defined,operator]
    if unknown:
        raise ValueError(f"{where}: unknown {', '.join(map(str, unknown))}")


def load(name: str) -> Seed:
    """Return the shipped seed of this name. Raises ConfigurationError for an unknown name or an invalid file."""
    path = SEEDS / f"{name}.yaml"
    known = sorted(file.stem for file in SEEDS.glob("*.yaml"))
    if name not in known:
        raise ConfigurationError(f"There is no seed {name!r}: choose one of {', '.join(known)}.")
    return read_model(path, Seed)[0]
