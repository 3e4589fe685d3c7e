"""Runs Kafka's own command line tools with the class path of the sandbox's brokers."""

import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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


@dataclass(frozen=True)
class KafkaTools:
    """Runs commands as they are typed, like ``kafka-topics --delete --topic t``; the bootstrap servers are added."""

    bootstrap: str

    def run(self, command: str, stdin: str = "") -> str:
        """Return what the tool printed; it must have ended with 0."""
        done = self._start(command, stdin)
        assert done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def run_all(self, *commands: str) -> None:
        """Run commands that do not depend on each other, two at a time: a tool is mostly the start of a JVM."""
        with ThreadPoolExecutor(max_workers=2) as pool:
            for _ in pool.map(self.run, commands):
                pass

    def refusal(self, command: str) -> str:
        """Return what the tool printed when the brokers refused what it asked for."""
        done = self._start(command, "")
        assert done.returncode != 0, f"{command} was not refused: {done.stdout}"
        return done.stdout

    def _start(self, command: str, stdin: str) -> "subprocess.CompletedProcess[str]":
        tool, *arguments = shlex.split(command)
        line = [*started_java(), CLASSES[tool], "--bootstrap-server", self.bootstrap]
        return subprocess.run(
            [*line, *_PATIENCE.get(tool, ()), *arguments],
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
