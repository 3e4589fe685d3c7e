"""The services of docker-compose.celery.yaml as processes of this machine: each has its own home, mirror and environment.

Their commands and settings are those of the compose files. Only names of hosts and folders that exist in containers are replaced.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from airflow_api import Api
from airflow_processes import belonging_to
from compose_files import ROOT, filled, made_env, merged
from object_store import ObjectStore
from postgres_and_redis import postgres, redis_server
from server_process import server_process

from kafka_audit.airflow import environment
from kafka_audit.sandbox.brokers import free_ports

WORKERS = ("airflow-worker-1", "airflow-worker-2")
API_SERVER = "airflow-api-server"
_STARTED = (API_SERVER, "airflow-scheduler", "airflow-dag-processor", *WORKERS)
# Tasks ask the api-server; only Celery itself writes its results to the database, by a setting of its own.
_NO_DATABASE = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg2://nobody@127.0.0.1:1/nowhere"}
_QUEUES = """
FIRST = {tasks!r}


def task_policy(task):
    task.queue = "{workers[0]}" if task.task_id in FIRST else "{workers[1]}"
"""


@dataclass(frozen=True)
class Machine:
    """One service: its folder and its environment."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def home(self) -> Path:
        return self.folder / "airflow"

    @property
    def mirror(self) -> Path:
        """Its copies of the objects in the store."""
        return self.folder / "mirror"

    @property
    def tasks(self) -> set[str]:
        """The tasks whose log is on this machine's disk, so that ran here."""
        return {found[1] for path in self.home.glob("logs/**/task_id=*") if (found := re.search(r"task_id=(\w+)$", path.name))}


def health(name: str, machine: Machine) -> str:
    """What a service's health check of the compose files prints; it must say that the service is well."""
    way, command = merged()[name]["healthcheck"]["test"]
    assert way == "CMD-SHELL"
    environment = {**machine.environment, "HOSTNAME": name}
    done = subprocess.run(["sh", "-c", filled(command, {})], env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@dataclass(frozen=True)
class Installation:
    """A running Airflow: its API as the user admin, its evidence root, and its machines by the names of their services.

    ``start``: starts a service by its name, and returns its process.
    """

    api: Api
    root: str
    machines: Mapping[str, Machine]
    start: Callable[[str], "subprocess.Popen[bytes]"]

    def replace(self, name: str) -> None:
        """Kill a service with everything that it runs, as when its machine is lost, and start it again without its copies of evidence."""
        lost = self.machines[name]
        while running := list(belonging_to(lost.home)):
            for one in running:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        shutil.rmtree(lost.mirror)
        lost.mirror.mkdir()
        self.start(name)


@contextmanager
def installation(
    folder: Path, *, store: ObjectStore, first_workers_tasks: Sequence[str], settings: Mapping[str, str]
) -> Iterator[Installation]:
    """Everything of both files that an audit needs, ready for requests; stopped at the end.

    ``first_workers_tasks``: the tasks that the first worker runs; the second runs all others. ``settings``: environment variables of all.
    """
    secrets, (port, health) = made_env(), free_ports(2)
    root = store.new_root()
    with ExitStack() as stack:
        database = stack.enter_context(postgres(user="airflow", password=secrets["POSTGRES_PASSWORD"]))
        queue = stack.enter_context(redis_server(password=secrets["REDIS_PASSWORD"]))
        hosts = {
            "@postgres/": f"@{database}/",
            "@redis:6379": f"@{queue}",
            f"{API_SERVER}:8080": f"127.0.0.1:{port}",
            "127.0.0.1:8080": f"127.0.0.1:{port}",
            "http://object-store:7070": store.endpoint,
        }
        every = {
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_HOST": "127.0.0.1",
            "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(health),
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",  # the files do not change
            # A task of a lost machine is found after half a minute, and not after five.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
            "KAFKA_AUDIT_ROOT": root,
            **{name: store.environment[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")},
            **settings,
        }
        services = merged()
        machines = {
            name: _machine(folder / name, services[name], secrets, hosts, {**every, **(_NO_DATABASE if name in WORKERS else {})})
            for name in ("airflow-init", *_STARTED)
        }
        _run_once(machines["airflow-init"], services["airflow-init"]["command"])
        rule = _QUEUES.format(tasks=tuple(first_workers_tasks), workers=WORKERS)
        (machines["airflow-dag-processor"].home / "config" / "airflow_local_settings.py").write_text(rule)

        def start(name: str) -> "subprocess.Popen[bytes]":
            command, one = _here(name, services[name]["command"], port), machines[name]
            return stack.enter_context(server_process(command, log=one.folder / "log", env=one.environment, cwd=ROOT))

        started = [start(name) for name in _STARTED]
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + 300
        while not Api(address, None).is_ready():
            ended = [name for name, process in zip(_STARTED, started, strict=True) if process.poll() is not None]
            assert not ended and time.monotonic() < until, f"Airflow did not get ready; ended: {ended}; see the logs in {folder}"
            time.sleep(1)
        yield Installation(Api(address, "admin", secrets["AIRFLOW_ADMIN_PASSWORD"]), root, machines, start)


def _machine(
    folder: Path, service: Mapping[str, dict[str, str]], secrets: Mapping[str, str], hosts: Mapping[str, str], every: Mapping[str, str]
) -> Machine:
    """A service's folder, with what the image has in it, and its environment."""
    for name in ("airflow/config", "airflow/secrets", "mirror", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "airflow" / "airflow.cfg").write_text("# Airflow's settings come from the environment.\n")
    # One passwords file, which the compose files put on a volume of all.
    shared = folder.parent / "secrets"
    shared.mkdir(exist_ok=True)
    places = {
        "/opt/airflow/secrets": str(shared),
        "/opt/airflow": str(folder / "airflow"),
        "/opt/kafka-audit": str(ROOT),
        "/var/lib/kafka-audit": str(folder / "mirror"),
        **hosts,
    }
    own = {}
    for name, text in service["environment"].items():
        value = filled(text, secrets)
        for before, after in places.items():
            value = value.replace(before, after)
        own[name] = value
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "KAFKA_AUDIT_", "AWS_"))}
    home = {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "HOME": str(folder),
        "TMPDIR": str(folder / "tmp"),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(environment._NOT_INSTALLED), os.environ.get("PYTHONPATH")))),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPT_NOENV": "1",
    }
    return Machine(folder, {**outside, **home, **own, **every})


def _run_once(machine: Machine, command: Sequence[str]) -> None:
    done = subprocess.run(command, env=machine.environment, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _here(name: str, command: Sequence[str], port: int) -> list[str]:
    """A service's command where all share one network: the api-server on a port of its own, and a queue and a name for each worker.

    Workers show their logs to other machines on a port that is the same for all, so here they do not.
    """
    own = [{"0.0.0.0": "127.0.0.1", "8080": str(port)}.get(word, word) for word in command]
    return [*own, "--queues", name, "--celery-hostname", f"celery@{name}", "--skip-serve-logs"] if name in WORKERS else own
