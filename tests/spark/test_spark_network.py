"""What this project's Spark jobs expose: their sockets, the options of their sources, and what they send to executors."""

import json
import os
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from kafka_audit.submit import LOOPBACK_CONF, READ_COMMITS_CONF, job_path

pytestmark = pytest.mark.spark


def test_a_session_of_a_plain_process_listens_on_loopback_only(spark: SparkSession) -> None:
    spark.range(10).rdd.map(lambda row: row.id).collect()  # with Python workers
    family = [one for one in psutil.Process().children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]
    listening = [each.laddr.ip for one in family for each in one.net_connections() if each.status == psutil.CONN_LISTEN]
    assert len(listening) > 2
    assert [address for address in listening if not is_loopback(address)] == []
    conf = dict(spark.sparkContext.getConf().getAll())
    assert {name: conf[name] for name in LOOPBACK_CONF} == LOOPBACK_CONF


def test_a_session_under_spark_submit_with_a_local_master_has_its_address_on_loopback(tmp_path: Path) -> None:
    script = tmp_path / "show.py"
    script.write_text(
        "from spark_jobs.engine.session import spark_session\n"
        "print('address', spark_session('shown').sparkContext.getConf().get('spark.driver.host'))\n"
    )
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local[1]", str(script)]
    done = subprocess.run(
        command, env={**os.environ, "SPARK_LOCAL_IP": "0.0.0.0"}, capture_output=True, text=True, timeout=600, check=False
    )
    assert "address 127.0.0.1" in done.stdout, done.stderr[-2000:]


def is_loopback(address: str) -> bool:
    found = ip_address(address)
    return (getattr(found, "ipv4_mapped", None) or found).is_loopback


OPTIONS = {
    "kafka.sasl.jaas.config": 'x required username="auditor" password="hunter2";',
    "kafka.ssl.keystore.key": "-----BEGIN hunter2-----",
    "kafka.ssl.truststore.password": "hunter2",
    "kafka.bootstrap.servers": "broker:9093",
}


def shown(spark: SparkSession) -> str:
    """A source's options as plans show them, in logs and in Spark's event log."""
    return str(spark.readStream.format("rate").options(**OPTIONS).load()._jdf.queryExecution().toString())


def test_no_plan_shows_the_key_or_the_password_of_a_connection(spark: SparkSession) -> None:
    name = "spark.sql.redaction.options.regex"
    assert "hunter2" in shown(spark), "by default Spark shows a private key"
    spark.conf.set(name, READ_COMMITS_CONF[name])
    try:
        assert "hunter2" not in shown(spark)
        assert "broker:9093" in shown(spark)
    finally:
        spark.conf.unset(name)


def test_credentials_are_not_sent_to_executors_of_a_cluster_without_encryption(tmp_path: Path) -> None:
    (tmp_path / "client.json").write_text(json.dumps({name.removeprefix("kafka."): value for name, value in OPTIONS.items()}))
    command = [str(Path(sys.executable).with_name("spark-submit")), "--master", "local-cluster[1,1,512]"]
    command += ["--conf", "spark.ui.enabled=false", "--conf", "spark.executor.memory=512m", str(job_path("read_commits"))]
    command += ["--history", str(tmp_path / "history"), "--bootstrap", "127.0.0.1:1", "--client", str(tmp_path / "client.json")]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path)
    output = done.stdout + done.stderr
    assert done.returncode == 2, output[-3000:]
    (said,) = (line for line in output.splitlines() if line.startswith("kafka-audit: "))
    assert "the connection's sasl.jaas.config, ssl.keystore.key, ssl.truststore.password would travel" in said
    assert "spark.network.crypto.enabled=true" in said
    assert "hunter2" not in output
    assert not (tmp_path / "history").exists()
