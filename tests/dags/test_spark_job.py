"""The Spark operator: what it submits, and how it treats a job's exit code. A script replaces spark-submit."""

import json
import os
import signal
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, IntegrityError, StoppedError
from kafka_audit.store.durable_files import read_json, write_json

pytestmark = pytest.mark.airflow

SCRIPT = """#!{python}
import json, os, sys
from pathlib import Path
Path(os.environ["SEEN"]).write_text(json.dumps({{"arguments": sys.argv[1:], "python": os.environ.get("PYSPARK_PYTHON")}}))
print("INFO something of Spark's own")
{body}
"""


class Submit:
    """A stand-in for spark-submit and an AuditJob that uses it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.seen = folder / "seen.json"
        monkeypatch.setenv("SEEN", str(self.seen))
        monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[1]"}')
        monkeypatch.setenv("KAFKA_AUDIT_ROOT", str(folder / "audit-root"))
        monkeypatch.setenv("KAFKA_AUDIT_FOLDERS", str(folder))
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)

    def run(self, body: str, **request: object) -> None:
        from kafka_audit.airflow.spark_job import AuditJob
        from kafka_audit.audit.request import AuditRequest, make_plan

        script = self.folder / "spark-submit"
        script.write_text(SCRIPT.format(python=sys.executable, body=body))
        script.chmod(0o755)
        when = datetime(2026, 11, 20, tzinfo=timezone.utc)
        plan = make_plan(
            AuditRequest(**request), root=self.folder / "audit-root", dag_id="kafka_reliability_audit", run_id="r", run_after=when
        )
        self.plan = plan
        write_json(plan.audit.run_file, {"audit_id": plan.audit_id})
        self.job = AuditJob(task_id="verify", job="verify", plan=plan.model_dump(mode="json"))
        self.job.execute({"params": request, "dag_run": SimpleNamespace(dag_id=plan.dag_id, run_id="r", run_after=when, conf=None)})


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Submit:
    return Submit(tmp_path, monkeypatch)


def test_the_job_gets_its_folders_the_policy_and_every_folder_of_controls(submit: Submit, tmp_path: Path) -> None:
    for name in ("policy", "one", "two"):
        (tmp_path / name).mkdir()
    submit.run("", policy_dir=f"{tmp_path}/policy", controls_dirs=f"{tmp_path}/one,{tmp_path}/two")
    seen = json.loads(submit.seen.read_text())
    application = next(index for index, argument in enumerate(seen["arguments"]) if argument.endswith("verify.py"))
    assert Path(seen["arguments"][application]).is_file()
    assert seen["arguments"][application + 1 :] == [
        *("--snapshot", str(submit.plan.snapshot_dir), "--audit", str(submit.plan.audit.path), "--policy", f"{tmp_path}/policy"),
        *("--controls", f"{tmp_path}/one", "--controls", f"{tmp_path}/two"),
    ]
    assert seen["arguments"][:2] == ["--master", "local[1]"]
    assert seen["python"] == sys.executable
    assert "spark.driver.host=127.0.0.1" in seen["arguments"]


@pytest.mark.parametrize(("code", "error"), [(1, CollectionError), (2, ConfigurationError), (5, IntegrityError)])
def test_a_jobs_exit_code_and_last_words_come_back_as_the_error_of_that_code(submit: Submit, code: int, error: type[AuditError]) -> None:
    from airflow.sdk.exceptions import AirflowException

    with pytest.raises((AuditError, AirflowException), match=r"tiers\.yaml: default_tier is missing"):
        submit.run(f'print("kafka-audit: tiers.yaml: default_tier is missing", file=sys.stderr); sys.exit({code})')
    note = read_json(submit.plan.audit.path / "failures" / "verify.json")
    assert (note["exit_code"], note["error"]) == (code, error.__name__)


def test_a_job_that_dies_without_a_word_is_reported_with_its_last_line(submit: Submit) -> None:
    with pytest.raises(CollectionError, match=r"exit code 137; the last line of its output: java\.lang\.OutOfMemoryError"):
        submit.run('print("java.lang.OutOfMemoryError: Java heap space"); sys.exit(137)')


def test_a_task_that_is_told_to_stop_ends_its_job_and_runs_once_more(submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.airflow.process_group import handling
    from kafka_audit.airflow.retries import NO_ERROR_TWICE, SNAPSHOT_RETRIES

    monkeypatch.setenv("TASK", str(os.getpid()))
    began = time.monotonic()
    # As Airflow does in the process of a task.
    with (
        handling(signal.SIGTERM, to=lambda number, frame: submit.job.on_kill()),
        pytest.raises(StoppedError, match=r"verify: the task was told to stop \(SIGTERM\), so its Spark job was ended") as stopped,
    ):
        submit.run('import signal, time; os.kill(int(os.environ["TASK"]), signal.SIGTERM); time.sleep(600)')
    assert time.monotonic() - began < 500, "the job was waited for"
    for policy in (NO_ERROR_TWICE, SNAPSHOT_RETRIES):
        assert policy.evaluate(stopped.value, try_number=1, max_tries=1).action.value == "retry"
    note = read_json(submit.plan.audit.path / "failures" / "verify.json")
    assert (note["exit_code"], note["error"]) == (1, "StoppedError")


def test_a_task_that_is_told_to_stop_before_it_submits_its_job_raises_nothing(submit: Submit) -> None:
    from kafka_audit.airflow.spark_job import SparkJob

    job = SparkJob(task_id="verify", job="verify", conn_id="no_such_connection")
    job.on_kill()
    assert job._hook is None


def test_a_job_on_a_spark_cluster_keeps_its_address_and_takes_settings_from_the_connection(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = {"spark.pyspark.python": "/usr/bin/python3", "spark.sql.shuffle.partitions": 16, "spark.kafka_audit.sharedFiles": True}
    spark = {"conn_type": "spark", "host": "spark://master", "port": 7077, "extra": {"conf": conf}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    submit.run("")
    seen = json.loads(submit.seen.read_text())
    assert seen["python"] is None, "the path of this Python means nothing on other machines"
    assert seen["arguments"][:2] == ["--master", "spark://master:7077"]
    given = [argument for argument in seen["arguments"] if argument.startswith(("spark.pyspark", "spark.sql.shuffle", "spark.kafka_audit"))]
    assert sorted(given) == [
        "spark.kafka_audit.sharedFiles=true",
        f"spark.pyspark.driver.python={sys.executable}",
        "spark.pyspark.python=/usr/bin/python3",
        "spark.sql.shuffle.partitions=16",
    ]
    assert not [argument for argument in seen["arguments"] if argument.startswith("spark.driver.") and "127.0.0.1" in argument]


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"conf": ["spark.executor.memory"]}, "must hold settings of Spark by name"),
        ({"deploy-mode": "cluster"}, "use the deploy mode client"),
    ],
)
def test_a_connection_that_cannot_be_used_is_refused_before_spark_starts(
    submit: Submit, monkeypatch: pytest.MonkeyPatch, extra: dict, said: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    spark = {"conn_type": "spark", "host": "spark://master", "port": 7077, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    with pytest.raises(AirflowFailException, match=said):
        submit.run("")
    assert not submit.seen.exists()


@pytest.mark.parametrize(
    "name",
    [
        "spark.authenticate.secret",
        "spark.ssl.keyStorePassword",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.bucket.evidence.session.token",
        "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
        "spark.hadoop.fs.azure.account.oauth2.client.secret",
        "spark.hadoop.fs.azure.sas.fixed.token.lake.dfs.core.windows.net",
        "spark.hadoop.fs.gs.auth.service.account.private.key",
        "spark.kubernetes.authenticate.submission.oauthToken",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
    ],
)
def test_a_secret_in_the_connection_is_refused_by_its_name_before_spark_starts(
    submit: Submit, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    spark = {"conn_type": "spark", "host": "spark://master", "extra": {"conf": {"spark.executor.memory": "4g", name: "hunter2"}}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(spark))
    with pytest.raises(AirflowFailException) as refused:
        submit.run("")
    assert not submit.seen.exists()
    assert f"conf in its extra holds {name}: the command line of spark-submit would show it" in str(refused.value)
    note = read_json(submit.plan.audit.path / "failures" / "verify.json")
    assert (note["exit_code"], note["error"]) == (2, "ConfigurationError")
    assert "hunter2" not in str(refused.value) + json.dumps(note)


def test_settings_that_only_say_where_a_secret_is_reach_spark(submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = dict.fromkeys(
        [
            "spark.authenticate",
            "spark.authenticate.secret.file",
            "spark.hadoop.fs.azure.account.keyprovider.lake.dfs.core.windows.net",
            "spark.hadoop.fs.azure.sas.token.provider.type.lake.dfs.core.windows.net",
            "spark.hadoop.fs.gs.auth.access.token.provider",
            "spark.hadoop.fs.s3a.aws.credentials.provider",
            "spark.hadoop.hadoop.security.credential.provider.path",
            "spark.kafka.clusters.main.sasl.token.mechanism",
            "spark.kubernetes.authenticate.submission.oauthTokenFile",
            "spark.kubernetes.executor.secretKeyRef.AWS_SECRET_ACCESS_KEY",
            "spark.kubernetes.executor.secrets.store",
            "spark.kubernetes.kerberos.tokenSecret.itemKey",
            "spark.redaction.regex",
            "spark.sql.redaction.options.regex",
            "spark.ssl.keyStore",
            "spark.ssl.privateKey",
        ],
        "x",
    )
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "spark://master", "extra": {"conf": conf}}))
    submit.run("")
    assert {f"{name}=x" for name in conf} <= set(json.loads(submit.seen.read_text())["arguments"])


def test_yarn_is_refused_before_spark_starts_where_no_folder_of_its_settings_is_named(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "client"}}))
    with pytest.raises(AirflowFailException, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        submit.run("")
    assert not submit.seen.exists()
    monkeypatch.setenv("YARN_CONF_DIR", "/etc/hadoop/conf")
    submit.run('assert os.environ["YARN_CONF_DIR"] == "/etc/hadoop/conf"')
    assert json.loads(submit.seen.read_text())["arguments"][:2] == ["--master", "yarn"]


def test_a_missing_spark_connection_is_an_error_and_not_a_job_on_yarn(submit: Submit, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT")
    with pytest.raises(AirflowFailException, match=r"no Airflow connection 'spark_default'.*AIRFLOW_CONN_SPARK_DEFAULT="):
        submit.run("")
    assert not submit.seen.exists()
