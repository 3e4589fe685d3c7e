"""The Kafka hook: which Airflow connections it accepts, and its errors for the others."""

import json
import re

import pytest
import typer

from kafka_audit.errors import ConfigurationError

pytestmark = pytest.mark.airflow


def connect(monkeypatch: pytest.MonkeyPatch, **connection):
    from kafka_audit.airflow.hook import KafkaAuditHook

    monkeypatch.setenv("AIRFLOW_CONN_SOME_KAFKA", json.dumps(connection))
    return KafkaAuditHook("some_kafka")


@pytest.mark.parametrize("conn_type", ["kafka", "generic"])
def test_the_keys_of_the_kafka_provider_are_understood_also_when_airflow_stored_the_type_as_generic(monkeypatch, conn_type: str) -> None:
    extra = {
        "bootstrap.servers": "b1:9093,b2:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "audit",
        "sasl.password": "hunter2",
    }
    settings = connect(monkeypatch, conn_type=conn_type, extra=extra).get_conn()
    assert settings.bootstrap_servers == ("b1:9093", "b2:9093")
    assert settings.sasl_mechanism == "SCRAM-SHA-512"
    assert "hunter2" not in repr(settings)


def test_a_missing_connection_is_named_with_the_variable_that_would_define_it() -> None:
    from kafka_audit.airflow.hook import KafkaAuditHook

    with pytest.raises(ConfigurationError, match=r"no Airflow connection 'nowhere'.*AIRFLOW_CONN_NOWHERE="):
        KafkaAuditHook("nowhere").get_conn()


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"conn_type": "http", "extra": {"bootstrap.servers": "b:1"}}, "has type 'http'; use one of type kafka or generic"),
        ({"conn_type": "kafka"}, "is empty: write"),
        ({"conn_type": "kafka", "extra": {"bootstrap.severs": "b:1"}}, "bootstrap.severs"),
        ({"conn_type": "kafka", "host": "b", "extra": {"bootstrap.servers": "b:1"}}, "fills host, which a kafka connection does not use"),
        ({"conn_type": "kafka", "password": "hunter2", "extra": {"bootstrap.servers": "b:1"}}, "fills password"),
        ({"conn_type": "kafka", "extra": ["hunter2"]}, "some_kafka"),
    ],
)
def test_an_unusable_connection_is_refused_without_repeating_a_secret(monkeypatch, connection: dict, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        connect(monkeypatch, **connection).get_conn()
    assert message in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_the_command_says_of_each_clusters_connection_whether_it_leads_there(monkeypatch, capsys) -> None:
    from kafka_audit.cli.connections import connections

    extra = {"bootstrap.servers": "127.0.0.1:1", "sasl.password": "hunter2"}
    monkeypatch.setenv("AIRFLOW_CONN_ORDERS", json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}))
    monkeypatch.setenv("AIRFLOW_CONN_SECRET", json.dumps({"conn_type": "kafka", "password": "hunter2", "extra": extra}))
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=orders,payments=nowhere,stock=secret")
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    with pytest.raises(typer.Exit) as ended:
        connections()
    said = capsys.readouterr().out
    assert ended.value.exit_code == ConfigurationError.exit_code
    assert re.search(r"missing +cluster +it does not answer \(orders, by orders\)\n +.*127\.0\.0\.1:1", said)
    assert re.search(
        r"missing +cluster +the connection cannot be used \(payments, by nowhere\)\n +there is no Airflow connection 'nowhere'", said
    )
    assert re.search(r"missing +cluster +the connection cannot be used \(stock, by secret\)\n +.* fills password", said)
    assert "hunter2" not in said
