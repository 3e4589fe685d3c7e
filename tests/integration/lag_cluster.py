"""Three brokers that a test can stop, kill and restart by number."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka_audit.jars.fetch import broker_classpath
from kafka_audit.sandbox import brokers, processes
from kafka_audit.sandbox.definition import Brokers, Node
from kafka_audit.sandbox.processes import ProcessRecord
from kafka_audit.sandbox.state import BrokerState, Folder

_BROKERS = Brokers(
    config={
        "auto.create.topics.enable": "false",
        "min.insync.replicas": "1",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "1",
        # Retention looks at the logs twice a second, and at once; Kafka's defaults are five minutes and half a minute.
        "log.retention.check.interval.ms": "500",
        "log.initial.task.delay.ms": "500",
        "broker.heartbeat.interval.ms": "500",
    },
    # The only voter is never killed: the metadata survives the two others.
    nodes=(Node(id=1, rack="rack-a", voter=False), Node(id=2, rack="rack-b", voter=False), Node(id=3, rack="rack-c")),
)
_GRACE_S = 20.0


class LagCluster:
    """Running brokers; ``bootstrap`` is HOST:PORT of broker 3, which always runs, and of the others."""

    def __init__(self, folder: Folder, planned: tuple[BrokerState, ...]) -> None:
        self._folder, self._planned = folder, {broker.id: broker for broker in planned}
        self._running: dict[int, ProcessRecord] = {}
        self.bootstrap = brokers.bootstrap(sorted(planned, key=lambda broker: -broker.id))

    def launch(self, *ids: int) -> None:
        """Start brokers; they are not ready yet when this returns."""
        for number in ids:
            self._running[number] = brokers.launch(broker_classpath(lambda _: None), self._planned[number], self._folder)

    def wait_until_registered(self) -> None:
        """Return when the controller has every running broker back."""
        planned = tuple(self._planned[number] for number in self._running)
        brokers.wait_until_registered(planned, self._running.values(), self._folder)

    def kill(self, number: int) -> None:
        """End a broker as a power cut would: with SIGKILL."""
        self._end(number, grace=0.0)

    def stop(self, number: int) -> None:
        """End a broker in order: it hands its partitions over first."""
        self._end(number, grace=_GRACE_S)

    def _end(self, number: int, *, grace: float) -> None:
        process = self._running.pop(number).find()
        assert process is not None, f"broker {number} does not run"
        if grace == 0.0:
            process.kill()
        processes.stop([process], grace=grace)

    def logs(self) -> list[Path]:
        """What each broker that was started has printed."""
        return [self._folder.log(f"broker-{number}") for number in self._planned]

    def close(self) -> None:
        """Kill what runs and remove the data."""
        processes.stop(self._folder.processes(), grace=0.0)
        self._folder.remove_data()


@contextmanager
def lag_cluster(directory: Path, config: Mapping[str, str] | None = None) -> Iterator[LagCluster]:
    """Start the brokers in a new folder, with ``config`` on top of their own; kills them at the end."""
    definition = _BROKERS.model_copy(update={"config": {**_BROKERS.config, **(config or {})}})
    folder = Folder(directory)
    folder.claim()
    planned = brokers.plan(definition, folder)
    for broker in planned:
        brokers.write_properties(brokers.properties(definition, planned, broker, folder), folder.properties(broker.id))
    cluster = LagCluster(folder, planned)
    try:
        brokers.format_storage(broker_classpath(lambda _: None), brokers.new_cluster_id(), planned, folder)
        cluster.launch(*(broker.id for broker in planned))
        cluster.wait_until_registered()
        yield cluster
    finally:
        cluster.close()
