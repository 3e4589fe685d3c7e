"""`make sbom` writes a valid CycloneDX document with everything in the lock files and the list of jars."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from kafka_audit import __version__
from kafka_audit.jars.jar_list import LIST_FILE, listed_jars

ROOT = Path(__file__).parents[2]


# Without the grammars of internationalised addresses (conftest.py).
WRITE = "import runpy, sys; sys.modules['rfc3987_syntax'] = None; sys.argv.pop(0); runpy.run_path(sys.argv[0], run_name='__main__')"


def write_sbom(target: Path) -> str:
    subprocess.run([sys.executable, "-c", WRITE, str(ROOT / ".ci" / "sbom.py"), str(target)], check=True, capture_output=True)
    return target.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_sbom(tmp_path_factory.mktemp("sbom") / "build" / "sbom.cdx.json")


@pytest.fixture(scope="module")
def components(text: str) -> dict[str, dict]:
    """Components by package URL; the names of Python packages as the lock writes them."""
    found = {}
    for component in json.loads(text)["components"]:
        name, _, version = component.get("purl", "").partition("@")
        found[(re.sub(r"[._]", "-", name) if name.startswith("pkg:pypi/") else name) + "@" + version] = component
    return found


def locked() -> dict[str, tuple[str, set[str]]]:
    """Package -> version and hashes, of those that the lock pins to one version for every Python."""
    found: dict[str, tuple[str, set[str]]] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        if " ; " not in line:
            name, version = line.split()[0].split("==")
            found[name] = (version, set(re.findall(r"sha256:(\w{64})", line)))
    return found


def test_it_is_valid_by_the_schema_of_cyclonedx(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    monkeypatch.delitem(Draft7Validator.FORMAT_CHECKER.checkers, "iri-reference", raising=False)  # 17 s for 900 addresses
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    assert validator.validate_str(text) is None
    wrong = json.loads(text)
    wrong["components"][0]["hashes"] = [{"alg": "SHA-256", "content": "short"}]
    assert validator.validate_str(json.dumps(wrong)) is not None


def test_every_locked_package_is_in_it_with_its_version_and_hashes(components: dict[str, dict]) -> None:
    lock = locked()
    for name in ("pyspark", "apache-airflow", "kafka-python", "great-expectations"):
        assert f"pkg:pypi/{name}@{lock[name][0]}" in components
    for name, (version, hashes) in lock.items():
        package = components[f"pkg:pypi/{name}@{version}"]
        files = [reference for reference in package["externalReferences"] if reference["type"] == "distribution" and "hashes" in reference]
        assert {entry["content"] for reference in files for entry in reference["hashes"]} == hashes, name


def test_every_jar_is_in_it_with_its_version_and_hash(components: dict[str, dict]) -> None:
    listed = listed_jars(LIST_FILE)
    for jar in listed:
        component = components[f"pkg:maven/{jar.organisation}/{jar.module}@{jar.version}"]
        assert [entry["content"] for entry in component["hashes"]] == [jar.sha256], jar.file
        assert jar.configuration in [entry["value"] for entry in component["properties"]]
    clients = {jar.version for jar in listed if jar.module == "kafka-clients"}
    assert {purl.partition("@")[2] for purl in components if purl.startswith("pkg:maven/org.apache.kafka/kafka-clients@")} == clients
    assert len(clients) == 4, "those of three releases of brokers and the Spark connector's"


def test_it_names_the_product_and_what_it_depends_on(text: str) -> None:
    document = json.loads(text)
    product = document["metadata"]["component"]
    assert (product["name"], product["version"]) == ("kafka-audit", __version__)
    direct = next(entry["dependsOn"] for entry in document["dependencies"] if entry["ref"] == product["bom-ref"])
    assert {"pyspark", "pydantic"} <= {reference.split("==")[0] for reference in direct}
    references = {component["bom-ref"] for component in document["components"]}
    assert {reference for entry in document["dependencies"] for reference in entry.get("dependsOn", [])} <= references


def test_the_same_installation_gives_the_same_bytes_and_no_folder_of_the_machine(text: str, tmp_path: Path) -> None:
    assert write_sbom(tmp_path / "again.json") == text
    assert str(ROOT) not in text
    assert str(Path.home()) not in text
