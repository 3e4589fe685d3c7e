"""One Spark session for all Spark tests, because starting one is expensive. It plans queries as for a small cluster, which is quicker."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from coordinator_records import decoded, recorded
from lag_histories import regular
from large_audit import LargeAudit, judged_as_large
from pyspark.sql import DataFrame, SparkSession
from snapshot_builder import READ_AT, Synthetic

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue
from kafka_audit.policy import Policy, load_policy
from kafka_audit.store.history import read_history
from kafka_audit.submit import DRIVER_JAVA_OPTIONS, JAVA_OPTIONS
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.session import spark_session
from spark_jobs.engine.small_plans import PLANNING
from spark_jobs.rows.build import wide_rows

_HOTTEST = " ".join(
    f"-XX:Tier4{name}Threshold={calls}"
    for name, calls in {"Invocation": 20_000, "MinInvocation": 2_400, "Compile": 60_000, "BackEdge": 160_000}.items()
)
"""Four times the JVM's defaults: what runs less often costs the thorough compiler more than the tests gain by it."""

_LONG_LIVED = f"{DRIVER_JAVA_OPTIONS} -XX:TieredStopAtLevel=4 -XX:ReservedCodeCacheSize=512m {_HOTTEST}"
"""A job's options, and after them, so that they win, those of the thorough compiler.

In the first four CPU minutes this compiler takes as much time as it saves; after them the tests take a third less.
"""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    os.environ["KAFKA_AUDIT_CANARY"] = "canary-in-the-environment"  # for test_rules_only_compute: a JVM sees what was there at its start
    session = spark_session("kafka_audit tests", {JAVA_OPTIONS: _LONG_LIVED})
    _OF_LARGE_CLUSTERS.update({name: session.conf.get(name, None) for name in PLANNING})
    _plan_as_for(session, PLANNING)
    yield session
    session.stop()


_OF_LARGE_CLUSTERS: dict[str, str | None] = {}


def _plan_as_for(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        session.conf.unset(name) if value is None else session.conf.set(name, value)


@pytest.fixture
def large_clusters(spark: SparkSession) -> None:
    """This test's queries are planned as for large clusters, where no table brings settings of its own."""
    _plan_as_for(spark, _OF_LARGE_CLUSTERS)


@pytest.fixture(scope="session")
def audit_in(spark: SparkSession) -> Callable[[Path], LargeAudit]:
    """Makes an audit in a root that was judged as that of a large cluster, by threads of the driver."""

    def judged_in(root: Path) -> LargeAudit:
        _plan_as_for(spark, _OF_LARGE_CLUSTERS)
        try:
            return judged_as_large(spark, root)
        finally:
            spark.catalog.clearCache()
            _plan_as_for(spark, PLANNING)

    return judged_in


@pytest.fixture(scope="session")
def large_audit(audit_in: Callable[[Path], LargeAudit], tmp_path_factory: pytest.TempPathFactory) -> LargeAudit:
    """Such an audit in a root on disk."""
    return audit_in(tmp_path_factory.mktemp("large"))


@pytest.fixture(autouse=True)
def _no_tables_kept(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test's evidence kept is given up: Spark would hold each later plan against every table that is kept, and hold the tables.

    A job that the test ran in this process has reset the session's settings.
    """
    yield
    if "spark" in request.fixturenames:
        session = request.getfixturevalue("spark")
        session.catalog.clearCache()
        _plan_as_for(session, PLANNING)


@pytest.fixture
def only_subjects(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a job judge only these subjects: the others take most of its time and say nothing about a test of something else."""
    of_part = Catalogue.of_part

    def only(*subjects: str) -> None:
        def chosen(self: Catalogue, part: str) -> tuple[Control, ...]:
            return tuple(control for control in of_part(self, part) if control.subject in subjects)

        monkeypatch.setattr(Catalogue, "of_part", chosen)

    return only


Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="session")
def rows_of(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Rows]:
    """Wide rows of one subject by resource, from a synthetic cluster and, by age in hours, how it was in earlier snapshots.

    With ``columns``, only those: Spark then plans only what they are made of.
    """

    def build(
        cluster: Synthetic,
        subject: str,
        policy: Policy | None = None,
        earlier: Mapping[float, Synthetic] | None = None,
        columns: Sequence[str] = (),
    ) -> Rows:
        root = tmp_path_factory.mktemp("root")
        for hours, past in (earlier or {}).items():
            past.write(root, READ_AT - timedelta(hours=hours))
        snapshot = cluster.write(root)
        evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
        with evidence.tables.settings():
            whole = wide_rows(subject, evidence, policy or load_policy())
            rows = (whole.select("resource", *columns) if columns else whole).collect()
        assert len({row["resource"] for row in rows}) == len(rows)
        return {row["resource"]: row.asDict(recursive=True) for row in rows}

    return build


@pytest.fixture(scope="session")
def recorded_tables(spark: SparkSession) -> Iterator[dict[str, DataFrame]]:
    """The decoded tables of the recorded offsets topic (coordinator_records.recorded), for tests that only read them."""
    with decoded(recorded(spark)) as tables:
        yield tables


@pytest.fixture(scope="session")
def lag_rows(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Rows:
    """Wide rows of group_partition by group, from the histories of lag_histories."""
    return regular(spark, tmp_path_factory.mktemp("lag"))
