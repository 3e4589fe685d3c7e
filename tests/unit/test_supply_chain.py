"""Everything that is installed, built from or started is pinned by its sha256, and nothing else is accepted."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = {
    "requirements.txt": "constraints.txt",
    "build-requirements.txt": "build-constraints.txt",
    "docker/requirements.txt": "docker/constraints.txt",
    "tests/formats/tools/oscal.txt": "tests/formats/tools/oscal.lock",
}
DIGEST = r"@sha256:[0-9a-f]{64}"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def locked(text: str) -> dict[str, list[str]]:
    """Requirement with its marker -> its hashes."""
    requirements = [requirement for requirement in text.replace("\\\n", " ").splitlines() if requirement.strip()]
    return {
        requirement.split(" --hash=")[0].strip(): re.findall(r"--hash=sha256:([0-9a-f]{64})(?= |$)", requirement)
        for requirement in requirements
    }


def pins(name: str) -> set[str]:
    return {line.strip() for line in read(name).splitlines() if line.strip() and not line.startswith("#")}


@pytest.mark.parametrize("lock", LOCKS.values())
def test_every_line_of_a_lock_is_an_exact_version_with_its_hashes(lock: str) -> None:
    for requirement, hashes in locked(read(lock)).items():
        assert re.fullmatch(r"[a-z0-9._-]+(\[[a-z0-9,-]+\])?==[\w.!+]+( ; .+)?", requirement), requirement
        assert hashes, requirement
    assert "--hash" in read(lock)
    assert not re.search(r"://|--(extra-)?index|--find-links|--trusted", read(lock)), "a lock says what, not from where"


@pytest.mark.parametrize("lock", sorted(ROOT.glob("tests/*/tools/*/package-lock.json")), ids=lambda path: path.parent.name)
def test_every_package_that_npm_installs_has_an_exact_version_and_its_hash(lock: Path) -> None:
    packages = json.loads(lock.read_text(encoding="utf-8"))["packages"]
    for name, version in packages.pop("")["dependencies"].items():
        assert packages[f"node_modules/{name}"]["version"] == version
    assert all(one["integrity"].startswith("sha512-") and "resolved" not in one for one in packages.values())


@pytest.mark.parametrize(("requirements", "lock"), LOCKS.items())
def test_every_version_that_was_asked_for_is_the_one_that_is_locked(requirements: str, lock: str) -> None:
    versions = {requirement.split(" ; ")[0] for requirement in locked(read(lock))}
    missing = {pin for pin in pins(requirements) if not any(pin.split(" ; ")[0].lower().replace("_", "-") == found for found in versions)}
    assert missing == set(), "run `make lock`"


def test_each_pin_of_the_product_lies_in_a_range_that_the_wheel_asks_for_and_nothing_else_is_asked_for() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    ranges = {canonicalize_name(one.name): one.specifier for one in map(Requirement, asked)}
    product = read("requirements.txt").split("# Tests and checks.")[0]
    pinned = dict(line.split("==") for line in product.splitlines() if line and not line.startswith("#"))
    assert {canonicalize_name(name) for name in pinned} == set(ranges)
    assert [name for name, version in pinned.items() if not ranges[canonicalize_name(name)].contains(version)] == []
    assert all("==" not in str(one) for one in ranges.values()), "exact versions would keep other packages out"


def test_the_image_has_the_versions_that_are_tested_and_nothing_that_only_tests_need() -> None:
    platform, tests = (set(part.lower().splitlines()) for part in read("requirements.txt").split("# Tests and checks."))
    versions = {requirement.split(" ; ")[0] for requirement in locked(read("docker/constraints.txt"))}
    tested = {requirement.split(" ; ")[0] for requirement in locked(read("constraints.txt"))}
    assert {pin for pin in platform if "==" in pin} <= versions
    # What a test needs and the image, too: its own requirements, and dependencies of Great Expectations and of the Celery provider.
    both = {*read("docker/requirements.txt").lower().splitlines(), "jsonschema==4.26.0", "celery==5.6.3"}
    assert not {pin for pin in tests if "==" in pin} & (versions - both)
    names = {pin.split("==")[0] for pin in tested}
    assert {pin for pin in versions if pin.split("==")[0] in names} <= tested


def test_the_image_keeps_no_tool_that_builds_packages_and_removes_only_what_is_locked() -> None:
    locks = {name: {requirement.split("==")[0] for requirement in locked(read(name))} for name in LOCKS.values()}
    kubernetes, build = (set(names.split()) for names in re.findall(r"pip uninstall --yes (.+)", read("docker/Dockerfile")))
    assert build - {"pip"} == locks["build-constraints.txt"] - locks["docker/constraints.txt"]
    assert kubernetes <= locks["docker/constraints.txt"], "pip says nothing of a package that it does not find"


def test_make_and_the_image_install_nothing_without_a_hash() -> None:
    for name in ("Makefile", "docker/Dockerfile"):
        installs = re.findall(r"pip install.*", read(name))
        assert len(installs) == 3, name
        for command in installs:
            own = command.rstrip(" \\").endswith(("-e .", "--editable ."))
            assert ("--no-deps" if own else "--require-hashes") in command, command
            assert "==" not in command, f"{command}: a version belongs into a lock"
        # A source distribution is built, and the build's own requirements are fetched without hashes unless isolation is off.
        assert all("--no-build-isolation" in command for command in installs[1:]), name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of one module, in a folder of its own."""
    path = tmp_path_factory.mktemp("wheels") / "tampered-1.0-py3-none-any.whl"
    files = {
        "tampered.py": "",
        "tampered-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tampered\nVersion: 1.0\n",
        "tampered-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        record = ""
        for name, text in files.items():
            archive.writestr(name, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{name},sha256={digest},{len(text)}\n"
        archive.writestr("tampered-1.0.dist-info/RECORD", record + "tampered-1.0.dist-info/RECORD,,\n")
    return path


INSTALLERS = {
    "uv": [str(Path(sys.executable).with_name("uv")), "pip", "install", "--python", sys.executable, "--no-cache"],
    "pip": [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check"],
}


@pytest.mark.parametrize("installer", INSTALLERS)
def test_a_package_that_is_not_the_locked_one_is_refused(installer: str, wheel: Path, tmp_path: Path) -> None:
    command = [
        *INSTALLERS[installer],
        "--require-hashes",
        "--no-index",
        "--find-links",
        str(wheel.parent),
        "--target",
        str(tmp_path / "site"),
    ]
    true = hashlib.sha256(wheel.read_bytes()).hexdigest()
    outcomes = {}
    for case, text in {
        "the locked one": f"tampered==1.0 --hash=sha256:{true}\n",
        "another": f"tampered==1.0 --hash=sha256:{'0' * 64}\n",
        "no hash": "tampered==1.0\n",
    }.items():
        (tmp_path / "lock.txt").write_text(text, encoding="utf-8")
        found = subprocess.run([*command, "-r", str(tmp_path / "lock.txt")], capture_output=True, text=True, check=False)
        outcomes[case] = (found.returncode == 0, (tmp_path / "site" / "tampered.py").exists())
        shutil.rmtree(tmp_path / "site", ignore_errors=True)
    assert outcomes == {"the locked one": (True, True), "another": (False, False), "no hash": (False, False)}


def test_every_image_is_named_by_its_digest() -> None:
    assert set(re.findall(r"^FROM (\S+)", read("docker/Dockerfile"), flags=re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert re.search(rf"^ARG PYTHON_IMAGE=python:3\.\d+-slim-\w+{DIGEST}$", read("docker/Dockerfile"), flags=re.MULTILINE)
    images = re.findall(r"^\s*image: (.+)$", read("docker-compose.yaml"), flags=re.MULTILINE)
    foreign = [image for image in images if image != "kafka-audit:local"]
    assert len(foreign) == 2
    for image in foreign:
        assert re.fullmatch(rf"\$\{{[A-Z]+_IMAGE:-[a-z/]+:[\w.]+{DIGEST}\}}", image), image


def test_images_of_the_celery_file_are_named_by_a_full_tag_until_their_digests_are_known() -> None:
    images = re.findall(r"^\s*image: (.+)$", read("docker-compose.celery.yaml"), flags=re.MULTILINE)
    assert len(images) == 2
    for image in images:
        assert re.fullmatch(rf"\$\{{[A-Z]+_IMAGE:-[a-z/]+:[\w.-]*\d[\w.-]*({DIGEST})?\}}", image), image


# Image -> the digest that the stand-in for docker answers.
WITH_IMAGES = {
    "docker/Dockerfile": {"python": 1},
    "docker-compose.yaml": {"postgres": 2, "apache/kafka": 3},
    "docker-compose.celery.yaml": {"redis": 3, "versity/versitygw": 3},
}
STAND_IN = """#!/bin/sh
echo "$4" >> "$(dirname "$0")/asked"
case "$4" in
  $REFUSED) echo "manifest unknown" >&2; exit 1;;
  python:*) printf 'sha256:%064d\\n' 1;;
  postgres:*) printf 'sha256:%064d\\n' 2;;
  *) printf 'sha256:%064d\\n' 3;;
esac
"""


def lock_images(tmp_path: Path, refused: str) -> subprocess.CompletedProcess[str]:
    """Run the script on copies of the files, with a docker that knows three digests and refuses one image."""
    for name in ("docker/lock_images.py", *WITH_IMAGES):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(STAND_IN, encoding="utf-8")
    docker.chmod(0o755)
    environment = {**os.environ, "PATH": f"{docker.parent}:{os.environ['PATH']}", "REFUSED": refused}
    command = [sys.executable, str(tmp_path / "docker" / "lock_images.py")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_locking_the_images_changes_their_digests_and_nothing_else(tmp_path: Path) -> None:
    assert lock_images(tmp_path, "nothing").returncode == 0
    assert (tmp_path / "bin" / "asked").read_text(encoding="utf-8").split() == [
        "apache/kafka:4.3.1",
        "postgres:16",
        "python:3.11-slim-bookworm",
        "redis:7.2-bookworm",
        "versity/versitygw:v1.8.0",
    ]
    for name, expected in WITH_IMAGES.items():
        after = (tmp_path / name).read_text(encoding="utf-8")
        assert re.sub(DIGEST, "", after) == re.sub(DIGEST, "", read(name))
        assert {image: int(digest) for image, digest in re.findall(r"([a-z/]+):[\w.-]+@sha256:(\d{64})", after)} == expected


def test_locking_the_images_changes_no_file_when_one_digest_cannot_be_had(tmp_path: Path) -> None:
    found = lock_images(tmp_path, "postgres:16")
    assert found.returncode == 1
    assert "no digest of postgres:16: manifest unknown. No file was changed." in found.stderr
    for name in WITH_IMAGES:
        assert (tmp_path / name).read_text(encoding="utf-8") == read(name)
