"""Starts, stops and inspects a sandbox; the next start or stop cleans up after a crash."""

import secrets
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kafka import KafkaAdminClient

from kafka_audit.errors import ConfigurationError
from kafka_audit.jars.fetch import Progress, broker_classpath, exclusive
from kafka_audit.sandbox import auditor, brokers, processes
from kafka_audit.sandbox.definition import Seed, Verdict, load
from kafka_audit.sandbox.seed import execute
from kafka_audit.sandbox.state import Folder, State

NO_SEED = "none"
Condition = Literal["up", "degraded", "down"]
# A broker that has lost its quorum would wait much longer, and its data is deleted anyway.
STOP_GRACE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """A running sandbox. Used as a context manager, it stops at the end of the block."""

    directory: Path
    bootstrap: str
    seed: str

    @property
    def audit_connection(self) -> dict[str, str]:
        """Connection keys for an audit; on secured brokers, those of the principal that may only read."""
        path = Folder(self.directory).audit_connection
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else [f"bootstrap.servers={self.bootstrap}"]
        return dict(line.split("=", 1) for line in lines)

    def stop(self, progress: Progress = lambda message: None) -> None:
        """Stop its processes and remove its data; the logs stay."""
        stop(directory=self.directory, progress=progress)

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the sandbox, also after an exception."""
        self.stop()


@dataclass(frozen=True, kw_only=True)
class Status:
    """Whether it is up (all started processes live), degraded (some died) or down; processes maps role to pid, None for a dead one."""

    directory: Path
    condition: Condition
    seed: str | None = None
    bootstrap: str | None = None
    processes: dict[str, int | None]


def start(
    seed: str = "faulty", *, directory: Path | None = None, replace: bool = False, progress: Progress = lambda message: None
) -> Sandbox:
    """Start three brokers and write the seed ("none": brokers as in the healthy seed, nothing written).

    If a sandbox already runs in the folder, replace=True stops it first; without it that is a ConfigurationError. Remains of a crash are
    removed. Raises CollectionError if jars, brokers or clients fail; then, and after Ctrl-C, nothing is left running.
    """
    definition = load("healthy" if seed == NO_SEED else seed)
    folder = Folder(directory)
    classpath = broker_classpath(progress)
    folder.claim()
    with exclusive(folder.lock, wait=False):
        _make_way(folder, replace=replace, progress=progress)
        folder.remove_logs()
        try:
            state = _start_brokers(definition, seed, classpath, folder, progress)
            if seed != NO_SEED:
                state = _write(definition, state, folder, progress)
        except BaseException:  # also Ctrl-C: the brokers, in their own sessions, would survive it
            progress("Stopping what was started")
            processes.stop(folder.processes(), grace=STOP_GRACE_S)
            folder.remove_data()
            raise
    return Sandbox(directory=folder.path, bootstrap=state.bootstrap, seed=seed)


def stop(*, directory: Path | None = None, progress: Progress = lambda message: None) -> int:
    """Stop every process of the sandbox, remove its data, keep its logs. Returns how many processes were stopped (0: none ran)."""
    folder = Folder(directory)
    if not folder.is_sandbox():
        return 0
    with exclusive(folder.lock, wait=True):
        targets = folder.processes()
        if targets:
            progress(f"Stopping {len(targets)} processes")
            processes.stop(targets, grace=STOP_GRACE_S)
        folder.remove_data()
        return len(targets)


def status(*, directory: Path | None = None) -> Status:
    """Look at a sandbox without changing it."""
    folder = Folder(directory)
    state = folder.load() if folder.is_sandbox() else None
    if state is None:
        return Status(directory=folder.path, condition="down", processes={})
    alive = {record.role: record.pid if record.find() else None for record in state.processes}
    condition: Condition = "up" if all(alive.values()) else "degraded" if any(alive.values()) else "down"
    return Status(directory=folder.path, condition=condition, seed=state.seeded or NO_SEED, bootstrap=state.bootstrap, processes=alive)


def seed_running(
    name: str, *, bootstrap: str | None = None, directory: Path | None = None, progress: Progress = lambda message: None
) -> tuple[Verdict, ...]:
    """Write a seed to the running sandbox or, with bootstrap, to another Kafka, where faults of brokers cannot be seeded.

    Returns the expected findings that were skipped for that reason. The consumers run until the sandbox of this folder is stopped.
    Raises ConfigurationError if no sandbox is up, if it has a seed already, or if the cluster has topics of the same names.
    """
    definition = load(name)
    folder = Folder(directory)
    if bootstrap is not None:
        folder.claim()
    elif status(directory=directory).condition != "up":
        raise ConfigurationError(
            f"No sandbox is up in {folder.path}: run `kafka-audit sandbox start --seed {name}`, or give --bootstrap HOST:PORT."
        )
    with exclusive(folder.lock, wait=False):
        if bootstrap is not None:
            _make_way(folder, replace=False, progress=progress)
            state = State(seed=NO_SEED, cluster_id="", bootstrap=bootstrap, brokers=())
            folder.data.mkdir(parents=True, exist_ok=True)
            folder.save(state)
        else:
            loaded = folder.load()
            if loaded is None or loaded.seeded:
                raise ConfigurationError(f"The sandbox in {folder.path} already has a seed: stop it, then start it with --seed {name}.")
            state = loaded
        try:
            _write(definition, state, folder, progress)
        except BaseException:
            # Stop only the workload that was started here; the brokers of a running sandbox stay up.
            processes.stop(processes.running([str(folder.workload_plan)]), grace=STOP_GRACE_S)
            if bootstrap is not None:
                folder.remove_data()
            else:
                folder.save(state)
            raise
    return tuple(verdict for verdict in (*definition.faults, *definition.not_assessed) if verdict.needs_own_brokers)


def _make_way(folder: Folder, *, replace: bool, progress: Progress) -> None:
    state = folder.load()
    targets = folder.processes()
    if state and targets and all(record.find() for record in state.processes) and not replace:
        raise ConfigurationError(
            f"A sandbox (seed {state.seeded or NO_SEED}) is up in {folder.path} at {state.bootstrap}: "
            "use it, or run `kafka-audit sandbox stop`."
        )
    if targets:
        progress(f"Stopping {len(targets)} processes of the sandbox before")
        processes.stop(targets, grace=STOP_GRACE_S)
    folder.remove_data()


def _start_brokers(definition: Seed, seed: str, classpath: str, folder: Folder, progress: Progress) -> State:
    planned = brokers.plan(definition.brokers, folder)
    password = secrets.token_urlsafe(18)
    for broker in planned:
        values = brokers.properties(definition.brokers, planned, broker, folder, password=password)
        brokers.write_properties(values, folder.properties(broker.id))
    state = State(seed=seed, cluster_id=brokers.new_cluster_id(), bootstrap=brokers.bootstrap(planned), brokers=planned)
    folder.save(state)
    progress("Formatting storage")
    brokers.format_storage(classpath, state.cluster_id, planned, folder, features=definition.brokers.features)
    progress(f"Starting {len(planned)} brokers, logs in {folder.logs}")
    for broker in planned:
        state = folder.add_process(state, brokers.launch(classpath, broker, folder))
    brokers.wait_until_registered(planned, state.processes, folder)
    if definition.brokers.secured:
        with closing(KafkaAdminClient(bootstrap_servers=state.bootstrap, client_id="sandbox")) as admin:
            auditor.grant_reading(admin)
        auditor.write_connection(planned, password, folder)
    progress(f"{len(planned)} brokers are up at {state.bootstrap}")
    return state


def _write(definition: Seed, state: State, folder: Folder, progress: Progress) -> State:
    def launch_workload() -> None:
        nonlocal state
        argument = str(folder.workload_plan)
        command = [sys.executable, "-m", "kafka_audit.sandbox.workload", argument]
        record = processes.launch("workload", command, argument=argument, log=folder.log("workload"), cwd=folder.data)
        state = folder.add_process(state, record)

    execute(definition, state, folder, launch_workload, progress)
    state = state.model_copy(update={"seeded": definition.name})
    folder.save(state)
    return state


if __name__ == "__main__":
    stop(directory=Path(sys.argv[1]))
