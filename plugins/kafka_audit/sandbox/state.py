"""The state of a sandbox between two commands: its state file and the processes that belong to its folder."""

import shutil
from pathlib import Path

import psutil
from pydantic import ValidationError

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import Strict
from kafka_audit.jars.fetch import cache_directory
from kafka_audit.sandbox import processes
from kafka_audit.sandbox.processes import ProcessRecord
from kafka_audit.store.durable_files import write_json

_MARKER = ".kafka-audit-sandbox"
_STATE = "state.json"


class BrokerState(Strict):
    """One broker as it was started."""

    id: int
    rack: str | None
    port: int
    controller_port: int | None
    audit_port: int | None = None
    log_dirs: tuple[str, ...]


class State(Strict):
    """A sandbox: the seed it was started with, the seed written to it, its bootstrap servers, and its processes."""

    version: int = 1
    seed: str
    seeded: str | None = None
    cluster_id: str
    bootstrap: str
    brokers: tuple[BrokerState, ...]
    processes: tuple[ProcessRecord, ...] = ()


class Folder:
    """A sandbox folder: stop removes conf and data; logs are kept until the next start."""

    def __init__(self, directory: Path | None = None) -> None:
        """Use this folder (default: ``sandbox`` in the cache); creates and reads nothing."""
        self.path = (directory or cache_directory() / "sandbox").expanduser().absolute()
        self.data = self.path / "data"
        self.logs = self.path / "logs"
        self.lock = self.path / "lock"
        self.workload_plan = self.data / "workload.json"  # its process is recognized by this path in its arguments
        # The connection of the principal that may only read: it contains a password, and exists only on secured brokers.
        self.audit_connection = self.data / "audit.properties"

    def log(self, role: str) -> Path:
        """Return the log file of the process with this role."""
        return self.logs / f"{role}.log"

    def properties(self, broker_id: int) -> Path:
        """Return a broker's server.properties; its process is recognized by this path in its arguments."""
        return self.data / f"broker-{broker_id}" / "server.properties"

    def claim(self) -> None:
        """Create the folder and mark it as a sandbox. Raises ConfigurationError for a folder with other content in it."""
        if not self.path.exists() or not any(self.path.iterdir()):
            self.path.mkdir(parents=True, exist_ok=True)
            (self.path / _MARKER).touch()
        if not (self.path / _MARKER).exists():
            raise ConfigurationError(f"{self.path} contains files that are not a sandbox's: choose an empty or a new --dir.")
        if "," in str(self.path):
            raise ConfigurationError(f"{self.path}: Kafka separates log dirs by commas, so a sandbox folder cannot have one in its name.")

    def load(self) -> State | None:
        """Return the state, or None if there is no readable state file (a crash may have left a broken one)."""
        try:
            return State.model_validate_json((self.path / _STATE).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError, ValidationError):
            return None

    def save(self, state: State) -> None:
        """Replace the state file in one step."""
        write_json(self.path / _STATE, state.model_dump(mode="json"))

    def add_process(self, state: State, record: ProcessRecord) -> State:
        """Save the state with one more process, and return it."""
        state = state.model_copy(update={"processes": (*state.processes, record)})
        self.save(state)
        return state

    def processes(self) -> list[psutil.Process]:
        """Return the sandbox's live processes, the workload first, including those that a crash kept out of the state file."""
        state = self.load()
        named = [found for record in reversed(state.processes) if (found := record.find())] if state else []
        arguments = [str(self.workload_plan), *(str(self.properties(i)) for i in range(1, 10))]
        return list(dict.fromkeys([*named, *processes.running(arguments)]))

    def remove_data(self) -> None:
        """Remove everything that a stopped sandbox leaves, except its logs. Called only on a claimed folder."""
        (self.path / _STATE).unlink(missing_ok=True)
        shutil.rmtree(self.data, ignore_errors=True)

    def remove_logs(self) -> None:
        """Remove the logs of the previous run."""
        shutil.rmtree(self.logs, ignore_errors=True)

    def is_sandbox(self) -> bool:
        """Return whether the folder was claimed by a sandbox."""
        return (self.path / _MARKER).is_file()
