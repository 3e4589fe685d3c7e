"""Real clusters for the tests: started when the first test asks, stopped after the last one that does."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import AirflowDatabase
from commit_history_job import one_process
from faulty_shop import first_audit
from healthy_shop import FirstAudit
from healthy_shop import first_audit as first_healthy_audit

from kafka_audit.jars.fetch import exclusive
from kafka_audit.sandbox import brokers, lifecycle
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import Audit

log = logging.getLogger(__name__)


_running: dict[str, Sandbox] = {}
"""Sandboxes by the name of the fixture that starts them."""


def _run(seed: str, directory: Path, fixture: str) -> Iterator[Sandbox]:
    with lifecycle.start(seed, directory=directory, progress=log.info) as sandbox:
        _running[fixture] = sandbox
        yield sandbox


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Stop the clusters that no later test asks for: idle brokers and their clients take time from the other tests."""
    items = item.session.items
    later = items[items.index(item) + 1 :]
    for fixture in [*_running]:
        if not any(fixture in one.fixturenames for one in later if isinstance(one, pytest.Function)):
            _running.pop(fixture).stop(log.info)


@pytest.fixture(scope="session")
def healthy_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three brokers with the healthy seed; tests only read it. Its .bootstrap is HOST:PORT,HOST:PORT,HOST:PORT."""
    yield from _run("healthy", tmp_path_factory.mktemp("healthy-sandbox"), "healthy_cluster")


@pytest.fixture(scope="session")
def healthy_audit(healthy_cluster: Sandbox, airflow_database: AirflowDatabase, tmp_path_factory: pytest.TempPathFactory) -> FirstAudit:
    """The first audit of the healthy cluster, by the command, on one machine."""
    root = tmp_path_factory.mktemp("healthy") / "audit-root"
    airflow_database.give(root)
    return first_healthy_audit(healthy_cluster, root)


@pytest.fixture(scope="session")
def faulty_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three brokers with the faulty seed; tests only read it until ``faulty_audit`` was made."""
    yield from _run("faulty", tmp_path_factory.mktemp("faulty-sandbox"), "faulty_cluster")


@pytest.fixture(scope="session")
def faulty_audit(faulty_cluster: Sandbox, airflow_database: AirflowDatabase, tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """The audit of the faulty cluster; its past changes the cluster, so the modules that need the cluster as seeded come first."""
    root = tmp_path_factory.mktemp("faulty") / "root"
    airflow_database.give(root)
    return first_audit(faulty_cluster, root)


@pytest.fixture(scope="session")
def spare_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three brokers without a seed, in a folder with a space in its name; test_crashed_sandbox.py breaks them in the end."""
    yield from _run(lifecycle.NO_SEED, tmp_path_factory.mktemp("spare sandbox"), "spare_cluster")


_COORDINATORS = {
    # Transactional ids expire after 7 days otherwise.
    "transactional.id.expiration.ms": "15000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "1000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "share.coordinator.state.topic.num.partitions": "1",
}


@pytest.fixture(scope="session")
def coordinators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three brokers without a seed, on which groups and transactions work; at first, for test_transaction_state.py, nobody has used them."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _COORDINATORS.items():
            patch.setitem(brokers._SMALL, name, value)
        yield from _run(lifecycle.NO_SEED, tmp_path_factory.mktemp("coordinators"), "coordinators")


@pytest.fixture(scope="session")
def job_process() -> Iterator[None]:
    """One process runs the job that reads the coordinators' topics, for all modules."""
    with one_process():
        yield


@pytest.fixture(scope="session")
def airflow_database(tmp_path_factory: pytest.TempPathFactory) -> AirflowDatabase:
    """One for all processes that share the tests: their temporary folders lie in the same one."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "airflow-database"
    with exclusive(folder.with_suffix(".lock"), wait=True):
        return AirflowDatabase(folder)
