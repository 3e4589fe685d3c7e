"""Runs Burrow (Debian packages ``burrow`` and ``zookeeper``) against the same brokers and measures when it knows all groups.

Burrow 1.2.1 keeps a lock in ZooKeeper and does not start without it, even if the brokers themselves do not use ZooKeeper.
"""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CLIENT = "burrow"
_ZOOKEEPER = Path("/usr/share/java/zookeeper.jar")
_CONFIG = """
[general]
pidfile="{folder}/burrow.pid"
[logging]
filename="{folder}/burrow.log"
level="info"
[zookeeper]
servers=["127.0.0.1:{zookeeper}"]
root-path="/burrow"
[client-profile.bench]
client-id="{client}"
kafka-version="2.0.0"
[cluster.bench]
class-name="kafka"
servers=[{servers}]
client-profile="bench"
topic-refresh=10
offset-refresh=5
[consumer.bench]
class-name="kafka"
cluster="bench"
servers=[{servers}]
client-profile="bench"
start-latest=false
[httpserver.default]
address="127.0.0.1:{port}"
[storage.default]
class-name="inmemory"
"""


def measure(bootstrap: str, folder: Path, groups: int, *, patience_s: float) -> str:
    """Return one sentence: after how many seconds Burrow knew all groups, or its error messages."""
    program = shutil.which("Burrow") or shutil.which("burrow")
    if program is None or not _ZOOKEEPER.is_file():
        return "is not installed, or ZooKeeper is not (apt-get install --no-install-recommends burrow zookeeper)"
    folder.mkdir(parents=True)
    port, zookeeper = _free_port(), _free_port()
    servers = ", ".join(f'"{server}"' for server in bootstrap.split(","))
    config = _CONFIG.format(folder=folder, servers=servers, client=CLIENT, port=port, zookeeper=zookeeper)
    (folder / "burrow.toml").write_text(config, encoding="utf-8")
    with _zookeeper(folder, zookeeper):
        return _run(program, folder, port, groups, patience_s)


@contextmanager
def _zookeeper(folder: Path, port: int) -> Iterator[None]:
    lines = (f"dataDir={folder / 'zookeeper'}", f"clientPort={port}", "clientPortAddress=127.0.0.1", "admin.enableServer=false")
    (folder / "zoo.cfg").write_text("\n".join(lines) + "\n", encoding="utf-8")
    server = "org.apache.zookeeper.server.ZooKeeperServerMain"
    command = ["java", "-Xmx128m", "-cp", str(_ZOOKEEPER), server, str(folder / "zoo.cfg")]
    with (folder / "zookeeper.log").open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            while process.poll() is None and not _serves(port):
                time.sleep(0.1)
            yield
        finally:
            process.terminate()


def _run(program: str, folder: Path, port: int, groups: int, patience_s: float) -> str:
    began = time.monotonic()
    with (
        (folder / "out.log").open("wb") as out,
        subprocess.Popen([program, "--config-dir", str(folder)], stdout=out, stderr=subprocess.STDOUT) as process,
    ):
        try:
            while time.monotonic() < began + patience_s and process.poll() is None:
                if len(_answer(port, "consumer").get("consumers") or ()) >= groups:
                    return f"knew all {groups} groups after {time.monotonic() - began:.1f} s"
                time.sleep(0.2)
            known = len(_answer(port, "consumer").get("consumers") or ())
            state = f"ended with {process.returncode}" if process.poll() is not None else f"ran for {patience_s:.0f} s"
        finally:
            process.terminate()
    return f"{state} and knew {known} of {groups} groups; its log complains of:\n{_complaints(folder)}"


def _serves(port: int) -> bool:
    """Whether ZooKeeper accepts sessions; it listens on its port before it does."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"srvr")
            return b"Mode:" in connection.recv(4096)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _answer(port: int, what: str) -> dict[str, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v3/kafka/bench/{what}", timeout=5) as response:
            found: dict[str, Any] = json.load(response)
            return found
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return {}


def _complaints(folder: Path) -> str:
    """The messages above level INFO in its log, most frequent first, each with its reason and count."""
    counts: Counter[str] = Counter()
    for line in (folder / "burrow.log").read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        if said["level"] != "info":
            counts[": ".join(str(said[key]) for key in ("msg", "reason", "error") if key in said)[:200]] += 1
    return "\n".join(f"    {count} x {text}" for text, count in counts.most_common(5)) or "    nothing"
