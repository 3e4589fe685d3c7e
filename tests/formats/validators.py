"""Validators of report formats that others wrote. Each is fetched once, pinned by hashes, into the cache that the jars are in, too.

The functions skip a test where a validator cannot run, and return {file: what is wrong with it}.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kafka_audit.jars.fetch import cache_directory, exclusive

_TOOLS = Path(__file__).parent / "tools"
_MICROSOFT = Path("node_modules/@microsoft")
_WITHOUT_NETWORK = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
"""The Multitool asks for every address in a file, and waits for the answers."""


def sarif_problems(texts: Mapping[str, str], folder: Path) -> dict[str, list[tuple[str, ...]]]:
    """The errors and warnings of Microsoft's Multitool, as (rule, arguments): by its own rules and by those for GitHub's code scanning."""
    found = folder / "found.sarif"
    chosen = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning", "--log", "ForceOverwrite", "--output", str(found), "--quiet"]
    program = multitool() / "Sarif.Multitool"
    environment = {**os.environ, **_WITHOUT_NETWORK, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    subprocess.run([program, "validate", *_written(folder, texts), *chosen], env=environment, check=True, stdout=subprocess.DEVNULL)
    run = json.loads(found.read_text(encoding="utf-8-sig"))["runs"][0]
    assert run["invocations"][0]["executionSuccessful"]
    problems: dict[str, list[tuple[str, ...]]] = {name: [] for name in texts}
    for one in run["results"]:
        name = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].rpartition("/")[2]
        problems[name].append((one["ruleId"], *one["message"].get("arguments", [one["message"].get("text")])))
    return problems


def oscal_problems(texts: Mapping[str, str], folder: Path) -> dict[str, str | None]:
    """What compliance-trestle says is wrong, or None."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [_trestle(), _TOOLS / "read_oscal.py", *_written(folder, texts)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["version"] == "1.2.1"
    return {Path(path).name: problem for path, problem in said["problems"].items()}


def multitool() -> Path:
    """The folder of Microsoft's SARIF Multitool, with its program and the schema that it carries."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (apt-get install nodejs npm): it fetches Microsoft's validator of SARIF")

    def install(folder: Path) -> None:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(_TOOLS / "sarif" / name, folder)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True)
        for program in folder.glob(f"{_MICROSOFT}/*/Sarif.Multitool"):
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

    folder = _installed("sarif", _TOOLS / "sarif" / "package-lock.json", install)
    return next((folder / _MICROSOFT).glob("sarif-multitool-*/"))


def _trestle() -> Path:
    """The Python of an environment of its own with compliance-trestle, whose packages differ from this project's."""
    uv = Path(sys.executable).with_name("uv")

    def install(folder: Path) -> None:
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"], check=True)
        locked = ["--require-hashes", "-r", _TOOLS / "oscal.lock"]
        subprocess.run([uv, "pip", "install", "--quiet", "--python", folder / "venv/bin/python", *locked], check=True)

    return _installed("oscal", _TOOLS / "oscal.lock", install) / "venv/bin/python"


def _installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """The folder of a tool in the cache; it is made if there is none yet for this lock file and this Python."""
    digest = hashlib.sha256(lock.read_bytes() + sys.version.encode() + sys.executable.encode()).hexdigest()[:16]
    folder = cache_directory() / "validators" / f"{name}-{digest}"
    with exclusive(folder.parent / f"{name}.lock", wait=True):
        if not (folder / ".complete").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            install(folder)
            (folder / ".complete").touch()
    return folder


def _written(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")
    return [folder / name for name in texts]
