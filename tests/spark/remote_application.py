"""One application on executors of other processes, which lands a commit history and judges an audit, compared with threads of the driver."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil
from landed_history import land, rows_below
from large_audit import LargeAudit, outputs
from pyspark.sql import SparkSession

from kafka_audit.store.durable_files import read_json
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, with_class_data

SUBJECTS = ("topic", "group_partition", "group_sla")
DRIVER = f"""
import sys
from pathlib import Path

history, paths, *arguments = sys.argv[1:]
sys.path += paths.split(":")
from kafka_audit.catalogue.load import Catalogue
from landed_history import land
from spark_jobs import verify
from spark_jobs.commit_history.describe import behaviour_tables
from spark_jobs.engine import remote_tables, session
from spark_jobs.engine.session import spark_session

session._MAY_DIFFER |= {{"spark.sql.codegen.factoryMode"}}
behaviour_tables.SMALL_ROWS = 0
land(spark_session("history"), Path(history))

files, sent = remote_tables._files, Path(history, "sent")
def noted(place):
    with sent.open("a") as stream:
        print(place[0], file=stream)
    return files(place)
remote_tables._files = noted

of_part = Catalogue.of_part
Catalogue.of_part = lambda self, part: tuple(one for one in of_part(self, part) if one.subject in {SUBJECTS})
verify.SMALL_ROWS = 0
sys.exit(verify.main(arguments))
"""
"""One application does both: each would start a JVM of its own, and executors."""


class Cluster(Protocol):
    """A cluster that runs, and its executors."""

    @property
    def folder(self) -> Path:
        """Where its processes run, and write."""
        ...

    @property
    def executors(self) -> list[psutil.Process]:
        """Those that run."""
        ...

    @property
    def started(self) -> int:
        """How many were started so far, lost ones included."""
        ...


@dataclass(frozen=True)
class Done:
    """What an application landed, in ``history``, and which files of evidence it sent to executors while it judged."""

    history: Path
    sent: frozenset[str]


def submit(master: str, python: Path, conf: Mapping[str, str]) -> list[str]:
    """spark-submit with what a driver on this machine needs."""
    needed = {
        **DEFAULT_CONF,
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": str(python),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        # Each of these JVMs would compile the expressions for itself, which takes longer than evaluating them for so few rows.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        **conf,
    }
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", master]
    command += ["--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS)]
    return command + [part for name, value in needed.items() for part in ("--conf", f"{name}={value}")]


def judged_losing_an_executor(
    cluster: Cluster, command: list[str], audit: LargeAudit, folder: Path, environment: Mapping[str, str] | None = None
) -> Done:
    """Land a history and judge the audit; kill an executor when the first findings are written: it holds tables that are needed again."""
    (folder / "driver.py").write_text(DRIVER)
    log = folder / "driver.log"
    with log.open("wb") as stream:
        whole = [*command, str(folder / "driver.py"), str(folder / "history"), ":".join(sys.path), *audit.arguments]
        job = subprocess.Popen(whole, stdout=stream, stderr=subprocess.STDOUT, env=environment)
    try:
        while not list(audit.audit.path.glob(".*/findings.parquet/part-*")):
            assert job.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
        lost, _ = cluster.executors
        lost.kill()
        assert job.poll() is None, "the job ended before it lost an executor"
        assert job.wait(timeout=1200) == 0, log.read_text()[-3000:]
    finally:
        job.kill()
    # Path.rglob would fail where an executor, which stops now, removes its own folders.
    written = [name for _, folders, files in os.walk(cluster.folder) for name in (*folders, *files) if name.endswith(".parquet")]
    assert not written, f"executors write no results: {written}"
    sent = folder / "history" / "sent"
    return Done(folder / "history", frozenset(sent.read_text().splitlines()) if sent.is_file() else frozenset())


def assert_outputs_are_those_of_threads(cluster: Cluster, audit: LargeAudit) -> None:
    """An executor was lost, and every table has the same rows in the same order."""
    assert cluster.started > 2, "no executor was lost"
    remote, local = outputs(audit.audit.path), audit.outputs
    assert remote.keys() == local.keys()
    for name, table in local.items():
        assert remote[name] == (_of_subjects(table) if name.endswith(".parquet") else table), name


def _of_subjects(table: tuple[str, list[dict[str, Any]]]) -> tuple[str, list[dict[str, Any]]]:
    """What the application writes of a table: of findings and of their summary only those of some subjects."""
    schema, rows = table
    found = [row for row in rows if row.get("subject", SUBJECTS[0]) in SUBJECTS]
    assert found or not rows
    return schema, found


def assert_history_is_that_of_threads(history: Path, spark: SparkSession, folder: Path) -> None:
    """Its manifests and tables are those that ``spark`` lands in ``folder``."""
    land(spark, folder)
    local, remote = _manifests(folder), _manifests(history)
    assert remote == local and len(local) == 3
    for part in ("raw/00000001", "decoded/00000001", "behaviour/20261120T221000Z"):
        assert rows_below(history / part) == rows_below(folder / part) != {}


def _manifests(history: Path) -> dict[str, Any]:
    """What the manifests say but for hashes: how rows lie in files differs."""
    found = {path.parent.relative_to(history).as_posix(): read_json(path) for path in history.glob("*/*/manifest.json")}
    return {name: {key: value for key, value in said.items() if key not in ("files", "sources")} for name, said in found.items()}
