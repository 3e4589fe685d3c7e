"""Writes a bill of materials in CycloneDX 1.6: every Python package that is installed beside this program, and every jar.

`make sbom` calls it. Packages come from cyclonedx-py, their hashes from the locks, jars from jars.sha256. It holds no time and no random
number, so that the same installation gives the same bytes; SOURCE_DATE_EPOCH adds a time. What it does not list: packages of the operating
system, Java and Python themselves, and the jars inside pyspark, which pyspark's own hash covers.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from jsonschema import Draft7Validator

import kafka_audit
from kafka_audit.jars.jar_list import LIST_FILE, listed_jars

ROOT = Path(__file__).parents[1]
LOCKS = ("constraints.txt", "build-constraints.txt")
Document = dict[str, Any]


def installed_packages() -> Document:
    """Return cyclonedx-py's document of this Python environment: names, versions, licences, and who depends on whom."""
    command = [sys.executable, "-m", "cyclonedx_py", "environment", sys.executable, "--pyproject", str(ROOT / "pyproject.toml")]
    options = ["--output-reproducible", "--no-validate", "--spec-version", "1.6", "--output-format", "JSON"]
    found = subprocess.run([*command, *options], capture_output=True, text=True, encoding="utf-8", check=False)
    if found.returncode:
        sys.exit(f"cyclonedx-py failed:\n{found.stderr}")
    document: Document = json.loads(found.stdout)
    return document


def locked_hashes() -> dict[tuple[str, str], list[str]]:
    """Return (name, version) -> sha256 of each file that may be installed for it, from the locks."""
    hashes = {}
    for lock in LOCKS:
        for requirement in (ROOT / lock).read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
            name, version = re.split(r"==|\s", requirement, maxsplit=2)[:2]
            hashes[plain(name), version] = re.findall(r"--hash=sha256:(\w+)", requirement)
    return hashes


def plain(name: str) -> str:
    """Return a package's name as the lock writes it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def with_hashes(package: Document, hashes: dict[tuple[str, str], list[str]]) -> Document:
    """Add the hashes of a package's files: those of a distribution, because which of them was installed here is not kept."""
    found = hashes.get((plain(package["name"]), package["version"]))
    if found is None:
        sys.stderr.write(f"{package['name']} {package['version']} is installed but in no lock: it is listed without a hash\n")
        return package
    files = {
        "type": "distribution",
        "url": package["purl"],
        "comment": "the installed file is one of these",
        "hashes": [{"alg": "SHA-256", "content": sha256} for sha256 in found],
    }
    return {**package, "externalReferences": [*package.get("externalReferences", []), files]}


def jars() -> Iterator[Document]:
    """Yield a component for every jar, once, with the configurations of ivy.xml that use it."""
    listed = listed_jars(LIST_FILE)
    for purl in sorted({f"pkg:maven/{jar.organisation}/{jar.module}@{jar.version}" for jar in listed}):
        same = [jar for jar in listed if purl == f"pkg:maven/{jar.organisation}/{jar.module}@{jar.version}"]
        yield {
            "type": "library",
            "bom-ref": purl,
            "group": same[0].organisation,
            "name": same[0].module,
            "version": same[0].version,
            "purl": purl,
            "hashes": [{"alg": "SHA-256", "content": sha256} for sha256 in sorted({jar.sha256 for jar in same})],
            "properties": [{"name": "kafka-audit:used-by", "value": jar.configuration} for jar in same],
        }


def bill_of_materials() -> Document:
    """Return packages and jars as one document, in the order of their names."""
    document = installed_packages()
    hashes = locked_hashes()
    packages = [with_hashes(package, hashes) for package in document["components"]]
    maven = list(jars())
    product = {**document["metadata"]["component"], "version": kafka_audit.__version__}
    asked = {plain(line.split("==")[0]) for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if "==" in line}
    direct = [package["bom-ref"] for package in packages if plain(package["name"]) in asked] + [jar["bom-ref"] for jar in maven]
    others = [entry for entry in document["dependencies"] if entry["ref"] != product["bom-ref"]]
    return {
        **document,
        "metadata": {**document["metadata"], "component": product},
        "components": [*packages, *maven],
        "dependencies": [{"ref": product["bom-ref"], "dependsOn": direct}, *others, *({"ref": jar["bom-ref"]} for jar in maven)],
    }


def main(target: Path) -> None:
    """Write the document when it is valid by CycloneDX's own schema; else end with the schema's complaint."""
    text = json.dumps(bill_of_materials(), indent=1, sort_keys=True) + "\n"
    # Parsing 900 addresses by the grammar of RFC 3987 takes 17 s; the schema and all other formats are checked in 0.2 s.
    Draft7Validator.FORMAT_CHECKER.checkers.pop("iri-reference", None)
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        sys.exit(f"The bill of materials is not valid CycloneDX: {problem}")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{target}: {len(json.loads(text)['components'])} packages and jars\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
