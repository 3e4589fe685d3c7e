"""Stops a sandbox when the process that started it is gone: ``python -m kafka_audit.sandbox.watch PID DIRECTORY``.

Brokers run in their own sessions and survive a killed command; without this, nobody would stop those of a killed demo.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOOK_SECONDS = 0.5


@contextmanager
def stopped_when_killed(directory: Path) -> Iterator[None]:
    """Stop the sandbox in ``directory`` if this process is killed while the block runs; leaving the block stops nothing."""
    command = [sys.executable, "-m", "kafka_audit.sandbox.watch", str(os.getpid()), str(directory)]
    watcher = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield
    finally:
        watcher.terminate()
        watcher.wait()


def main() -> None:
    """Wait until the parent process ends, then become the process that stops the sandbox: only that one loads Kafka's clients."""
    owner, directory = int(sys.argv[1]), Path(sys.argv[2])
    while os.getppid() == owner:
        time.sleep(_LOOK_SECONDS)
    os.execv(sys.executable, [sys.executable, "-m", "kafka_audit.sandbox.lifecycle", str(directory)])


if __name__ == "__main__":
    main()
