"""Jars are fetched once, from Maven Central alone; what cannot be fetched is named."""

import importlib.metadata
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.sandbox import jars
from kafka_audit.sandbox.cache import cache_directory

FETCHES = """#!/bin/sh
echo run >> "$(dirname "$0")/runs"
while [ $# -gt 0 ]; do [ "$1" = -retrieve ] && pattern=$2; shift; done
target=$(dirname "$pattern")
echo "downloading https://central.example/x/kafka_2.13-4.3.1.jar ..."
for name in kafka_2.13-4.3.1 slf4j-api-2.0.17; do echo jar > "$target/$name.jar"; done
"""
FAILS = """#!/bin/sh
echo "		::          UNRESOLVED DEPENDENCIES         ::"
echo "		:: org.apache.kafka#kafka_2.13;4.3.1: not found"
echo "		::              FAILED DOWNLOADS            ::"
echo "		:: org.apache.kafka#kafka-tools;4.3.1!kafka-tools.jar"
exit 1
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KAFKA_AUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    return tmp_path / "cache"


def pretend_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(script, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    return program.with_name("runs")


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KAFKA_AUDIT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_directory() == tmp_path / ".cache" / "kafka-audit"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "kafka-audit"
    monkeypatch.setenv("KAFKA_AUDIT_CACHE", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


def test_a_second_run_fetches_nothing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pretend_java(tmp_path, monkeypatch, FETCHES)
    told: list[str] = []
    first = jars.resolve("broker", told.append)
    assert jars.resolve("broker", told.append) == first
    assert [jar.name for jar in first] == ["kafka_2.13-4.3.1.jar", "slf4j-api-2.0.17.jar"]
    assert runs.read_text(encoding="utf-8") == "run\n"
    assert "  kafka_2.13-4.3.1.jar" in told
    assert jars.broker_classpath(told.append) == f"{first[0].parent}/*"


def test_a_damaged_cache_is_fetched_again(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pretend_java(tmp_path, monkeypatch, FETCHES)
    jars.resolve("broker", lambda _: None)[0].write_text("", encoding="utf-8")
    assert jars.resolve("broker", lambda _: None)[0].read_text(encoding="utf-8") == "jar\n"
    assert runs.read_text(encoding="utf-8") == "run\nrun\n"


def test_spark_gets_only_the_jars_it_lacks(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_java(tmp_path, monkeypatch, FETCHES)
    assert [jar.name for jar in jars.spark_connector_jars(lambda _: None)] == ["kafka_2.13-4.3.1.jar"]


def test_what_could_not_be_fetched_is_named_and_leaves_nothing_behind(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_java(tmp_path, monkeypatch, FAILS)
    with pytest.raises(CollectionError) as caught:
        jars.resolve("broker", lambda _: None)
    message = str(caught.value)
    assert "org.apache.kafka:kafka_2.13:4.3.1\n  org.apache.kafka:kafka-tools:4.3.1\n" in message
    assert "KAFKA_HOME" in message
    assert [path.suffix for path in (cache / "jars").iterdir()] == [".lock"]


def test_another_kafka_is_used_where_kafka_home_is_set(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"holds no kafka_\*\.jar"):
        jars.broker_classpath(lambda _: None)
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.1.0.jar").touch()
    assert jars.broker_classpath(lambda _: None) == f"{tmp_path}/libs/*"


def test_a_missing_java_is_an_error_that_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="install Java 17 or newer"):
        jars.java()


def test_the_connector_has_the_version_of_pyspark() -> None:
    revisions = {entry.get("name"): entry.get("rev") for entry in ElementTree.parse(jars.IVY_FILE).iter("dependency")}
    assert revisions["spark-sql-kafka-0-10_2.13"] == importlib.metadata.version("pyspark")
    assert revisions["kafka_2.13"] == revisions["kafka-tools"]


def test_jars_come_from_maven_central_alone() -> None:
    roots = [entry.get("root") for entry in ElementTree.parse(jars.IVY_SETTINGS).iter("ibiblio")]
    assert roots == [None], "no root: Ivy then asks Maven Central itself"
