"""Connection keys are translated, or refused with a message that says what to write instead."""

import json

import pytest

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.connection_file import read_keys
from kafka_audit.errors import ConfigurationError

AIRFLOW_EXTRA = {
    "bootstrap.servers": "b1:9093,b2:9093",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanisms": "SCRAM-SHA-512",
    "sasl.username": "audit",
    "sasl.password": "p=ss word",
}


def refusal(keys):
    with pytest.raises(ConfigurationError) as caught:
        ConnectionSettings.from_mapping(keys)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_keys_of_an_airflow_kafka_connection_become_arguments_of_kafka_python():
    arguments = ConnectionSettings.from_mapping(AIRFLOW_EXTRA).client_arguments()

    assert arguments["bootstrap_servers"] == ["b1:9093", "b2:9093"]
    assert arguments["security_protocol"] == "SASL_PLAINTEXT"
    assert arguments["sasl_mechanism"] == "SCRAM-SHA-512"
    assert arguments["sasl_plain_username"] == "audit"
    assert arguments["sasl_plain_password"] == "p=ss word"


def test_every_mapped_key_is_an_argument_that_kafka_python_knows():
    from kafka.net.manager import KafkaConnectionManager

    from kafka_audit.cluster.connection_keys import SUPPORTED

    renamed = {"sasl_username": "sasl_plain_username", "sasl_password": "sasl_plain_password"}
    targets = {renamed.get(argument, argument) for argument, _ in SUPPORTED.values()} - {"verification"}

    assert targets <= set(KafkaConnectionManager.DEFAULT_CONFIG)


def test_tls_keys_are_mapped_and_host_name_checking_can_be_switched_off(tmp_path):
    ca = tmp_path / "ca.pem"
    ca.write_text("x")
    settings = ConnectionSettings.from_mapping(
        {
            "bootstrap.servers": "b:9093",
            "security.protocol": "ssl",
            "ssl.ca.location": str(ca),
            "ssl.key.password": "k",
            "ssl.endpoint.identification.algorithm": "none",
            "enable.ssl.certificate.verification": "true",
        }
    )

    arguments = settings.client_arguments()
    assert arguments["ssl_cafile"] == str(ca)
    assert arguments["ssl_check_hostname"] is False
    assert arguments["ssl_password"] == "k"
    assert "verification" not in arguments


def test_all_wrong_keys_are_named_at_once_with_what_to_write_instead():
    message = refusal(
        {
            "bootstrap.servers": "b:9092",
            "bootstrap.serverz": "b:9092",
            "ssl.truststore.location": "/t.jks",
            "ssl.ca.pem": "-----BEGIN",
            "sasl.oauthbearer.config": "x",
            "sasl.jaas.config": 'username="u" password="geheim"',
            "oauth_cb": lambda: None,
        }
    )

    for expected in ("bootstrap.serverz", "ssl.ca.location", "sasl.oauthbearer.config", "sasl.username", "oauth_cb: a callable is refused"):
        assert expected in message
    assert "geheim" not in message


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"bootstrap.servers": ""}, "bootstrap.servers"),
        ({"bootstrap.servers": "PLAINTEXT://b:9092"}, "security.protocol"),
        ({"bootstrap.servers": "b:notaport"}, "'b:notaport' is not host:port; write broker1:9092 (without a port: 9092)"),
        ({"security.protocol": "TLS"}, "TLS is not one of PLAINTEXT"),
        ({"sasl.mechanisms": "OAUTHBEARER"}, "OAUTHBEARER is not supported"),
        ({"sasl.password": None}, "sasl.password"),
        ({"security.protocol": "PLAINTEXT"}, "sasl.* keys would not be used"),
        ({"socket.timeout.ms": "soon"}, "'soon' is not a whole number"),
        ({"enable.ssl.certificate.verification": "false"}, "certificate verification is not supported"),
        ({"ssl.ca.location": "/nowhere/ca.pem", "security.protocol": "SASL_SSL"}, "there is no file /nowhere/ca.pem"),
        ({"ssl.ca.location": "/nowhere/ca.pem"}, "ssl.ca.location would not be used"),
        ({"debug": ["all"]}, "holds a list"),
        ({"sasl.mechanism": "PLAIN"}, "given twice"),
    ],
)
def test_a_value_that_cannot_work_is_refused_before_anything_connects(change, expected):
    message = refusal({**AIRFLOW_EXTRA, **change})

    assert expected in message
    assert "p=ss word" not in message


def test_bootstrap_servers_are_required():
    assert "bootstrap.servers: is required" in refusal({"client.id": "x"})


def test_consumer_keys_in_a_shared_connection_are_accepted_and_have_no_effect():
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": "b", "group.id": "g", "auto.offset.reset": "earliest"})

    assert settings.bootstrap_servers == ("b:9092",)
    assert settings == ConnectionSettings.from_mapping({"bootstrap.servers": "b"})


def test_passwords_are_not_in_the_text_form_of_settings():
    settings = ConnectionSettings.from_mapping(AIRFLOW_EXTRA)

    assert "p=ss word" not in f"{settings!r} {settings} {settings.identity}"
    assert settings.identity == "SCRAM-SHA-512 user 'audit'"


def test_the_three_file_formats_give_the_same_settings(tmp_path):
    lines = "\n".join(f"{key}={value}" for key, value in AIRFLOW_EXTRA.items())
    (tmp_path / "c.properties").write_text(f"# audit account\n\n{lines}\n")
    (tmp_path / "c.json").write_text(json.dumps(AIRFLOW_EXTRA))
    (tmp_path / "c.yaml").write_text("\n".join(f"{key}: {json.dumps(value)}" for key, value in AIRFLOW_EXTRA.items()))

    read = [ConnectionSettings.from_mapping(read_keys(tmp_path / name)) for name in ("c.properties", "c.json", "c.yaml")]

    assert read == [ConnectionSettings.from_mapping(AIRFLOW_EXTRA)] * 3


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("c.properties", "bootstrap.servers=b:9092\nsasl.password geheim", "line 2: write key=value"),
        ("c.properties", "client.id=a\nclient.id=b", "client.id is given a second time"),
        ("c.json", '{"sasl.password": "geheim"', "is not valid JSON"),
        ("c.json", "[1]", "holds list"),
        ("c.yaml", 'sasl.password: "geheim\n', "is not valid YAML"),
        ("c.txt", "bootstrap.servers=b", "told by its ending"),
        ("c.properties", "bootstrap.servers=b\nssl.keystore.location=/k.jks", "ssl.certificate.location"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_no_secret_is_repeated(tmp_path, name, text, expected):
    path = tmp_path / name
    path.write_text(text)

    with pytest.raises(ConfigurationError) as caught:
        ConnectionSettings.from_mapping(read_keys(path), where=str(path))

    assert expected in str(caught.value)
    assert str(path) in str(caught.value)
    assert "geheim" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none\.properties: cannot be read"):
        ConnectionSettings.from_mapping(read_keys(tmp_path / "none.properties"))
