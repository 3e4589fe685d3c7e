"""The DAG of the commit history: Spark's arguments, what is refused, and which failures are retried. A script replaces spark-submit."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from dag_run import Run

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]
DAG = "kafka_commit_history"

SCRIPT = """#!{python}
import json, os, sys
from pathlib import Path
arguments = sys.argv[1:]
client = Path(arguments[arguments.index("--client") + 1])
seen = {{"arguments": arguments, "a file": client.is_file(), "mode": oct(client.parent.stat().st_mode)}}
seen["client"] = json.loads(client.read_text())
Path(os.environ["SEEN"]).write_text(json.dumps(seen))
{body}
"""


class Submit:
    """A stand-in for spark-submit; ``seen`` is what it was given, None when it was not called."""

    def __init__(self, folder: Path) -> None:
        self._script, self._seen = folder / "spark-submit", folder / "seen.json"
        self.does("")

    def does(self, body: str) -> None:
        self._script.write_text(SCRIPT.format(python=sys.executable, body=body))
        self._script.chmod(0o755)

    def fails(self, code: int, said: str) -> None:
        self.does(f'print("kafka-audit: {said}", file=sys.stderr); sys.exit({code})')

    @property
    def seen(self) -> dict[str, Any] | None:
        return json.loads(self._seen.read_text()) if self._seen.is_file() else None


@pytest.fixture
def submit(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Submit:
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path), os.environ["PATH"])))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
    keys = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    keys |= {"sasl.username": "auditor", "sasl.password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_SECURED", json.dumps({"conn_type": "kafka", "extra": keys}))
    return Submit(tmp_path)


@pytest.fixture
def dag(load_dag):
    return load_dag(DAG)


def test_the_job_gets_its_history_the_jars_and_the_connection_but_no_password_on_the_command_line(
    load_dag, submit: Submit, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=kafka_secured")
    run = Run(load_dag(f"{DAG}__orders"), behaviour_hours=48)
    assert run.state == "success"
    assert submit.seen is not None
    arguments = submit.seen["arguments"]
    assert arguments[arguments.index("--history") + 1] == str(root / "history" / "orders" / "commits")
    assert float(arguments[arguments.index("--behaviour-hours") + 1]) == 48
    assert "spark-sql-kafka" in arguments[arguments.index("--jars") + 1]
    assert any("UseParallelGC" in argument for argument in arguments)
    assert "hunter2" in submit.seen["client"]["sasl.jaas.config"]
    assert not any("hunter2" in argument for argument in arguments)
    assert submit.seen["mode"].endswith("700")
    assert not submit.seen["a file"], "a killed task would leave it behind"
    assert not Path(arguments[arguments.index("--client") + 1]).exists()


def test_the_history_of_a_root_in_a_store_is_read_into_this_machines_mirror(
    load_dag, submit: Submit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CLUSTERS", "orders=kafka_secured"), ("ROOT", "s3://evidence/prod"), ("MIRROR", str(tmp_path / "mirror"))):
        monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
    assert Run(load_dag(f"{DAG}__orders")).state == "success"
    assert submit.seen is not None
    history = Path(submit.seen["arguments"][submit.seen["arguments"].index("--history") + 1])
    assert history.match("history/orders/commits") and history.parents[3] == tmp_path / "mirror"


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"cluser": "a"}, "cluser: is not a parameter of kafka_commit_history; did you mean 'cluster'"),
        ({"policy_dir": "/"}, "policy_dir: is not a parameter of kafka_commit_history"),
    ],
)
def test_what_cannot_be_used_is_refused_before_spark_starts(dag, submit: Submit, conf: dict, message: str) -> None:
    run = Run(dag, **conf)
    assert run.state == "failed"
    assert message in str(run.errors["read_commits"])
    assert submit.seen is None


def test_a_driver_on_another_machine_is_refused_because_the_credentials_stay_on_this_one(
    load_dag, submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=kafka_secured")
    spark = {"conn_type": "spark", "host": "spark://host", "port": 7077, "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    assert "use the deploy mode client" in str(Run(load_dag(f"{DAG}__orders")).errors["read_commits"])
    assert submit.seen is None


def test_a_connection_that_is_not_defined_is_named(dag, submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT")
    assert "there is no Airflow connection 'kafka_default'" in str(Run(dag).errors["read_commits"])
    assert submit.seen is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, "__consumer_offsets may not be read: grant Read and Describe on it"),
        (1, "__consumer_offsets cannot be read: SaslAuthenticationException: Authentication failed: Invalid username or password"),
        (1, "__consumer_offsets cannot be read: SslAuthenticationException: SSL handshake failed"),
        (2, "another run reads into it"),
        (5, "the brokers answer as another cluster"),
    ],
)
def test_what_cannot_get_better_fails_the_task_for_good_with_the_jobs_own_words(dag, submit: Submit, code: int, said: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    submit.fails(code, said)
    error = Run(dag).errors["read_commits"]
    assert type(error) is AirflowFailException
    assert str(error) == said


def test_on_a_cluster_without_an_offsets_topic_the_task_is_skipped(dag, submit: Submit) -> None:
    submit.fails(6, "there is no __consumer_offsets yet: the brokers create it at its first use")
    ended = Run(dag)
    assert (ended.states["read_commits"], ended.errors) == ("skipped", {})


def test_an_unreachable_cluster_and_a_job_that_breaks_down_are_tried_again(dag, submit: Submit) -> None:
    from kafka_audit.airflow.retries import SNAPSHOT_RETRIES
    from kafka_audit.errors import CollectionError

    (only,) = dag.tasks
    assert only.retry_policy is SNAPSHOT_RETRIES
    submit.fails(1, "__consumer_offsets cannot be read: TimeoutException: Timed out waiting for a node assignment")
    assert type(Run(dag).errors["read_commits"]) is CollectionError
