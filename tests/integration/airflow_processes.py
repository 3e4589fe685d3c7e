"""The processes of the Airflow that belongs to an audit folder."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from process_words import words_of


def belonging_to(home: Path) -> Iterator[psutil.Process]:
    """The living processes of an Airflow home."""
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if one.environ().get("AIRFLOW_HOME") == str(home) and one.status() != psutil.STATUS_ZOMBIE:
                yield one


def processes_of(home: Path) -> list[str]:
    """Command lines of the living processes that belong to an Airflow home."""
    return [" ".join(words) for one in belonging_to(home) if (words := words_of(one))]


def left_of(home: Path, seconds: float) -> list[str]:
    """What still runs when that time is over; empty as soon as nothing does."""
    until = time.monotonic() + seconds
    while (left := processes_of(home)) and time.monotonic() < until:
        time.sleep(0.2)
    return left
