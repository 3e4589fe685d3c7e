"""A real Spark job started by a real operator: the address it listens on, the Airflow settings it gets, and that it ends with its task."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.airflow, pytest.mark.spark]

MARK = "KAFKA_AUDIT_TEST_JOB"
SECRETS = ("AIRFLOW_CONN_KAFKA_DEFAULT", "AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN")

# A job with Python workers that goes on for ten minutes.
JOB = """
import sys, time
from pathlib import Path
from pyspark.sql.functions import udf
from spark_jobs.engine.session import spark_session

def slow(number):
    Path(folder, f"row-{number}").touch()
    time.sleep(600)

folder = sys.argv[1]
spark = spark_session("killed")
spark.range(2, numPartitions=2).select(udf(slow)("id")).collect()
"""

# As the process of a task does; its own parent, the supervisor, is a process as well.
TASK = """
import sys
from kafka_audit.airflow.spark_job import SparkJob
job = SparkJob(task_id="verify", job="verify", application_args=[sys.argv[2]])
job.application = sys.argv[1]
job.execute({})
"""
SUPERVISOR = "import subprocess, sys; print(*sys.argv); subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


class Job:
    """The job under way, its task and the task's supervisor."""

    def __init__(self, folder: Path) -> None:
        (folder / "job.py").write_text(JOB)
        self.mark = str(folder)
        environment = {
            **os.environ,
            MARK: self.mark,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
            **dict.fromkeys(SECRETS[:2], "hunter2"),
        }
        # The environment of an installation may say otherwise.
        environment["SPARK_LOCAL_IP"] = "0.0.0.0"
        command = [sys.executable, "-c", SUPERVISOR, TASK, str(folder / "job.py"), str(folder)]
        self.log = folder / "log"
        with self.log.open("w") as log:
            self.supervisor = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        end = time.monotonic() + 300
        while len(list(folder.glob("row-*"))) < 2:
            assert time.monotonic() < end, self.log.read_text()[-3000:]
            assert self.supervisor.poll() is None, self.log.read_text()[-3000:]
            time.sleep(0.1)
        (self.task,) = psutil.Process(self.supervisor.pid).children()

    @property
    def processes(self) -> list[psutil.Process]:
        """Everything that spark-submit became and started, found by its environment."""
        found = []
        for one in psutil.process_iter():
            try:
                if one.environ().get(MARK) == self.mark and one.pid not in (self.supervisor.pid, self.task.pid):
                    found.append(one)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return [one for one in found if one.status() != psutil.STATUS_ZOMBIE]

    def gone(self) -> list[str]:
        """What still runs ten seconds later; empty when nothing does."""
        end = time.monotonic() + 300
        while (left := self.processes) and time.monotonic() < end:
            time.sleep(0.1)
        return [" ".join(one.cmdline())[:200] for one in left]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    for one in (made.task, psutil.Process(made.supervisor.pid), *made.processes):
        if one.is_running():
            one.kill()
    made.supervisor.wait()


def test_a_job_on_this_machine_listens_on_loopback_is_told_no_secret_of_airflows_and_ends_with_its_killed_task(job: Job) -> None:
    names = [one.name() for one in job.processes]
    assert "java" in names
    assert len(names) > 4, "guard, JVM, driver, daemon and workers"
    listening = [
        (one.name(), each.laddr.ip) for one in job.processes for each in one.net_connections() if each.status == psutil.CONN_LISTEN
    ]
    assert len(listening) > 2, "the driver's RPC, its block manager, Python's gateway"
    assert [each for each in listening if not is_loopback(each[1])] == []
    for one in job.processes:
        if "kafka_audit.airflow.guard" not in one.cmdline():
            environment = one.environ()
            assert not [name for name in environment if name.startswith("AIRFLOW_") and name != "AIRFLOW_HOME"]
            assert "hunter2" not in environment.values()
    job.task.send_signal(signal.SIGKILL)
    assert job.gone() == []


def is_loopback(address: str) -> bool:
    found = ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def test_a_job_ends_with_the_killed_supervisor_of_its_task_which_airflow_takes_for_failed(job: Job) -> None:
    job.supervisor.kill()
    assert job.gone() == []
