"""One Spark session for all Spark tests, because starting one is expensive."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from lag_histories import regular
from pyspark.sql import SparkSession
from snapshot_builder import READ_AT, Synthetic

from kafka_audit.policy import Policy, load_policy
from kafka_audit.store.history import read_history
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.session import spark_session
from spark_jobs.rows.build import wide_rows


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["KAFKA_AUDIT_CANARY"] = "canary-in-the-environment"  # for test_rules_only_compute: a JVM sees what was there at its start
    session = spark_session("kafka_audit tests")
    yield session
    session.stop()
    # py4j says good-bye when the interpreter ends, to a stream that pytest has closed by then.
    logging.getLogger("py4j").setLevel(logging.ERROR)


@pytest.fixture(autouse=True)
def _no_tables_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test's evidence kept is given up: Spark would hold each later plan against every table that is kept, and hold the tables."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").catalog.clearCache()


Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def rows_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Rows]:
    """Wide rows of one subject by resource, from a synthetic cluster and, by age in hours, how it was in earlier snapshots."""

    def build(cluster: Synthetic, subject: str, policy: Policy | None = None, earlier: Mapping[float, Synthetic] | None = None) -> Rows:
        root = tmp_path_factory.mktemp("root")
        for hours, past in (earlier or {}).items():
            past.write(root, READ_AT - timedelta(hours=hours))
        snapshot = cluster.write(root)
        evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
        with evidence.tables.settings():
            rows = wide_rows(subject, evidence, policy or load_policy()).collect()
        assert len({row["resource"] for row in rows}) == len(rows)
        return {row["resource"]: row.asDict(recursive=True) for row in rows}

    return build


@pytest.fixture(scope="session")
def lag_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Wide rows of group_partition by group, from the histories of lag_histories."""
    return regular(spark, tmp_path_factory.mktemp("lag"))
