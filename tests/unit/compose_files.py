"""docker-compose.yaml and docker-compose.celery.yaml as compose reads them, without a container engine."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yaml"
CELERY_FILE = ROOT / "docker-compose.celery.yaml"
_VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)\})")


def read(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def merged() -> dict[str, Any]:
    """The services of both files together, merged as compose does: maps by key, volumes by target, the rest replaced."""
    services = read(FILE)["services"]
    found = {name: dict(service) for name, service in services.items()}
    for name, service in read(CELERY_FILE)["services"].items():
        extended = services[service["extends"]["service"]] if "extends" in service else {}
        before = found.get(name, extended)
        found[name] = {**before, **service}
        for key in ("environment", "depends_on"):
            found[name][key] = {**before.get(key, {}), **service.get(key, {})}
        targets = {volume.split(":")[1]: volume for volume in [*before.get("volumes", []), *service.get("volumes", [])]}
        found[name]["volumes"] = list(targets.values())
    return {name: service for name, service in found.items() if "profiles" not in service}


def made_env() -> dict[str, str]:
    """What docker/make_env.py writes into .env: fresh secrets."""
    script = ROOT / "docker" / "make_env.py"
    text = subprocess.run([sys.executable, str(script), "-"], capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in text.splitlines())


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its variables replaced as compose does: ${NAME:-default}, ${NAME:?message} and $$."""
    return _VARIABLE.sub(lambda found: "$" if found["dollar"] else values.get(found["name"]) or found["default"] or "", text)
