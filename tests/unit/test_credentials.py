"""Kafka's credentials leave this machine only encrypted, and only for executors that know the application's secret."""

import pytest

from kafka_audit.errors import ConfigurationError
from spark_jobs.commit_history.read.source import check_transport

PASSWORD = {"bootstrap.servers": "a:9093", "sasl.jaas.config": 'x required password="hunter2";'}
KEY = {"bootstrap.servers": "a:9093", "ssl.keystore.type": "PEM", "ssl.keystore.key": "hunter2"}
PLAIN = {"bootstrap.servers": "a:9092", "security.protocol": "PLAINTEXT"}
TRUST = {"bootstrap.servers": "a:9093", "security.protocol": "SSL", "ssl.truststore.certificates": "PEM"}
REMOTE = ("spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]")


@pytest.mark.parametrize("master", REMOTE)
@pytest.mark.parametrize(("client", "named"), [(PASSWORD, "sasl.jaas.config"), (KEY, "ssl.keystore.key")])
def test_a_remote_master_without_encryption_gets_no_credentials_and_the_settings_are_named(
    master: str, client: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_transport({"spark.master": master}, client)
    for word in (named, master, "spark.authenticate=true", "spark.network.crypto.enabled=true", "spark.ssl.rpc.enabled=true"):
        assert word in str(refused.value)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["spark.network.crypto.enabled", "spark.ssl.rpc.enabled"])
def test_encryption_without_authentication_is_not_enough(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"set spark\.authenticate=true in spark-defaults"):
        check_transport({"spark.master": "yarn", name: "true"}, PASSWORD)


def test_authentication_without_encryption_is_not_enough() -> None:
    with pytest.raises(ConfigurationError, match=r"set spark\.network\.crypto\.enabled=true or"):
        check_transport({"spark.master": "yarn", "spark.authenticate": "true"}, PASSWORD)


@pytest.mark.parametrize("name", ["spark.network.crypto.enabled", "spark.ssl.rpc.enabled"])
@pytest.mark.parametrize("client", [PASSWORD, KEY])
def test_authenticated_and_encrypted_executors_get_them(name: str, client: dict[str, str]) -> None:
    check_transport({"spark.master": "spark://host:7077", "spark.authenticate": "true", name: "TRUE"}, client)


@pytest.mark.parametrize("client", [PLAIN, TRUST])
def test_a_connection_without_credentials_runs_anywhere(client: dict[str, str]) -> None:
    for master in REMOTE:
        check_transport({"spark.master": master}, client)


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]"])
def test_a_local_master_sends_nothing_over_the_network(master: str) -> None:
    check_transport({"spark.master": master}, PASSWORD)
