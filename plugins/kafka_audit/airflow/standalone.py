"""Runs Airflow with its UI on this machine, on the audits of one folder: ``python -m kafka_audit.airflow.standalone --root audit-root``.

Everything Airflow needs runs as children of this process (``airflow standalone``: SQLite, local executor) and is stopped with it.
Logins are ``admin`` / ``admin``: it listens on 127.0.0.1 only, for one person and for tests. For more, see docker-compose.yaml.
"""

import argparse
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from kafka_audit.airflow.environment import airflow_home, audit_environment
from kafka_audit.airflow.guard import guarded
from kafka_audit.airflow.process_group import interruptible, stopped_at_exit
from kafka_audit.airflow.run_dag import mark, only_one
from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.store.mirrors import need_local, root_folder

_GRACE_SECONDS = 30
_START_SECONDS = 600
_USERS = {"admin": "admin", "viewer": "viewer"}


@contextmanager
def running_airflow(
    *, root: Path, connection: Mapping[str, str] | None = None, port: int = 8080, settings: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A running Airflow, ready for requests on ``http://127.0.0.1:<port>``; it is stopped with all its children at the end.

    ``connection``: the keys of the connection ``kafka_default``; None leaves it to be defined in the UI. ``settings``: environment
    variables of the installation, as :func:`kafka_audit.airflow.environment.chosen` makes them; None leaves those of the caller.
    CollectionError when it does not get ready; its output is in ``<root>/../.airflow/standalone.log``.
    """
    home = airflow_home(root)
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    passwords = home / "passwords.json"
    passwords.touch(mode=0o600)
    passwords.write_text(json.dumps({user: user for user in _USERS}), encoding="utf-8")
    environment = audit_environment(root=root, connection=connection)
    environment |= settings or {}
    environment |= {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__INSTANCE_NAME": "Kafka audit",
        "AIRFLOW__CORE__PARALLELISM": "2",
        # Seconds. The files do not change; with the default, 30, a process for each of them starts over and over.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:{role}" for user, role in _USERS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
    }
    environment |= mark(home)
    log_path = home / "standalone.log"
    with only_one(home) as lock, log_path.open("w", encoding="utf-8") as log:
        command = guarded([sys.executable, "-m", "kafka_audit.airflow.services"], lock=lock)
        process = interruptible(
            command, env=environment, cwd=home, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, pass_fds=[lock]
        )
        with stopped_at_exit(process, grace_seconds=_GRACE_SECONDS):
            _wait_until_ready(process, port, log_path)
            yield process


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log_path: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/monitor/health", timeout=5) as answer:
                health = json.load(answer)
        except (urllib.error.URLError, OSError, ValueError):
            health = {}
        if all((health.get(part) or {}).get("status") == "healthy" for part in ("metadatabase", "scheduler", "dag_processor")):
            return
        time.sleep(1)
    raise CollectionError(f"Airflow did not get ready on port {port}: {log_path} says why (is the port in use?)")


def main() -> None:
    """Run until Ctrl-C or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default="audit-root", help="the audit folder; Airflow keeps its own files in .airflow beside it")
    parser.add_argument("--bootstrap", help="HOST:PORT[,HOST:PORT...] for the connection kafka_default")
    parser.add_argument("--port", type=int, default=8080)
    arguments = parser.parse_args()
    try:
        root = root_folder(arguments.root, "--root")
        need_local(root, "--root: the standalone Airflow")
    except ConfigurationError as problem:
        sys.exit(str(problem))
    print("Starting Airflow; this takes about half a minute", flush=True)  # noqa: T201  (a command)
    try:
        with running_airflow(
            root=root,
            connection={"bootstrap.servers": arguments.bootstrap} if arguments.bootstrap else None,
            port=arguments.port,
        ) as process:
            print(f"http://127.0.0.1:{arguments.port}  user admin, password admin; Ctrl-C stops it", flush=True)  # noqa: T201
            process.wait()
    except KeyboardInterrupt:
        print("Stopped", flush=True)  # noqa: T201
    except CollectionError as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
