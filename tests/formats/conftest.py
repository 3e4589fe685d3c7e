"""Validators of report formats that others wrote. Each is fetched once, pinned by hashes, into the cache that the jars are in, too."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))  # the audits that the unit tests of reports are made of

from kafka_audit.jars.fetch import cache_directory, exclusive

TOOLS = Path(__file__).parent / "tools"
MULTITOOL = Path("node_modules/@microsoft")
# Asked for nothing on the network, it would wait for each address in the file.
_OFFLINE = {
    **os.environ,
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",
}

Problems = dict[str, Any]
Validator = Callable[[dict[str, str]], Problems]


def installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """The folder of a tool in the cache; it is made if there is none for this lock file."""
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()[:16]
    folder = cache_directory() / "validators" / f"{name}-{digest}"
    with exclusive(folder.parent / f"{name}.lock", wait=True):
        if not (folder / ".complete").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            (folder / ".complete").touch()
    return folder


def written(folder: Path, texts: dict[str, str]) -> list[str]:
    """The paths of texts that were written as files of these names."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")
    return [str(folder / name) for name in texts]


@pytest.fixture(scope="session")
def multitool() -> Path:
    """The folder of Microsoft's SARIF Multitool, with its program and the schema that it carries."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (apt-get install nodejs npm): it fetches Microsoft's validator of SARIF")

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(TOOLS / "sarif" / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True)
        for program in folder.glob(f"{MULTITOOL}/*/Sarif.Multitool"):
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    folder = installed("sarif", TOOLS / "sarif" / "package-lock.json", install)
    return next((folder / MULTITOOL).glob("sarif-multitool-*/"))


@pytest.fixture
def sarif_problems(multitool: Path, tmp_path: Path) -> Validator:
    """{file: errors and warnings of the Multitool, by its own rules and by those for GitHub's code scanning}, in one run for all files."""

    def check(texts: dict[str, str]) -> Problems:
        found = tmp_path / "found.sarif"
        chosen = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning", "--log", "ForceOverwrite", "--output", str(found), "--quiet"]
        subprocess.run([multitool / "Sarif.Multitool", "validate", *written(tmp_path, texts), *chosen], env=_OFFLINE, check=True)
        run = json.loads(found.read_text(encoding="utf-8-sig"))["runs"][0]
        assert run["invocations"][0]["executionSuccessful"]
        problems: Problems = {name: [] for name in texts}
        for one in run["results"]:
            name = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].rpartition("/")[2]
            problems[name].append((one["ruleId"], *one["message"].get("arguments", [one["message"].get("text")])))
        return problems

    return check


@pytest.fixture(scope="session")
def trestle() -> Path:
    """The Python of an environment of its own, in which compliance-trestle is installed: its packages differ from this project's."""
    if sys.version_info < (3, 11):
        pytest.skip("compliance-trestle 5.2 needs Python 3.11")
    uv = Path(sys.executable).with_name("uv")

    def install(folder: Path) -> None:
        python = folder / "bin" / "python"
        for command in (
            ["venv", "--python", sys.executable, folder],
            ["pip", "install", "--python", python, "--require-hashes", "-r", TOOLS / "oscal.lock"],
        ):
            subprocess.run([uv, *command, "--quiet"], check=True)

    return installed("oscal", TOOLS / "oscal.lock", install) / "bin" / "python"


@pytest.fixture
def oscal_problems(trestle: Path, tmp_path: Path) -> Validator:
    """{file: what compliance-trestle says is wrong, or None}."""

    def check(texts: dict[str, str]) -> Problems:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        paths = written(tmp_path, texts)
        done = subprocess.run([trestle, TOOLS / "read_oscal.py", *paths], env=environment, check=True, capture_output=True, text=True)
        said = json.loads(done.stdout.splitlines()[-1])
        assert said["version"] == "1.2.1"
        return {Path(path).name: problem for path, problem in said["problems"].items()}

    return check
