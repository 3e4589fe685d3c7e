"""Stops a sandbox when the process that it belongs to is gone: ``python -m kafka_audit.sandbox.watch PID DIRECTORY``.

Brokers run in sessions of their own and outlive a killed command; those of the demo belong to nobody then.
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
    """While the block runs, the sandbox in ``directory`` is stopped should this process be killed; leaving the block stops nothing."""
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
    """Wait for the end of the process, then stop the sandbox."""
    owner, directory = int(sys.argv[1]), Path(sys.argv[2])
    while os.getppid() == owner:
        time.sleep(_LOOK_SECONDS)
    from kafka_audit.sandbox import lifecycle  # noqa: PLC0415  (Kafka's clients: only when there is something to do)

    lifecycle.stop(directory=directory)


if __name__ == "__main__":
    main()
