"""A Spark cluster as its users have one: a master and two workers, whose executors know nothing of this project."""

import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow
import pyspark

from kafka_audit.submit import DRIVER_JAVA_OPTIONS, with_class_data

_SPARK = Path(pyspark.__file__).parent
NOBODY = "nobody"
"""Who runs what a test run of root starts for executors."""


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
        return [child for child in children if "CoarseGrainedExecutorBackend" in command_of(child)]

    @property
    def started(self) -> int:
        """How many executors were started so far, lost ones included."""
        return len(list(self.folder.glob("worker-*/app-*/*")))


def command_of(process: psutil.Process) -> str:
    """Its command line; nothing of a process that has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@contextmanager
def spark_cluster(workers: int = 2, memory: str = "1g") -> Iterator[SparkCluster]:
    """Start a master and workers of one core each, and stop them with all their processes."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="spark-cluster-", ignore_cleanup_errors=True)))
        folder.chmod(0o777)
        master = stack.enter_context(_daemon(folder, "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"))
        url = _said(folder / "Master.log", r"Starting Spark master at (spark://\S+)")
        started = []
        for number in range(1, workers + 1):
            options = ("--host", "127.0.0.1", "--cores", "1", "--memory", memory, "--webui-port", "0")
            place = folder / f"worker-{number}"
            started.append(stack.enter_context(_daemon(folder, "worker.Worker", *options, "--work-dir", str(place), url, log=place.name)))
            _said(folder / f"{place.name}.log", r"Successfully registered with (master)")
        assert master.is_running()
        yield SparkCluster(master=url, python=executors_python(folder), folder=folder, workers=started)


@contextmanager
def _daemon(folder: Path, kind: str, *options: str, log: str = "Master") -> Iterator[psutil.Process]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "SPARK_HOME": str(_SPARK)}
    environment |= {"SPARK_DAEMON_MEMORY": "128m", "SPARK_LOCAL_DIRS": str(folder)}
    environment |= {"SPARK_DAEMON_JAVA_OPTS": with_class_data(DRIVER_JAVA_OPTIONS)}
    environment |= {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    command = [str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options]
    user = {"user": NOBODY, "group": pwd.getpwnam(NOBODY).pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
    with (folder / f"{log}.log").open("wb") as stream:
        process = psutil.Popen(command, stdout=stream, stderr=subprocess.STDOUT, cwd=folder, env=environment, **user)
    try:
        yield process
    finally:
        family = [process, *process.children(recursive=True)]
        for one in family:
            if one.is_running():
                one.kill()
        psutil.wait_procs(family, timeout=10)


def _said(log: Path, pattern: str) -> str:
    end = time.monotonic() + 300
    while not (found := re.search(pattern, log.read_text(errors="replace"))):
        assert time.monotonic() < end, log.read_text(errors="replace")[-3000:]
        time.sleep(0.1)
    return found[1]


def executors_python(folder: Path) -> Path:
    """A Python of this version with pyarrow, which the user of executors may run; in ``folder``."""
    (folder / "packages").mkdir()
    (folder / "packages").chmod(0o755)  # jobs that ran in this process keep new folders private
    (folder / "packages" / "pyarrow").symlink_to(Path(pyarrow.__file__).parent)
    name = f"python3.{sys.version_info.minor}"
    found = shutil.which(name, path="/usr/bin:/usr/local/bin") if os.getuid() == 0 else sys._base_executable  # type: ignore[attr-defined]
    assert found, f"there is no {name} that {NOBODY} can run"
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{folder}/packages" exec {found} -s "$@"\n')
    script.chmod(0o755)
    return script
