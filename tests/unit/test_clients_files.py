"""Files of client settings in services: which clients they configure, and how broken files are treated."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_audit.cli.main import app
from kafka_audit.clients.declared import ClientFile
from kafka_audit.clients.files import FoundClient, Reading, read_clients
from kafka_audit.clients.settings import effective
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy


def files(folder: Path, **content: str) -> Path:
    for name, text in content.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def only(reading: Reading) -> FoundClient:
    assert len(reading.clients) == 1, reading
    return reading.clients[0]


def read(folder: Path, name: str, text: str) -> Reading:
    (folder / name).write_text(text, encoding="utf-8")
    return read_clients(folder)


PROPERTIES = r"""
# a comment
! another one
acks : 1
linger.ms 20
retries=\
    3
delivery\.timeout.ms = 18\u0030000
acks = all
"""


def test_java_properties_are_read_with_all_their_syntax(tmp_path: Path) -> None:
    client = only(read(tmp_path, "producer.properties", PROPERTIES))
    assert dict(client.settings) == {"acks": "all", "linger.ms": "20", "retries": "3", "delivery.timeout.ms": "180000"}
    assert (client.name, client.kind, client.implementation) == ("producer.properties", "producer", "java")


KINDS = {
    "a consumer": ("a.properties", "group.id=g", [("consumer", "java")]),
    "both": ("a.properties", "acks=all\ngroup.id=g", [("consumer", "java"), ("producer", "java")]),
    "librdkafka by its names": ("a.conf", "metadata.broker.list=x\nrequest.required.acks=-1", [("producer", "librdkafka")]),
    "librdkafka's consumer": ("a.conf", "group.id=g\nenable.auto.offset.store=false", [("consumer", "librdkafka")]),
    "kafka-python by its underscores": ("a.ini", "[kafka]\ngroup_id=g\nauto_offset_reset=latest", [("consumer", "kafka-python")]),
    "sections": ("a.ini", "[producer]\nlinger.ms: 5\n[consumer]\ngroup.id=g", [("consumer", "java"), ("producer", "java")]),
    "Spring": ("a.properties", "spring.kafka.producer.acks=all\nspring.kafka.properties.x=y", [("producer", "spring-kafka")]),
    "Spring, for both": ("a.properties", "spring.kafka.properties[acks]=0\nspring.kafka.client-id=x", [("producer", "spring-kafka")]),
    "a service that logs": ("a.properties", "log.dir=/var/log\nacks=0", [("producer", "java")]),
    "a connector": ("a.properties", "connector.class=C\nconsumer.override.max.poll.records=5", [("consumer", "kafka-connect")]),
    "a worker": ("a.properties", "plugin.path=p\ngroup.id=connect\nproducer.linger.ms=5", [("producer", "kafka-connect")]),
    "Kafka Streams": ("a.properties", "application.id=app\nacks=all", [("consumer", "other"), ("producer", "other")]),
    "a service's own keys": ("app.properties", "consumer.threads=4\nproducer.name=x", []),
    "a service's own key hides no client": ("app.properties", "consumer.threads=4\nacks=0", [("producer", "java")]),
    "Streams with a prefix": ("a.properties", "application.id=a\nproducer.acks=all", [("consumer", "other"), ("producer", "other")]),
    "a broker": ("server.properties", "process.roles=broker\ncompression.type=zstd", []),
    "another program": ("log4j2.properties", "rootLogger.level=INFO", []),
}


@pytest.mark.parametrize("case", KINDS)
def test_what_a_file_configures_is_told_by_its_settings(case: str, tmp_path: Path) -> None:
    name, text, expected = KINDS[case]
    reading = read(tmp_path, name, text)
    assert sorted((client.kind, client.implementation) for client in reading.clients) == expected
    assert len(reading.without) == (not expected)


def test_springs_own_words_become_kafkas(tmp_path: Path) -> None:
    text = "\n".join(
        f"spring.kafka.consumer.{line}"
        for line in (
            "auto-offset-reset=earliest",
            "isolation-level=READ_COMMITTED",
            "heartbeat-interval=3s",
            "properties.group.protocol=classic",
        )
    )
    found = effective(only(read(tmp_path, "application.properties", text)))
    names = ("auto.offset.reset", "isolation.level", "heartbeat.interval.ms", "group.protocol")
    assert [found[name].value for name in names] == ["earliest", "read_committed", "3000", "classic"]
    assert {found[name].source for name in names} == {"declared"}


def test_spring_reads_names_in_any_form(tmp_path: Path) -> None:
    text = "spring.kafka.consumer.enableAutoCommit=true\nspring.kafka.consumer.auto_offset_reset=none\nspring.kafka.consumer.properties[isolation.level]=x"
    client = only(read(tmp_path, "application.properties", text))
    assert dict(client.settings) == {"enable.auto.commit": "true", "auto.offset.reset": "none", "isolation.level": "x"}


def test_settings_with_and_without_a_prefix_count_together(tmp_path: Path) -> None:
    client = only(read(tmp_path, "p.properties", "acks=0\nlinger.ms=1\nproducer.linger.ms=2"))
    assert (client.settings["acks"], client.settings["linger.ms"]) == ("0", "2")


def test_the_longer_prefix_wins(tmp_path: Path) -> None:
    client = only(read(tmp_path, "c.properties", "connector.class=C\nproducer.override.acks=all\nproducer.acks=1"))
    assert client.settings["acks"] == "all"


def test_values_that_no_control_reads_are_not_kept(tmp_path: Path) -> None:
    client = only(read(tmp_path, "p.properties", "acks=all\nsasl.jaas.config=user password\nmy.token=abc"))
    assert set(client.settings.values()) == {"all", "(not kept)"}


def test_kind_and_implementation_can_be_named(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("bootstrap.servers=x")
    assert read_clients(tmp_path).clients == ()
    client = only(read_clients(tmp_path / "x.conf", kind="producer", implementation="librdkafka"))
    assert (client.kind, client.implementation) == ("producer", "librdkafka")


def test_a_folder_is_read_to_the_bottom_without_build_output(tmp_path: Path) -> None:
    files(tmp_path, a__b__p_dot_properties="acks=1", target__p_dot_properties="acks=1", _dot_git__p_dot_properties="acks=1")
    assert only(read_clients(tmp_path)).name == "a/b/p.properties"


DECLARED = """
version: 1
clients:
  - {name: shop, kind: producer, implementation: java, owner: shop team, declared_on: 2026-11-01, source: repo, topics: [orders],
     settings_file: shop.properties}
"""


def test_a_declared_client_can_keep_its_settings_in_its_own_file(tmp_path: Path) -> None:
    files(tmp_path, clients_dot_yaml=DECLARED, shop_dot_properties="acks=1")
    client = only(read_clients(tmp_path))
    assert (client.name, client.settings["acks"]) == ("clients.yaml: shop", "1")
    assert client.declaration is not None
    assert client.declaration.owner == "shop team"


def test_the_policys_sha256_changes_with_a_settings_file(tmp_path: Path) -> None:
    shipped = load_policy().folder
    files(
        tmp_path,
        clients_dot_yaml=DECLARED,
        shop_dot_properties="acks=1",
        tiers_dot_yaml=(shipped / "tiers.yaml").read_text(),
        slas_dot_yaml=(shipped / "slas.yaml").read_text(),
    )
    before = load_policy(tmp_path)
    assert before.clients[0].settings == {"acks": "1"}
    files(tmp_path, shop_dot_properties="acks=all")
    assert load_policy(tmp_path).sha256 != before.sha256


BROKEN = {
    "a bad escape": ("p.properties", "acks=all\nx=\\u12", "p.properties line"),
    "half a character": ("p.properties", "acks=\\ud800", "half a character"),
    "a binary file": ("p.properties", "acks\0", "binary"),
    "a missing settings file": ("clients.yaml", DECLARED, "shop.properties: cannot be read"),
    "a broken declaration": ("clients.yaml", "version: 1\nclients: [{name: x}]", "clients.0.kind: is missing"),
    "settings twice": ("clients.yaml", DECLARED.replace("settings_file", "settings: {acks: all}, settings_file"), "exclude each other"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_named_and_nothing_is_left_out_in_silence(case: str, tmp_path: Path) -> None:
    name, text, message = BROKEN[case]
    files(tmp_path, good_dot_properties="acks=all")
    with pytest.raises(ConfigurationError, match=message) as caught:
        read(tmp_path, name, text)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("harm", [lambda file: file.symlink_to("nowhere"), os.mkfifo], ids=["a link to nothing", "a pipe"])
def test_a_file_that_cannot_be_read_is_not_passed_over(harm: Callable[[Path], object], tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text("acks=all\n")
    harm(tmp_path / "b.properties")
    with pytest.raises(ConfigurationError, match=r"b\.properties: "):
        read_clients(tmp_path)


def test_another_programs_conf_is_listed_in_a_folder_and_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text("server {\n")
    assert read_clients(tmp_path).without == ("nginx.conf: is no file of key=value lines",)
    with pytest.raises(ConfigurationError, match=r"nginx\.conf line 1: write key=value"):
        read_clients(tmp_path / "nginx.conf")


def test_a_refused_line_is_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "x.conf").write_text("password secret\n")
    with pytest.raises(ConfigurationError) as caught:
        read_clients(tmp_path / "x.conf")
    assert "secret" not in str(caught.value)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        read_clients(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("option", "choices"), [("--kind", ("producer", "consumer")), ("--implementation", ("java", "spring-kafka", "librdkafka", "other"))]
)
def test_an_unknown_kind_or_implementation_is_refused_by_the_command_itself(tmp_path: Path, option: str, choices: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["check-clients", str(tmp_path), option, "foo"], env={"COLUMNS": "200"})
    assert done.exit_code == 2
    assert "check-clients" in done.output
    assert "'foo' is not one of" in done.output
    assert all(f"'{choice}'" in done.output for choice in choices)


def test_the_shipped_file_declares_nobody() -> None:
    assert load_policy().clients == ClientFile(version=1).clients
