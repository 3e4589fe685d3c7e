"""No secret of a client comes into an audit, and no message shows one: policies that hold one are refused by the setting's name."""

from pathlib import Path

import pytest
import yaml
from input_files import catalogue
from test_policy import folder
from test_policy_fit import CLIENT, changed
from typer.testing import CliRunner

from kafka_audit.audit.inputs import keep_rules
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.catalogue.load import shipped_controls
from kafka_audit.cli.main import app
from kafka_audit.clients.files import read_clients
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import Audit
from kafka_audit.submit import is_secret

CANARY = "hunter2"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{CANARY}";'
ADVICE = "no control reads it, and the policy is kept in every audit: leave it out of this file"


def policy(place: Path, text: str | None = None, name: str = "a.properties", **client: object) -> Path:
    """A policy whose client has these fields, and settings in a file if there is a text."""
    place.mkdir(exist_ok=True)
    folder(place)
    named = {} if text is None else {"settings_file": name}
    if text is not None:
        (place / name).write_text(text)
    (place / "clients.yaml").write_text(yaml.safe_dump({"version": 1, "clients": [{**CLIENT, **named, **client}]}))
    return place


def refusals(place: Path) -> list[str]:
    """What each way into an audit says; none keeps the canary."""
    found, audit = [], Audit(path=place.parent / "audit")
    audit.path.mkdir(exist_ok=True)
    read = load_policy(place)
    for refuse in (lambda: check_policy(read, catalogue()), lambda: keep_rules(audit, read, catalogue(), [shipped_controls()])):
        with pytest.raises(ConfigurationError) as refused:
            refuse()
        assert refused.value.exit_code == 2
        found.append(str(refused.value))
    for command in (["policy", "check", place], ["audit", "--root", place.parent / "root", "--policy", place, "--bootstrap", "x:1"]):
        done = CliRunner().invoke(app, [str(one) for one in command])
        assert isinstance(done.exception, ConfigurationError), done.output
        found.append(done.output + str(done.exception))
    kept = [path for path in place.parent.rglob("*") if path.is_file() and place not in path.parents]
    assert not [path for path in kept if CANARY in path.read_text()]
    assert CANARY not in "".join(found)
    return found


@pytest.fixture(autouse=True)
def _no_airflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_audit.cli.audit.run_audit_through_airflow", lambda **arguments: pytest.fail("the audit was started"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (f"acks=all\nsasl.jaas.config={JAAS}\n", "sasl.jaas.config"),
        (f"acks=all\nssl.keystore.password: {CANARY}\n", "ssl.keystore.password"),
        (f"acks=all\nssl.keystore.key=-----BEGIN PRIVATE KEY-----\\\n{CANARY}\\\n-----END PRIVATE KEY-----\n", "ssl.keystore.key"),
        (f"acks=all\nproducer.override.sasl.jaas.config={JAAS}\n", "producer.override.sasl.jaas.config"),
        (f"acks=all\nbasic.auth.user.info=u:{CANARY}\n", "basic.auth.user.info"),
        (f"acks=all\nssl.key.password={CANARY}\nssl.key.password=${{P}}\n", "ssl.key.password"),
        (f"acks=all\n# ssl.key.password = {CANARY}\n", "ssl.key.password"),
        (f"acks=all\nssl.key.password=${{P}}{CANARY}\n", "ssl.key.password"),
        (f"acks=all\nssl.key.password=${{P:-{CANARY}}}\n", "ssl.key.password"),
        (f"acks=all\nPASSWORD.OF.{'x' * 100}={CANARY}\n", "a setting whose name is not shown"),
    ],
)
def test_a_secret_in_a_settings_file_is_refused_by_file_client_and_name(tmp_path: Path, text: str, named: str) -> None:
    place = policy(tmp_path / "policy", text)
    for said in refusals(place):
        assert f"{place}/a.properties (clients.billing.settings_file): {named} holds a secret: {ADVICE}" in said


def test_a_secret_in_a_file_of_librdkafka_is_refused(tmp_path: Path) -> None:
    text = f"[producer]\nacks=all\n[other]\nssl.key.pem={CANARY}\n"
    for said in refusals(policy(tmp_path / "policy", text, "a.conf", implementation="librdkafka")):
        assert "ssl.key.pem holds a secret" in said


def test_the_default_of_springs_placeholder_is_a_secret(tmp_path: Path) -> None:
    text = f"spring.kafka.producer.acks=all\nspring.kafka.ssl.key-store-password=${{P:{CANARY}}}\n"
    for said in refusals(policy(tmp_path / "policy", text, implementation="spring-kafka")):
        assert "spring.kafka.ssl.key-store-password holds a secret" in said


def test_a_secret_in_clients_yaml_is_refused_by_client_and_name(tmp_path: Path) -> None:
    place = policy(tmp_path / "policy", settings={"acks": "all", "sasl.jaas.config": JAAS})
    for said in refusals(place):
        assert f"{place}/clients.yaml: clients.billing.settings: sasl.jaas.config holds a secret: {ADVICE}" in said


@pytest.mark.parametrize(
    "line",
    [
        "ssl.keystore.password=",
        "ssl.keystore.password=${KEYSTORE_PASSWORD}",
        "sasl.jaas.config = ${file:/run/secrets/kafka.properties:jaas} ",
        "ssl.keystore.location=/etc/kafka/keystore.jks",
        "sasl.oauthbearer.token.endpoint.url=https://login",
        "# the password: is in the vault",
    ],
)
def test_what_holds_no_secret_is_kept_as_it_is(tmp_path: Path, line: str) -> None:
    read = load_policy(policy(tmp_path / "policy", f"acks=all\n{line}\n"))
    check_policy(read, catalogue())
    audit = Audit(path=tmp_path / "audit")
    keep_rules(audit, read, catalogue(), [shipped_controls()])
    assert line in (audit.inputs / "policy" / "a.properties").read_text()


def test_files_that_are_only_checked_before_deployment_may_hold_secrets(tmp_path: Path) -> None:
    (one,) = read_clients(policy(tmp_path / "policy", f"acks=all\nsasl.jaas.config={JAAS}\n")).clients
    assert CANARY not in repr(one)


@pytest.mark.parametrize(
    "clients",
    [
        [changed(CLIENT, settings={"sasl.jaas.config": [f'x required password="{CANARY}";']})],
        [changed(CLIENT, settings={"sasl.jaas.config": {"password": CANARY}})],
        [changed(CLIENT, settings=f"sasl.password={CANARY}")],
        [changed(CLIENT, settings=[f"sasl.password={CANARY}"])],
        [changed(CLIENT, group={"sasl.password": CANARY})],
        [f"sasl.password={CANARY}"],
        f"sasl.password={CANARY}",
    ],
)
def test_a_value_of_a_client_that_is_not_valid_is_not_shown(tmp_path: Path, clients: object) -> None:
    place = policy(tmp_path)
    for text in (yaml.safe_dump({"version": 1, "clients": clients}), yaml.safe_dump(clients)):
        (place / "clients.yaml").write_text(text)
        with pytest.raises(ConfigurationError, match=r"clients\.yaml: ") as refused:
            load_policy(place)
        assert CANARY not in str(refused.value)


@pytest.mark.parametrize("value", [f"!{CANARY}", f"!<{CANARY}> x", f"*{CANARY}", f"&{CANARY} [*{CANARY}]", f"@{CANARY}", f'"{CANARY}'])
def test_a_value_that_is_not_valid_yaml_is_not_shown(tmp_path: Path, value: str) -> None:
    place = policy(tmp_path)
    (place / "clients.yaml").write_text(f"version: 1\nclients:\n- settings:\n    sasl.password: {value}\n")
    with pytest.raises(ConfigurationError, match=r"is not valid YAML: .*line 4") as refused:
        load_policy(place)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(("name", "secret"), [
    ("sasl.jaas.config", True), ("ssl_password", True), ("ssl.keystore.key", True), ("spring.kafka.ssl.key-store-key", True),
    ("sasl.oauthbearer.client.secret", True), ("ssl.keystore.certificate.chain", False), ("sasl.mechanism", False),
    ("sasl.oauthbearer.assertion.private.key.file", False), ("sasl.oauthbearer.assertion.private.key.passphrase", True), ("key.serializer", False),
])  # fmt: skip
def test_names_of_kafkas_clients_that_hold_secrets(name: str, secret: bool) -> None:
    assert is_secret(name) is secret
