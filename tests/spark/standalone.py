"""A Spark cluster as its users have one: a master and two workers, whose executors know nothing of this project."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow
import pyspark
from process_words import words_of

from kafka_audit.submit import DRIVER_JAVA_OPTIONS, with_class_data

_SPARK = Path(pyspark.__file__).parent
_NOBODY = "nobody"


@dataclass(frozen=True)
class SparkCluster:
    """``master``: its URL. ``python``: the executors' Python, which has pyarrow and no module of this project.

    ``folder``: where the workers and the executors run, and write. As root the workers run as another user, who cannot read tests' folders.
    """

    master: str
    python: Path
    folder: Path
    workers: Sequence[psutil.Process]

    @property
    def executors(self) -> list[psutil.Process]:
        """The executors that run."""
        children = [child for worker in self.workers for child in worker.children(recursive=True)]
        return [child for child in children if any("CoarseGrainedExecutorBackend" in word for word in words_of(child))]

    @property
    def started(self) -> int:
        """How many executors were started so far, lost ones included."""
        return len(list(self.folder.glob("worker-*/app-*/*")))


@contextmanager
def spark_cluster(workers: int = 2, memory: str = "1g") -> Iterator[SparkCluster]:
    """Start a master and workers of one core each, and stop them with all their processes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-cluster-", ignore_cleanup_errors=True)))
        folder.chmod(0o777)

        def daemon(name: str, kind: str, *options: str) -> psutil.Process:
            command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0"]
            return stack.enter_context(process_of_nobody([*command, *options], folder, name, _environment(folder)))

        master = daemon("master", "master.Master", "--port", "0")
        url = said(master, folder / "master.log", r"Starting Spark master at (spark://\S+)")
        started = []
        for number in range(1, workers + 1):
            name = f"worker-{number}"
            options = ("--cores", "1", "--memory", memory, "--work-dir", str(folder / name), url)
            started.append(daemon(name, "worker.Worker", *options))
            said(started[-1], folder / f"{name}.log", r"Successfully registered with (master)")
        assert master.is_running()
        yield SparkCluster(master=url, python=executors_python(folder), folder=folder, workers=started)


def _environment(folder: Path) -> dict[str, str]:
    found = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "SPARK_HOME": str(_SPARK)}
    found |= {"SPARK_DAEMON_MEMORY": "128m", "SPARK_LOCAL_DIRS": str(folder)}
    found |= {"SPARK_DAEMON_JAVA_OPTS": with_class_data(DRIVER_JAVA_OPTIONS)}
    return found | {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}


@contextmanager
def process_of_nobody(command: Sequence[str], folder: Path, name: str, environment: Mapping[str, str]) -> Iterator[psutil.Process]:
    """Run the command in ``folder``, with its output in ``NAME.log`` there, and kill it with its children at the end.

    As root it runs as another user, who cannot read tests' folders.
    """
    user = {"user": _NOBODY, "group": pwd.getpwnam(_NOBODY).pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
    with (folder / f"{name}.log").open("wb") as stream:
        process = psutil.Popen(command, stdout=stream, stderr=subprocess.STDOUT, cwd=folder, env=environment, **user)
    try:
        yield process
    finally:
        family = [process, *process.children(recursive=True)] if process.is_running() else []
        for one in family:
            if one.is_running():
                one.kill()
        psutil.wait_procs(family, timeout=10)


def said(process: psutil.Process, log: Path, pattern: str) -> str:
    """What the pattern's group, or without one the whole pattern, matches in the log of a process, as soon as it is there."""
    end = time.monotonic() + 300
    while not (found := re.search(pattern, log.read_text(errors="replace"))):
        waits = process.poll() is None and time.monotonic() < end
        assert waits, f"{pattern!r} is not in {log.name}: {log.read_text(errors='replace')[-3000:]}"
        time.sleep(0.1)
    return found[found.re.groups]


def executors_python(folder: Path) -> Path:
    """A Python of this version with pyarrow, which the user of executors may run; in ``folder``."""
    (folder / "packages").mkdir()
    (folder / "packages").chmod(0o755)  # jobs that ran in this process keep new folders private
    (folder / "packages" / "pyarrow").symlink_to(Path(pyarrow.__file__).parent)
    name = f"python3.{sys.version_info.minor}"
    found = shutil.which(name, path="/usr/bin:/usr/local/bin") if os.getuid() == 0 else sys._base_executable  # type: ignore[attr-defined]
    assert found, f"there is no {name} that {_NOBODY} can run"
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{folder}/packages" exec {found} -s "$@"\n')
    script.chmod(0o755)
    return script
