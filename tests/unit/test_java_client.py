"""A connection translated to the settings of Kafka's Java client."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.java_client import java_client, java_keys
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


KEY = ec.generate_private_key(ec.SECP256R1())


def pem(form: PrivateFormat, password: bytes | None = None) -> str:
    return KEY.private_bytes(Encoding.PEM, form, BestAvailableEncryption(password) if password else NoEncryption()).decode()


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("password", [None, "secret"])
def test_certificates_are_given_as_pem_and_the_key_in_the_form_that_every_java_reads(
    tmp_path: Path, form: PrivateFormat, password: str | None
) -> None:
    texts = {"ca": "PEM of the authority", "certificate": "PEM of the certificate", "key": pem(form, password and password.encode())}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    given = {f"ssl_{name}_location": str(tmp_path / name) for name in texts} | ({"ssl_key_password": password} if password else {})
    found = keys(security_protocol="SSL", **given, ssl_endpoint_identification_algorithm="none")
    assert (found["ssl.truststore.type"], found["ssl.truststore.certificates"]) == ("PEM", texts["ca"])
    assert (found["ssl.keystore.certificate.chain"], found["ssl.keystore.key"]) == (texts["certificate"], pem(PrivateFormat.PKCS8))
    assert (found["ssl.keystore.type"], found["ssl.endpoint.identification.algorithm"]) == ("PEM", "")


def test_a_key_may_stand_behind_its_certificate(tmp_path: Path) -> None:
    (tmp_path / "both").write_text(f"-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n{pem(PrivateFormat.TraditionalOpenSSL)}")
    found = keys(security_protocol="SSL", ssl_certificate_location=str(tmp_path / "both"))
    assert found["ssl.keystore.key"] == pem(PrivateFormat.PKCS8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "holds no private key in PEM; name its file in ssl.key.location"),
        (pem(PrivateFormat.PKCS8, b"another"), "check the file and ssl.key.password"),
    ],
)
def test_a_key_that_cannot_be_read_is_refused_without_its_password(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "certificate").write_text("x")
    (tmp_path / "key").write_text(text)
    places = {f"ssl_{name}_location": str(tmp_path / name) for name in ("certificate", "key")}
    with pytest.raises(ConfigurationError, match=message) as refused:
        keys(security_protocol="SSL", **places, ssl_key_password="hunter2")
    assert "hunter2" not in str(refused.value)


def test_names_that_both_clients_know_are_handed_on() -> None:
    found = keys(client_id="auditor", reconnect_backoff_ms="7", client_dns_lookup="use_all_dns_ips", socket_timeout_ms="9000")
    assert {name: found[name] for name in ("client.id", "reconnect.backoff.ms", "client.dns.lookup", "request.timeout.ms")} == {
        "client.id": "auditor",
        "reconnect.backoff.ms": "7",
        "client.dns.lookup": "use_all_dns_ips",
        "request.timeout.ms": "9000",
    }


def test_what_java_has_no_word_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "crl").write_text("x")
    with pytest.raises(ConfigurationError, match="revocation lists"):
        keys(security_protocol="SSL", ssl_crl_location=str(tmp_path / "crl"))


def test_a_connection_file_is_translated_and_the_keys_of_the_java_client_are_taken_as_they_are() -> None:
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    given = java_keys({"metadata.broker.list": "old:1", "group.id": "g", **login}, "a:9092", where="audit.properties")
    assert given == keys(**{name.replace(".", "_"): value for name, value in login.items()}) | {"bootstrap.servers": "a:9092"}
    java = {"sasl.jaas.config": "x required;", "bootstrap.servers": "old:1", "request.timeout.ms": 1000}
    assert java_keys(java, "a:9092", where="java.properties") == {**java, "bootstrap.servers": "a:9092", "request.timeout.ms": "1000"}


def test_a_file_with_names_of_both_clients_is_refused_by_its_name_and_key() -> None:
    both = {"sasl.username": "u", "sasl.password": "p", "sasl.jaas.config": "x required;"}
    with pytest.raises(ConfigurationError, match=r"(?s)audit\.properties cannot be used:.*sasl\.jaas\.config: is a Java key"):
        java_keys(both, "a:9092", where="audit.properties")
