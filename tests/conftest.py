"""Settings of every test run: Ctrl-C works in the tests and in the processes that they start, the Spark session has enough memory, and
tests that must run in one process stay together if several processes share the tests."""

import contextlib
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

import psutil
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from kafka_audit.sandbox import brokers

# A shell without job control starts background jobs with SIGINT ignored, and children inherit that; a CI runner may be one.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without byte code on the disk each of the processes that tests start would compile all of Airflow, pyarrow or the command line again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# jsonschema would compile 38 grammars when it is imported, for a format that is checked nowhere: internationalised addresses.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # None is Python's own mark for what is not installed

# py4j says good-bye when the interpreter ends, to a stream that pytest has closed by then.
logging.getLogger("py4j").setLevel(logging.WARNING)

# One Spark session lives through all tests: what a thousand plans leave behind is more than a job ever holds.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 2g pyspark-shell")

# The thorough compiler would take half of what read_commits takes of two cores, and the jobs of tests are too short to gain from it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m")

_LONGEST_FIRST = ("spark", "faulty cluster", "healthy cluster", "integration", "gates")
_PARTS = {
    # First the modules that look at the cluster as it was seeded.
    "faulty cluster": (
        "test_sandbox.py",
        "test_collection.py",
        "test_offsets_snapshot.py",
        "test_crashed_sandbox.py",
        "test_remediation.py",
        "test_whole_audit.py",
    ),
    "healthy cluster": (
        "test_healthy_cluster.py",
        "test_airflow.py",
        "test_celery_workers.py",
        "test_interrupted_audit.py",
    ),
    # Each starts a Spark session for itself: the second one and the third find a JVM that has planned such queries before. The Spark
    # cluster's test mostly waits for other processes: among the others of spark, which end last, it would keep one core idle. It shares an
    # audit with the comparison of small and large clusters.
    "warm JVM": (
        "test_flipped_settings.py",
        "test_lag_truth.py",
        "test_tiered_storage.py",
        "test_spark_cluster.py",
        "test_small_and_large_clusters.py",
    ),
    "job process": (
        "test_offsets_topic.py",
        "test_transaction_state.py",
        "test_commit_behaviour.py",
        "test_share_and_streams_groups.py",
        "test_versions.py",
    ),
}


def _part(path: PurePath) -> str:
    """What shares the Spark session or its JVM, Airflow's database, a cluster, the process of a job or the import of Great Expectations.

    Else the module.
    """
    named = next((part for part, modules in _PARTS.items() if path.name in modules), "")
    if named or path.parent.name in ("spark", "dags"):
        return named or path.parent.name
    return "gates" if path.name.startswith("test_gate_") else str(path)


class _Parts(LoadScopeScheduling):
    """With ``-n``, all tests of a part run in the same process."""

    def _split_scope(self, nodeid: str) -> str:
        return _part(PurePosixPath(nodeid.split("::", 1)[0]))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> _Parts:
    return _Parts(config, log)


_SLOW = {
    f"test_{name}.py"
    for name in """
        audit_chain audit_check burns changes_since collect_access collect_controllers collect_datasets collect_first_unread comparison
        connection_read_only diff_command evidence_package fix_plan fleet fleet_pdf forged_previous_audit forged_report gate_baseline
        gate_contract gate_data_docs gate_evidence gate_findings gate_new_failures gate_validation gate_waivers generated_files globs
        group_pages guard hostile_files hostile_yaml index lag_on_a_terminal metrics_page offset_arithmetic offsets_batches
        offsets_collection offsets_decoding previous_audit record_batches report_commit_history report_formats report_front report_html
        report_not_compared report_outputs report_pdf report_policy report_statements report_truncation rule_size sample_history
        sandbox_definition sandbox_watch sbom sealed_folders sealed_report signing snapshot split_in_store split_snapshot store_attacks
        store_pages store_root store_steps supply_chain sweep told trend ui_command
    """.split()  # noqa: SIM905 - a list would take a line for each
}
"""Modules of unit tests that take seconds each: nine tenths of the time of all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fast", action="store_true", help="leave out the modules of tests/conftest.py's _SLOW, unread")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path.name in _SLOW and config.getoption("--fast") else None


def pytest_collection_finish() -> None:
    """What collecting made stays to the end: whenever Python looks for cycles, it leaves that out."""
    gc.freeze()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for all tests of a module."""
    from chromium import CHROMIUM, QUIET

    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed, so no browser can be driven")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


@pytest.fixture(scope="session")
def object_store() -> Iterator[Any]:
    """An S3 server for all tests of this process."""
    from object_store import served

    with served() as made:
        yield made


@pytest.fixture(scope="session")
def azure_store() -> Iterator[Any]:
    """An Azure server for all tests of this process."""
    from azure_store import served

    with served() as made:
        yield made


@pytest.fixture(scope="session")
def google_store() -> Iterator[Any]:
    """A Google server for all tests of this process."""
    from google_store import served

    with served() as made:
        yield made


_RUN = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Two processes that look for free ports at once find different ones."""
    worker = getattr(config, "workerinput", None)
    if worker:
        brokers.PORTS = brokers.PORTS[int(worker["workerid"][2:]) :: worker["workercount"]]


def pytest_configure_node(node: WorkerController) -> None:
    node.config.stash[_RUN] = node.workerinput["testrunuid"]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ctrl-C gives the test processes no time to stop their brokers and Airflow: what carries this run's mark is killed."""
    run = config.stash.get(_RUN, None)
    for process in psutil.process_iter() if run else ():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("PYTEST_XDIST_TESTRUNUID") == run:
                process.kill()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest parts first, so that no process is left with one of them at the end, and the modules of a part in their order."""
    modules = [module for part in _PARTS.values() for module in part]

    def place(item: pytest.Item) -> list[int]:
        names = (*item.path.parts, _part(item.path))
        module = modules.index(item.path.name) if item.path.name in modules else len(modules)
        return [*(each not in names for each in _LONGEST_FIRST), module]

    items.sort(key=place)
