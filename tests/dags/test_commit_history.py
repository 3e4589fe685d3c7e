"""The DAG of the commit history and its operator; a script stands in for spark-submit."""

import json
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

SCRIPT = """#!{python}
import json, os, sys
from pathlib import Path
arguments = sys.argv[1:]
client = Path(arguments[arguments.index("--client") + 1])
seen = {{"arguments": arguments, "client": json.loads(client.read_text()), "mode": oct(client.parent.stat().st_mode)}}
Path(os.environ["SEEN"]).write_text(json.dumps(seen))
{body}
"""


@pytest.fixture
def submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def run(body: str = "") -> dict:
        from kafka_audit.airflow.commit_history import ReadCommits

        script = tmp_path / "spark-submit"
        script.write_text(SCRIPT.format(python=sys.executable, body=body))
        script.chmod(0o755)
        monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
        monkeypatch.setenv("KAFKA_AUDIT_ROOT", str(tmp_path / "root"))
        monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path), os.environ["PATH"])))
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
        keys = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        keys |= {"sasl.username": "auditor", "sasl.password": "hunter2"}
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": keys}))
        ReadCommits(task_id="read_commits", cluster="kafka", kafka_conn_id="kafka_default", behaviour_hours="24").execute({})
        return json.loads((tmp_path / "seen.json").read_text())

    return run


def test_the_job_gets_its_history_the_jars_and_the_connection_but_no_password_on_the_command_line(submitted, tmp_path: Path) -> None:
    seen = submitted()
    arguments = seen["arguments"]
    assert arguments[arguments.index("--history") + 1] == str(tmp_path / "root" / "history" / "kafka" / "commits")
    assert "spark-sql-kafka" in arguments[arguments.index("--jars") + 1]
    assert any("DontCompileHugeMethods" in argument for argument in arguments)
    assert "hunter2" in seen["client"]["sasl.jaas.config"] and not any("hunter2" in argument for argument in arguments)
    assert seen["mode"].endswith("700")
    assert not Path(arguments[arguments.index("--client") + 1]).exists()


def test_a_topic_that_may_not_be_read_is_the_tasks_last_word(submitted) -> None:
    from kafka_audit.errors import CollectionError

    with pytest.raises(CollectionError, match="may not be read"):
        submitted('print("kafka-audit: __consumer_offsets may not be read", file=sys.stderr); sys.exit(1)')


def test_the_dag_is_paused_until_a_person_switches_it_on(dagbag) -> None:
    dag = dagbag.dags["kafka_commit_history"]
    assert dag.is_paused_upon_creation is True
    assert [task.task_id for task in dag.tasks] == ["read_commits"]
    assert dag.schedule == "*/15 * * * *" or dag.timetable.summary == "*/15 * * * *"
