"""Settings inside clients.yaml: placeholders are refused, and so are texts that YAML 1.1 would read as booleans or numbers."""

from pathlib import Path

import pytest
import yaml
from test_policy import SLAS, TIERS
from test_policy_fit import CLIENT

from kafka_audit.clients.declared import load_client_file
from kafka_audit.clients.settings import effective
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy

CONSUMER = {**CLIENT, "kind": "consumer", "group": "g", "topics": []}
REFUSED = [
    *((CLIENT, "java", "enable.idempotence", text, "write true or false") for text in ("no", "Yes", "OFF", "on", "y", "N")),
    (CONSUMER, "java", "enable.auto.commit", "on", "write true or false"),
    (CONSUMER, "kafka-python", "enable_auto_commit", "no", "write true or false"),
    (CONSUMER, "librdkafka", "auto.commit.enable", "off", "write true or false"),
    *((CLIENT, "java", "retries", text, "write digits only") for text in ("0x0", "0o7", "0b1", "-0x1", "1_000", "1_")),
    (CONSUMER, "java", "max.poll.interval.ms", "300_000", "write digits only"),
    (CLIENT, "librdkafka", "message.send.max.retries", "0X0", "write digits only"),
]


def client_file(folder: Path, client: dict[str, object], **settings: str) -> Path:
    lines = [f"    {name}: {value}" for name, value in settings.items()]
    text = "version: 1\nclients:\n" + yaml.safe_dump([client]) + "  settings:\n" + "\n".join(lines) + "\n"
    (folder / "tiers.yaml").write_text(TIERS)
    (folder / "slas.yaml").write_text(SLAS)
    (folder / "clients.yaml").write_text(text)
    return folder / "clients.yaml"


@pytest.mark.parametrize("load", [lambda path: load_policy(path.parent), load_client_file])
@pytest.mark.parametrize("case", REFUSED)
def test_words_of_yaml_1_1_are_refused_with_field_and_fix(tmp_path: Path, load, case) -> None:
    client, implementation, name, text, fix = case
    path = client_file(tmp_path, {**client, "implementation": implementation}, **{name: text})
    with pytest.raises(ConfigurationError) as problem:
        load(path)
    assert problem.value.exit_code == 2
    assert f"{path}: clients.0: settings.{name}: is the text {text!r}: {fix}" in str(problem.value)


@pytest.mark.parametrize("load", [lambda path: load_policy(path.parent), load_client_file])
def test_a_placeholder_is_refused_with_an_advice_that_helps(tmp_path: Path, load) -> None:
    path = client_file(tmp_path, CLIENT, acks="${ACKS}")
    with pytest.raises(ConfigurationError) as problem:
        load(path)
    assert str(problem.value).endswith(
        f"{path}: clients.0.settings.acks: holds ${{, which programs replace by values of their environment; "
        "remove the setting, or name a settings_file"
    )


def test_in_a_settings_file_a_placeholder_is_a_value_that_is_not_known(tmp_path: Path) -> None:
    path = client_file(tmp_path, CLIENT, acks="1")
    path.write_text(yaml.safe_dump({"version": 1, "clients": [{**CLIENT, "settings_file": "a.properties"}]}))
    (tmp_path / "a.properties").write_text("acks=${ACKS}\nenable.idempotence=no\n")
    for clients in (load_policy(tmp_path).clients, load_client_file(path).clients):
        assert effective(clients[0])["acks"].value is None
        assert effective(clients[0])["enable.idempotence"].value == "no"


def test_the_same_words_are_taken_where_they_are_text(tmp_path: Path) -> None:
    path = client_file(
        tmp_path,
        CLIENT,
        **{"transactional.id": "no", "client.id": "1_0", "linger.ms": "5", "retries": "'3'", "enable.idempotence": "'true'"},
    )
    assert load_client_file(path).clients[0].settings["retries"] == "3"
