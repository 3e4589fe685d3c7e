"""Runs Kafka's own command line tools with the class path of the sandbox's brokers."""

import contextlib
import functools
import json
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools_jvm import ToolsJvm

from kafka_audit.jars.fetch import broker_classpath, java
from kafka_audit.sandbox.brokers import from_class_data

# The classes that the scripts of these names start.
CLASSES = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-share-consumer": "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "kafka-features": "org.apache.kafka.tools.FeatureCommand",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "kafka-reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions": "org.apache.kafka.tools.TransactionsCommand",
}
_ALONE = ("kafka-console-producer", "kafka-console-share-consumer")
"""Tools that have a JVM of their own: they close their clients only when it ends."""
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_TIMEOUT_S = 300
# What these tools do by themselves when a busy machine is slow: give up after seconds, and end with 0.
_PATIENCE = {
    "kafka-consumer-groups": ("--timeout", "60000"),
    "kafka-console-producer": ("--request-timeout-ms", "30000", "--message-send-max-retries", "20"),
}


def started_java() -> list[str]:
    """The command line of a tool up to the name of its class."""
    classpath = broker_classpath(lambda message: None)
    return [java(), *_JVM, *from_class_data(classpath), "-cp", classpath]


@functools.cache
def _shared() -> ToolsJvm:
    return ToolsJvm(started_java())


def run_tool(name: str, arguments: list[str], stdin: str = "") -> tuple[int, str]:
    """Run the tool of this name; returns its exit code, and what it printed."""
    if name not in _ALONE:
        assert not stdin, f"{name} shares a JVM, whose standard input is not for tools"
        return _shared().run(CLASSES[name], arguments)
    done = subprocess.run(
        [*started_java(), CLASSES[name], *arguments],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout


_SCRIPT = """#!{python} -IS
import json, socket, sys
with socket.create_connection(("127.0.0.1", {port})) as tools:
    tools.sendall(json.dumps([{name!r}, sys.argv[1:]]).encode() + b"\\n")
    code, said = json.loads(tools.makefile("rb").read())
sys.stdout.write(said)
sys.exit(code)
"""


@contextlib.contextmanager
def scripts(folder: Path) -> Iterator[None]:
    """Meanwhile a new folder has scripts that run Kafka's tools, by the names that they have in Kafka's ``bin``."""
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as server:
        for name in CLASSES:
            script = folder / f"{name}.sh"
            script.write_text(_SCRIPT.format(python=sys.executable, port=server.getsockname()[1], name=name))
            script.chmod(0o755)
        answering = threading.Thread(target=_answer, args=(server,), daemon=True)
        answering.start()
        try:
            yield
        finally:
            server.shutdown(socket.SHUT_RDWR)
            answering.join(_TIMEOUT_S)


def _answer(server: socket.socket) -> None:
    """Run what the scripts ask for until the server is shut down."""
    while True:
        try:
            asking, _ = server.accept()
        except OSError:
            return
        with asking:
            name, arguments = json.loads(asking.makefile("rb").readline())
            asking.sendall(json.dumps(run_tool(name, arguments)).encode())


@dataclass(frozen=True)
class KafkaTools:
    """Runs commands as they are typed, like ``kafka-topics --delete --topic t``; the bootstrap servers are added."""

    bootstrap: str

    def run(self, command: str, stdin: str = "") -> str:
        """Return what the tool printed; it must have ended with 0."""
        code, said = self._start(command, stdin)
        assert code == 0, f"{command}: {said}"
        return said

    def run_all(self, *commands: str) -> None:
        """Run commands one after the other."""
        for command in commands:
            self.run(command)

    def refusal(self, command: str) -> str:
        """Return what the tool printed when the brokers refused what it asked for."""
        code, said = self._start(command, "")
        assert code != 0, f"{command} was not refused: {said}"
        return said

    def _start(self, command: str, stdin: str) -> tuple[int, str]:
        tool, *arguments = shlex.split(command)
        return run_tool(tool, ["--bootstrap-server", self.bootstrap, *_PATIENCE.get(tool, ()), *arguments], stdin)
