"""Jobs on a Spark cluster whose executors have Python and pyarrow, no file of the driver, and no right to write results."""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from landed_history import land, rows_below
from pyspark.sql import SparkSession
from standalone import SparkCluster, spark_cluster
from test_small_and_large_clusters import evidence_of_groups, outputs

from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Audit
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, with_class_data
from spark_jobs import verify

pytestmark = pytest.mark.spark

SUBJECTS = ("topic", "group_partition", "group_sla")
DRIVER = f"""
import sys
from kafka_audit.catalogue.load import Catalogue
from spark_jobs import verify

of_part = Catalogue.of_part
Catalogue.of_part = lambda self, part: tuple(one for one in of_part(self, part) if one.subject in {SUBJECTS})
verify.SMALL_ROWS = 0
sys.exit(verify.main())
"""


HISTORY = """
import sys
from pathlib import Path

sys.path += sys.argv[2:]
from landed_history import land
from spark_jobs.commit_history.describe import behaviour_tables
from spark_jobs.engine.session import spark_session

behaviour_tables.SMALL_ROWS = 0
land(spark_session("history"), Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with spark_cluster() as started:
        yield started


@pytest.mark.usefixtures("large_clusters")
def test_a_cluster_that_loses_an_executor_gives_the_same_outputs_as_threads_of_the_driver(
    cluster: SparkCluster, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only_subjects: Callable[..., None]
) -> None:
    audit, arguments = evidence_of_groups(tmp_path)
    only_subjects(*SUBJECTS)
    monkeypatch.setattr(verify, "SMALL_ROWS", 0)
    assert verify.main(arguments) == 0
    local = outputs(audit.path)
    shutil.rmtree(audit.settings)
    shutil.rmtree(audit.lag)

    judge_losing_an_executor(cluster, tmp_path, audit, arguments)
    assert cluster.started > 2, "no executor was lost"
    assert not list(cluster.folder.rglob("*.parquet")), "executors write no results"
    remote = outputs(audit.path)

    assert remote.keys() == local.keys()
    assert len(local) > 10
    for name, table in local.items():
        assert remote[name] == table, name


def judge_losing_an_executor(cluster: SparkCluster, folder: Path, audit: Audit, arguments: list[str]) -> None:
    """One executor is killed when the first findings are written: it holds tables that are needed again."""
    (folder / "driver.py").write_text(DRIVER)
    log = folder / "driver.log"
    with log.open("wb") as stream:
        command = [*submit(cluster), str(folder / "driver.py"), *arguments]
        job = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    try:
        while not list(audit.path.glob(".*/findings.parquet/part-*")):
            assert job.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
        lost, _ = cluster.executors
        lost.kill()
        assert job.poll() is None, "the job ended before it lost an executor"
        assert job.wait(timeout=1200) == 0, log.read_text()[-3000:]
    finally:
        job.kill()


def submit(cluster: SparkCluster) -> list[str]:
    """spark-submit with what a driver on this machine needs."""
    conf = {
        **DEFAULT_CONF,
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": str(cluster.python),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    }
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", cluster.master]
    command += ["--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS)]
    return command + [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]


def test_a_commit_history_is_written_by_the_driver_as_threads_of_the_driver_write_it(
    cluster: SparkCluster, spark: SparkSession, tmp_path: Path
) -> None:
    land(spark, tmp_path / "local")
    (tmp_path / "driver.py").write_text(HISTORY)
    command = [*submit(cluster), str(tmp_path / "driver.py"), str(tmp_path / "remote"), *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(cluster.folder.rglob("*.parquet")), "executors write no results"
    local, remote = (manifests(tmp_path / name) for name in ("local", "remote"))
    assert remote == local and len(local) == 3
    for folder in ("raw/00000001", "decoded/00000001", "behaviour/20261120T221000Z"):
        assert rows_below(tmp_path / "remote" / folder) == rows_below(tmp_path / "local" / folder) != {}


def manifests(history: Path) -> dict[str, Any]:
    """What the manifests say but for hashes: how rows lie in files differs."""
    found = {path.parent.relative_to(history).as_posix(): read_json(path) for path in history.glob("*/*/manifest.json")}
    return {name: {key: value for key, value in said.items() if key not in ("files", "sources")} for name, said in found.items()}
