"""Jobs on a Spark cluster whose executors have Python and pyarrow, no file of the driver, and no right to write results."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from landed_history import land, rows_below
from large_audit import LargeAudit, outputs
from pyspark.sql import SparkSession
from standalone import SparkCluster, spark_cluster

from kafka_audit.store.durable_files import read_json
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, with_class_data

pytestmark = pytest.mark.spark

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
from spark_jobs.engine import session
from spark_jobs.engine.session import spark_session

session._MAY_DIFFER |= {{"spark.sql.codegen.factoryMode"}}
behaviour_tables.SMALL_ROWS = 0
land(spark_session("history"), Path(history))

of_part = Catalogue.of_part
Catalogue.of_part = lambda self, part: tuple(one for one in of_part(self, part) if one.subject in {SUBJECTS})
verify.SMALL_ROWS = 0
sys.exit(verify.main(arguments))
"""
"""One application lands a history and judges the audit: each would start a JVM of its own, and executors."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with spark_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def history(cluster: SparkCluster, large_audit: LargeAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commit history that the application landed, which has also judged ``large_audit`` and has lost an executor over it.

    The executor is killed when the first findings are written: it holds tables that are needed again.
    """
    folder = tmp_path_factory.mktemp("application")
    (folder / "driver.py").write_text(DRIVER)
    log = folder / "driver.log"
    with log.open("wb") as stream:
        command = [*submit(cluster), str(folder / "driver.py"), str(folder / "history"), ":".join(sys.path), *large_audit.arguments]
        job = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        while not list(large_audit.audit.path.glob(".*/findings.parquet/part-*")):
            assert job.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
        lost, _ = cluster.executors
        lost.kill()
        assert job.poll() is None, "the job ended before it lost an executor"
        assert job.wait(timeout=1200) == 0, log.read_text()[-3000:]
    finally:
        job.kill()
    assert not list(cluster.folder.rglob("*.parquet")), "executors write no results"
    return folder / "history"


@pytest.mark.usefixtures("history")
def test_a_cluster_that_loses_an_executor_gives_the_same_outputs_as_threads_of_the_driver(
    cluster: SparkCluster, large_audit: LargeAudit
) -> None:
    assert cluster.started > 2, "no executor was lost"
    remote, local = outputs(large_audit.audit.path), large_audit.outputs
    assert remote.keys() == local.keys()
    for name, table in local.items():
        assert remote[name] == (of_subjects(table) if name.endswith(".parquet") else table), name


def of_subjects(table: tuple[str, list[dict[str, Any]]]) -> tuple[str, list[dict[str, Any]]]:
    """What the application writes of a table: of findings and of their summary only those of some subjects."""
    schema, rows = table
    found = [row for row in rows if row.get("subject", SUBJECTS[0]) in SUBJECTS]
    assert found or not rows
    return schema, found


def submit(cluster: SparkCluster) -> list[str]:
    """spark-submit with what a driver on this machine needs."""
    conf = {
        **DEFAULT_CONF,
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": str(cluster.python),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": with_class_data(DRIVER_JAVA_OPTIONS),
        # Each of these JVMs would compile the expressions for itself, which takes longer than evaluating them for so few rows.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", cluster.master]
    command += ["--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS)]
    return command + [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]


def test_a_commit_history_is_written_by_the_driver_as_threads_of_the_driver_write_it(
    history: Path, spark: SparkSession, tmp_path: Path
) -> None:
    land(spark, tmp_path)
    local, remote = manifests(tmp_path), manifests(history)
    assert remote == local and len(local) == 3
    for folder in ("raw/00000001", "decoded/00000001", "behaviour/20261120T221000Z"):
        assert rows_below(history / folder) == rows_below(tmp_path / folder) != {}


def manifests(history: Path) -> dict[str, Any]:
    """What the manifests say but for hashes: how rows lie in files differs."""
    found = {path.parent.relative_to(history).as_posix(): read_json(path) for path in history.glob("*/*/manifest.json")}
    return {name: {key: value for key, value in said.items() if key not in ("files", "sources")} for name, said in found.items()}
