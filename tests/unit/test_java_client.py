"""A connection in the words of Kafka's Java client."""

from pathlib import Path

import pytest

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.java_client import java_client
from kafka_audit.errors import ConfigurationError


def keys(**given: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in given.items()}
    return java_client(ConnectionSettings.from_mapping({"bootstrap.servers": "a:9092,b:9093", **named}))


def test_a_plain_connection_has_its_addresses() -> None:
    found = keys()
    assert (found["bootstrap.servers"], found["security.protocol"]) == ("a:9092,b:9093", "PLAINTEXT")
    assert not [name for name in found if name.startswith(("sasl", "ssl"))]


def test_a_password_cannot_end_its_jaas_entry() -> None:
    found = keys(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512", sasl_username="auditor", sasl_password='a"; \\x')
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert found["sasl.jaas.config"] == f'{module} required username="auditor" password="a\\"; \\\\x";'


def test_certificates_are_given_as_pem(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"PEM of {name}")
    places = {f"ssl_{name}_location": str(tmp_path / name) for name in ("ca", "certificate", "key")}
    found = keys(security_protocol="SSL", **places, ssl_key_password="secret", ssl_endpoint_identification_algorithm="none")
    assert (found["ssl.truststore.type"], found["ssl.truststore.location"]) == ("PEM", str(tmp_path / "ca"))
    assert (found["ssl.keystore.certificate.chain"], found["ssl.keystore.key"]) == ("PEM of certificate", "PEM of key")
    assert (found["ssl.key.password"], found["ssl.endpoint.identification.algorithm"]) == ("secret", "")


def test_what_java_has_no_word_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crl").write_text("x")
    with pytest.raises(ConfigurationError, match="revocation lists"):
        keys(security_protocol="SSL", ssl_crl_location=str(tmp_path / "crl"))
