"""The job that reads the coordinators' topics, what it wrote, and what Kafka's formatters print.

``job`` starts a separate process. ``run``, ``ended`` and ``stopped_at`` share one process: in a JVM that has already run the job, it takes a third of the
time. A run must not depend on what the previous run left in memory.
"""

import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil
import pyarrow.parquet as pq
from kafka import KafkaConsumer, TopicPartition
from kafka_tools import started_java

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def job(bootstrap: str, history: Path, *more: str) -> list[str]:
    """Its command line."""
    return [sys.executable, "-m", "spark_jobs.read_commits", *arguments(bootstrap, history, *more)]


def arguments(bootstrap: str, history: Path, *more: str) -> list[str]:
    return ["--history", str(history), "--bootstrap", bootstrap, *more]


AGAIN = """
import json, sys
from spark_jobs.read_commits import main
for line in sys.stdin:
    print("exit code", main(json.loads(line)), flush=True)
"""


class Repeated:
    """A process that runs the job as often as it is told to."""

    def __init__(self, log: IO[str]) -> None:
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGAIN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
        )

    def __call__(self, line: list[str]) -> tuple[int, str]:
        """Its exit code, and what it said."""
        self.begin(line)
        return self.end()

    def begin(self, line: list[str]) -> None:
        assert self.process.stdin
        self._before = self.log.seek(0, os.SEEK_END)
        self.process.stdin.write(json.dumps(line) + "\n")

    def has_ended(self) -> bool:
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def end(self) -> tuple[int, str]:
        assert self.process.stdout
        answers, _, _ = select.select([self.process.stdout], [], [], 600)
        answer = self.process.stdout.readline() if answers else ""
        self.log.seek(self._before)
        said = self.log.read()
        assert answer.startswith("exit code "), f"{answer!r} {said[-3000:]}"
        return int(answer.split()[-1]), said

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Meanwhile neither the process nor its JVM does anything."""
        driver = psutil.Process(self.process.pid)
        family = [driver, *driver.children(recursive=True)]
        try:
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    one.suspend()
            while not all(_does_nothing(one) for one in family):
                time.sleep(0.001)
            yield
        finally:
            for one in family:
                with suppress(psutil.NoSuchProcess):
                    one.resume()


def _does_nothing(process: psutil.Process) -> bool:
    """Whether it is stopped or has ended; a process whose parent is stopped stays a zombie."""
    try:
        return process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


_shared: list[Repeated] = []


@contextmanager
def one_process() -> Iterator[None]:
    """Meanwhile ``run`` and ``ended`` share a process."""
    with tempfile.TemporaryFile("a+") as log:
        _shared.append(Repeated(log))
        try:
            yield
        finally:
            process = _shared.pop().process
            try:
                process.communicate(timeout=600)
            finally:
                process.kill()


def ended(bootstrap: str, history: Path, *more: str) -> tuple[int, str]:
    """Run it within ``one_process``; returns its exit code and what it said."""
    return _shared[-1](arguments(bootstrap, history, *more))


def run(bootstrap: str, history: Path, *more: str) -> dict[str, Any]:
    """Run it to success; returns last_run.json."""
    code, said = ended(bootstrap, history, *more)
    assert code == 0, said[-3000:]
    return json.loads((history / "last_run.json").read_text())


def stopped_at(point: str, bootstrap: str, history: Path, *more: str) -> None:
    """Leave in ``history`` what a run leaves that is killed as soon as there is a file ``point``, a pattern.

    The run works on a copy. What it has written is taken while it stands still; then it goes on, and its JVM stays for the next run.
    """
    copy = history.with_name(f"{history.name}-under-way")
    if history.exists():
        shutil.copytree(history, copy)
    shared, deadline = _shared[-1], time.monotonic() + 300
    shared.begin(arguments(bootstrap, copy, *more))
    while not list(copy.glob(point)):
        assert not shared.has_ended() and time.monotonic() < deadline, f"it ended before {point}: {shared.end()[1][-2000:]}"
        time.sleep(0.002)
    with shared.standing_still():
        shutil.rmtree(history, ignore_errors=True)
        shutil.copytree(copy, history)
    code, said = shared.end()
    assert code == 0, said[-3000:]
    shutil.rmtree(copy)


def table(history: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table in all batches."""
    return [row for part in sorted(history.glob(f"*/*/{name}.parquet/*.parquet")) for row in pq.read_table(part).to_pylist()]


def milliseconds(row: dict[str, Any], name: str) -> int | None:
    return None if row[name] is None else round(row[name].timestamp() * 1000)


def offsets(bootstrap: str, which: str, *, topic: str = OFFSETS, isolation: str = "read_uncommitted") -> dict[int, int]:
    """``end_offsets`` or ``beginning_offsets`` by partition."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, exclude_internal_topics=False, isolation_level=isolation)) as consumer:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        return {each.partition: offset for each, offset in getattr(consumer, which)(partitions).items()}


def committed(bootstrap: str, topic: str) -> list[Any]:
    """Every committed record of a topic, by a plain consumer."""
    found = []
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, exclude_internal_topics=False, isolation_level="read_committed")) as consumer:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            found += [record for some in consumer.poll(100).values() for record in some]
    return found


def formatted(bootstrap: str, topic: str, formatter: str) -> list[dict[str, Any]]:
    """Every committed record of a topic as Kafka's console consumer prints it with one of its formatters."""
    expected = len(committed(bootstrap, topic))
    command = [*started_java(), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    command += ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
    command += ["--isolation-level", "read_committed", "--formatter", f"org.apache.kafka.tools.consumer.{formatter}"]
    for patience_s in (8, 30, 90):  # without a record; on a busy machine the first one may take long
        line = [*command, "--timeout-ms", str(patience_s * 1000)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=600, check=False)
        said = re.search(r"Processed a total of (\d+) messages", done.stdout + done.stderr)
        if said and int(said[1]) >= expected:
            break
    assert said, done.stderr[-3000:]
    text = done.stdout.strip()
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at : at + 1] == "{":  # it writes no newlines, and at the end what its logger says of the timeout
        one, at = decoder.raw_decode(text, at)
        found.append(one)
    return found
