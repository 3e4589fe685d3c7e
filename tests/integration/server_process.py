"""A server that a test starts: it ends with the block, and also when the test process is killed."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from kafka_audit.airflow.guard import guarded
from kafka_audit.airflow.process_group import interruptible, stopped_at_exit

Made = TypeVar("Made")


@contextlib.contextmanager
def server_process(
    command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the command with its output in ``log``; at the end it gets SIGINT, and what is left of its family is killed."""
    with log.open("ab") as output:
        process = interruptible(
            guarded(command), env=env or os.environ, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
    with stopped_at_exit(process, grace_seconds=30):
        yield process


def until_it_works(made: Callable[[], Made], problem: type[Exception], seconds: float = 120) -> Made:
    """What the function returns as soon as it does not raise this."""
    until = time.monotonic() + seconds
    while True:
        try:
            return made()
        except problem:
            if time.monotonic() > until:
                raise
        time.sleep(0.1)
