"""Jars are fetched once, only from Maven Central, and used only with the recorded sha256; errors name the jars that cannot be fetched."""

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.jars import fetch, jar_list
from kafka_audit.jars.fetch import cache_directory
from kafka_audit.jars.jar_list import ListedJar, listed_jars

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
RECORDED = {"kafka_2.13-4.3.1.jar": b"jar\n", "slf4j-api-2.0.17.jar": b"jar\n"}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a list of the two jars that FETCHES gives."""
    recorded = tmp_path / "jars.sha256"
    recorded.write_text(
        "".join(
            f"{hashlib.sha256(data).hexdigest()}  {configuration}/org/name/1/{name}\n"
            for configuration in ("broker-3.9", "broker-4.4", "broker", "spark")
            for name, data in RECORDED.items()
        ),
        encoding="utf-8",
    )
    monkeypatch.setattr(jar_list, "LIST_FILE", recorded)
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
    first = fetch.resolve("broker", told.append)
    assert fetch.resolve("broker", told.append) == first
    assert [jar.name for jar in first] == ["kafka_2.13-4.3.1.jar", "slf4j-api-2.0.17.jar"]
    assert runs.read_text(encoding="utf-8") == "run\n"
    assert "  kafka_2.13-4.3.1.jar" in told
    assert fetch.broker_classpath(told.append) == f"{first[0].parent}/*"


def test_a_damaged_cache_is_fetched_again(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pretend_java(tmp_path, monkeypatch, FETCHES)
    fetch.resolve("broker", lambda _: None)[0].write_text("", encoding="utf-8")
    assert fetch.resolve("broker", lambda _: None)[0].read_text(encoding="utf-8") == "jar\n"
    assert runs.read_text(encoding="utf-8") == "run\nrun\n"


def test_a_jar_of_the_same_size_and_time_but_other_bytes_is_never_used(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = pretend_java(tmp_path, monkeypatch, FETCHES)
    told: list[str] = []
    jar = fetch.resolve("broker", told.append)[0]
    before = jar.stat()
    jar.write_text("JAR\n", encoding="utf-8")
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert fetch.broker_classpath(told.append) == f"{jar.parent}/*"
    assert jar.read_text(encoding="utf-8") == "jar\n"
    assert runs.read_text(encoding="utf-8") == "run\nrun\n"
    assert [line for line in told if "kafka_2.13-4.3.1.jar: sha256 is" in line]


def test_a_jar_laid_beside_the_recorded_ones_is_removed_before_java_loads_the_folder(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_java(tmp_path, monkeypatch, FETCHES)
    folder = fetch.resolve("broker", lambda _: None)[0].parent
    (folder / "a-0.1.JAR").write_bytes(b"first on the class path")
    told: list[str] = []
    fetch.broker_classpath(told.append)
    assert not (folder / "a-0.1.JAR").exists()
    assert "a-0.1.JAR: not on the list" in told[0]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (FETCHES.replace("echo jar", "echo changed"), r"slf4j-api-2.0.17.jar: sha256 is \w{64}, \w{64} was recorded"),
        (FETCHES.replace(" slf4j-api-2.0.17", " slf4j-api-2.0.18"), "slf4j-api-2.0.18.jar: not on the list"),
        (FETCHES.replace(" slf4j-api-2.0.17", ""), "slf4j-api-2.0.17.jar: missing"),
    ],
    ids=["other bytes", "another jar", "a jar less"],
)
def test_a_download_that_is_not_the_recorded_one_is_refused_by_name_and_not_kept(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, named: str
) -> None:
    pretend_java(tmp_path, monkeypatch, given)
    with pytest.raises(IntegrityError, match=named) as caught:
        fetch.spark_connector_jars(lambda _: None)
    assert caught.value.exit_code == 5
    assert "make lock-jars" in str(caught.value)
    assert [path.suffix for path in (cache / "jars").iterdir()] == [".lock"]


def test_make_jars_ends_with_the_error_and_its_code_instead_of_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    pretend_java(tmp_path, monkeypatch, FETCHES)
    found = subprocess.run([sys.executable, "-m", "kafka_audit.jars"], capture_output=True, text=True, check=False)
    assert found.returncode == 5
    assert found.stderr.startswith("The broker jars that were fetched differ from those recorded in jars.sha256:\n  HdrHistogram-")
    assert "kafka_2.13-4.3.1.jar: sha256 is " in found.stderr, "the shipped list, not the tests' own"
    assert "Traceback" not in found.stderr


def test_a_jar_is_hashed_once_as_long_as_nobody_writes_it(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_java(tmp_path, monkeypatch, FETCHES)
    fetch.resolve("broker", lambda _: None)  # hashed where it was fetched to
    fetch.resolve("broker", lambda _: None)  # and where it lies now
    hashed: list[str] = []
    monkeypatch.setattr(jar_list, "sha256_of", lambda path: hashed.append(path.name))
    again = fetch.resolve("broker", lambda _: None)
    assert hashed == []
    (again[0].parent / "a-0.1.jar").touch()
    assert jar_list.differences(again[0].parent, {"a-0.1.jar": "x"})[0].startswith("a-0.1.jar: sha256 is None")
    assert hashed == ["a-0.1.jar"]


def test_recording_writes_what_was_fetched_with_its_coordinates(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ivy fills in the pattern; the stand-in writes where it would.
    folder = "$(dirname \"$pattern\" | sed 's/.organisation./org.slf4j/; s/.module./slf4j-api/; s/.revision./2.0.17/')"
    script = FETCHES.replace('target=$(dirname "$pattern")', f'target={folder}; mkdir -p "$target"').replace("kafka_2.13-4.3.1 ", "")
    pretend_java(tmp_path, monkeypatch, script)
    assert fetch.record(lambda _: None, tmp_path / "new.sha256") == 4
    assert [(jar.configuration, jar.organisation, jar.module, jar.version, jar.file) for jar in listed_jars(tmp_path / "new.sha256")] == [
        (configuration, "org.slf4j", "slf4j-api", "2.0.17", "slf4j-api-2.0.17.jar")
        for configuration in ("broker-3.9", "broker-4.4", "broker", "spark")
    ]
    assert not cache.exists(), "neither Ivy's cache nor the jars' is asked"


def test_a_line_that_is_not_a_hash_and_a_place_is_named(tmp_path: Path) -> None:
    (tmp_path / "jars.sha256").write_text("abc  broker/a.jar\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"jars.sha256, line 1: is not a sha256"):
        listed_jars(tmp_path / "jars.sha256")


def shipped() -> tuple[ListedJar, ...]:
    return listed_jars(fetch.IVY_FILE.with_name("jars.sha256"))


def test_the_shipped_list_has_the_versions_that_ivy_is_asked_for() -> None:
    listed = {(jar.configuration, jar.organisation, jar.module): jar.version for jar in shipped()}
    for entry in ElementTree.parse(fetch.IVY_FILE).iter("dependency"):
        configuration = entry.get("conf", "").partition("->")[0]
        assert listed[configuration, entry.get("org"), entry.get("name")] == entry.get("rev")
    assert listed["broker", "org.apache.kafka", "kafka-clients"] == listed["broker", "org.apache.kafka", "kafka_2.13"]
    assert [jar for jar in shipped() if jar.file != f"{jar.module}-{jar.version}.jar"] == []


def test_the_jar_that_only_a_test_needs_is_of_the_brokers_release_and_not_on_the_shipped_list() -> None:
    (jar,) = listed_jars(Path(__file__).parents[1] / "integration" / "tiered_storage.sha256")
    (asked,) = ElementTree.parse(Path(__file__).parents[1] / "integration" / "tiered_storage.xml").iter("dependency")
    brokers = {one.module: one.version for one in shipped() if one.configuration == "broker"}
    assert (jar.version, asked.get("rev")) == (brokers["kafka-storage"], brokers["kafka-storage"])
    assert jar.sha256 not in {one.sha256 for one in shipped()}


def test_the_shipped_list_agrees_with_the_jars_of_pyspark_which_came_by_another_way() -> None:
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "jars"
    both = [jar for jar in shipped() if (folder / jar.file).exists()]
    assert len(both) >= 5
    for jar in both:
        assert hashlib.sha256((folder / jar.file).read_bytes()).hexdigest() == jar.sha256, jar.file


def test_spark_gets_only_the_jars_it_lacks(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_java(tmp_path, monkeypatch, FETCHES)
    assert [jar.name for jar in fetch.spark_connector_jars(lambda _: None)] == ["kafka_2.13-4.3.1.jar"]


def test_what_could_not_be_fetched_is_named_and_leaves_nothing_behind(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_java(tmp_path, monkeypatch, FAILS)
    with pytest.raises(CollectionError) as caught:
        fetch.resolve("broker", lambda _: None)
    message = str(caught.value)
    assert "org.apache.kafka:kafka_2.13:4.3.1\n  org.apache.kafka:kafka-tools:4.3.1\n" in message
    assert "KAFKA_HOME" in message
    assert [path.suffix for path in (cache / "jars").iterdir()] == [".lock"]


def test_another_kafka_is_used_where_kafka_home_is_set(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"holds no kafka_\*\.jar"):
        fetch.broker_classpath(lambda _: None)
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / "kafka_2.13-4.1.0.jar").touch()
    assert fetch.broker_classpath(lambda _: None) == f"{tmp_path}/libs/*"


def test_a_missing_java_is_an_error_that_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match="install Java 17 or newer"):
        fetch.java()


def test_the_connector_has_the_version_of_pyspark() -> None:
    entries = list(ElementTree.parse(fetch.IVY_FILE).iter("dependency"))
    revisions = {(entry.get("name"), entry.get("conf", "").partition("->")[0]): entry.get("rev") for entry in entries}
    assert revisions["spark-sql-kafka-0-10_2.13", "spark"] == importlib.metadata.version("pyspark")
    assert revisions["kafka_2.13", "broker"] == revisions["kafka-tools", "broker"]
    for release, configuration in fetch.RELEASES.items():
        assert str(revisions["kafka_2.13", configuration]).startswith(f"{release}.")


def test_an_unknown_release_of_the_sandboxs_brokers_is_refused_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.setenv("KAFKA_AUDIT_SANDBOX_KAFKA", "2.8")
    with pytest.raises(ConfigurationError, match=r"KAFKA_AUDIT_SANDBOX_KAFKA is '2.8': write one of 3.9, 4.3, 4.4, or set KAFKA_HOME"):
        fetch.broker_classpath(lambda _: None)


def test_jars_come_from_maven_central_alone() -> None:
    roots = [entry.get("root") for entry in ElementTree.parse(fetch.IVY_SETTINGS).iter("ibiblio")]
    assert roots == [None], "no root: Ivy then asks Maven Central itself"
