"""Executors read the evidence of a root in an object store by its URL, with Hadoop's own file system for S3."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hadoop_jars import ON_REQUEST, hadoop_jars
from large_audit import LargeAudit
from object_store import ObjectStore
from remote_application import assert_outputs_are_those_of_threads, judged_losing_an_executor, submit
from standalone import spark_cluster

from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.submit import DRIVER_JAVA_OPTIONS

pytestmark = [pytest.mark.spark, ON_REQUEST]


@pytest.fixture
def audit(
    audit_in: Callable[[Path], LargeAudit], object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[LargeAudit]:
    """An audit in a root in the store, of which this process has a mirror."""
    for name, value in {**object_store.environment, "KAFKA_AUDIT_MIRROR": str(tmp_path / "mirror")}.items():
        monkeypatch.setenv(name, value)
    yield audit_in(EvidenceRoot.at(object_store.new_root()).path)


def test_executors_that_read_by_url_give_the_same_outputs_as_threads_of_the_driver(
    audit: LargeAudit, object_store: ObjectStore, tmp_path: Path
) -> None:
    with spark_cluster() as cluster:
        jars = hadoop_jars("s3a", cluster.folder)
        conf = {
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.hadoop.fs.s3a.endpoint": object_store.endpoint,
            "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.driver.extraClassPath": f"{jars}/*",
            "spark.executor.extraClassPath": f"{jars}/*",
            "spark.executor.extraJavaOptions": DRIVER_JAVA_OPTIONS,
        }
        done = judged_losing_an_executor(cluster, submit(cluster.master, cluster.python, conf), audit, tmp_path)
        assert_outputs_are_those_of_threads(cluster, audit)
    # What the job itself has made is sent: tables that it has written, and datasets without answers that contradict each other.
    assert done.sent and all(Path(one).is_relative_to(audit.audit.path) for one in done.sent)
