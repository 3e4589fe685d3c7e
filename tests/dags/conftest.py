"""An Airflow for the tests: its home, SQLite database and audit folder are temporary."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_HOME = Path(tempfile.mkdtemp(prefix="kafka-audit-airflow-")) / "airflow"
_HOME.mkdir()

# Airflow reads its configuration when it is first imported: these must stand before any test module is.
os.environ.update(
    {
        "AIRFLOW_HOME": str(_HOME),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{_HOME / 'airflow.db'}",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_HOME / "passwords.json"),
        "AIRFLOW__API_AUTH__JWT_SECRET": "0" * 128,
        "AIRFLOW_CONN_KAFKA_DEFAULT": '{"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}',
        "KAFKA_AUDIT_SNAPSHOT_RETRIES": "0",
        # dag.test() of Airflow 3.3.2 cannot end a run of a DAG with deadlines (kafka_audit/airflow/deadlines.py).
        "KAFKA_AUDIT_START_WITHIN": "0",
        "KAFKA_AUDIT_FINISH_WITHIN": "0",
    }
)
(_HOME / "passwords.json").write_text('{"admin": "admin", "viewer": "viewer"}', encoding="utf-8")


@pytest.fixture(scope="session", autouse=True)
def airflow_home() -> Iterator[Path]:
    yield _HOME
    shutil.rmtree(_HOME.parent, ignore_errors=True)


@pytest.fixture(scope="session")
def airflow_db() -> None:
    from airflow.utils import db

    db.initdb()


@pytest.fixture(scope="module")
def client(airflow_db):
    """Airflow's own web application with the plugin in it, as the api-server runs it."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    with TestClient(create_app(apps="core"), base_url="http://testserver", follow_redirects=False) as made:
        yield made


@pytest.fixture(scope="module")
def login(client) -> dict[str, str]:
    token = client.post("/auth/token", json={"username": "viewer", "password": "viewer"})
    assert token.status_code == 201, token.text
    return {"Authorization": f"Bearer {token.json()['access_token']}"}


@pytest.fixture(scope="session")
def dagbag():
    from airflow.dag_processing.dagbag import DagBag

    return DagBag(dag_folder=str(ROOT / "dags"))


@pytest.fixture(scope="session")
def dag(dagbag):
    return dagbag.dags["kafka_reliability_audit"]


@pytest.fixture
def load_dag():
    """Loads a DAG anew: within one process, a run's configuration stays behind in the Params of a DAG and its tasks."""
    from airflow.dag_processing.dagbag import DagBag

    return lambda dag_id: DagBag(dag_folder=str(ROOT / "dags")).dags[dag_id]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An audit folder of this test's own."""
    monkeypatch.setenv("KAFKA_AUDIT_ROOT", str(tmp_path / "audit-root"))
    return tmp_path / "audit-root"


@pytest.fixture
def folders_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run's Params may name folders of this test."""
    monkeypatch.setenv("KAFKA_AUDIT_FOLDERS", str(tmp_path))


@pytest.fixture
def policy_copy(tmp_path: Path) -> Path:
    """A policy folder with the shipped policy's required files."""
    from kafka_audit.policy import shipped_policy_folder

    folder = tmp_path / "policy"
    folder.mkdir()
    for file in ("tiers.yaml", "slas.yaml"):
        shutil.copy(shipped_policy_folder() / file, folder)
    return folder


@pytest.fixture
def events():
    """The asset events of this test, oldest first: (name, uri, extra)."""
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    def found() -> list[tuple[str, str, dict]]:
        with create_session() as session:
            rows = session.scalars(select(AssetEvent).where(AssetEvent.id > before).order_by(AssetEvent.id))
            return [(event.name, event.uri, event.extra) for event in rows]

    before = 0
    with create_session() as session:
        before = max(session.scalars(select(AssetEvent.id)), default=0)
    return found


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch):
    """Stand-ins for the platform's steps, in the places where the tasks look for them."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from steps import Steps

    import expectations.gate
    import kafka_audit.airflow.offsets_snapshot
    import kafka_audit.airflow.results
    import kafka_audit.collect.snapshot

    made = Steps()
    for module in (kafka_audit.collect.snapshot, kafka_audit.airflow.offsets_snapshot):
        monkeypatch.setattr(module, "take_snapshot", made.take_snapshot)
    monkeypatch.setattr(expectations.gate, "judge_evidence", made.judge_evidence)
    monkeypatch.setattr(expectations.gate, "judge_findings", made.judge_findings)
    monkeypatch.setattr(kafka_audit.airflow.results, "write_report_and_index", made.write_report)

    def execute(operator, context) -> None:
        made.submit(operator, context)

    monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    return made
