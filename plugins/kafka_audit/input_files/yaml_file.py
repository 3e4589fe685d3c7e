"""Reads policy and control files as strict YAML, and turns problems into messages with file, field and fix."""

from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.read import read_input, refuse_outside
from kafka_audit.input_files.strict_yaml import parse_yaml
from kafka_audit.safe_text import visible

_LISTED = 50
_FIXES = {
    "bool_type": "write true or false",
    "bool_parsing": "write true or false",
    "int_type": "write a whole number without quotes",
    "int_parsing": "write a whole number without quotes",
    "timezone_aware": "write a time with its zone, such as 2027-01-31T00:00:00Z",
}
"""The fix to print for those of pydantic's error types whose own message does not contain one."""


def load_yaml(path: Path, *, within: Path | None = None) -> tuple[Any, bytes]:
    """Parse one file as :func:`kafka_audit.input_files.strict_yaml.parse_yaml` does; returns the value and the raw bytes.

    ConfigurationError (exit 2), usually with line and column, if the file cannot be read, is not valid YAML, or is outside the folder
    ``within`` (also behind a link).
    """
    if within is not None:
        try:
            refuse_outside(within, path)
        except ConfigurationError as problem:
            raise ConfigurationError(f"{path}: {problem}") from problem
    try:
        raw = read_input(path, "name a YAML file")
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: the file is missing") from problem
    try:
        return parse_yaml(raw), raw
    except yaml.YAMLError as problem:
        said = " ".join(str(problem).split()).replace(' in "<byte string>", line', ": line")
        hint = "; indent with spaces: YAML does not allow tabs" if "cannot start any token" in said and b"\t" in raw else ""
        raise ConfigurationError(f"{path}: is not valid YAML: {visible(said)}{hint}") from problem


def explain(path: Path, problem: ValidationError) -> list[str]:
    """One sentence for each problem that pydantic found, at most 50: file, field and fix."""
    lines = []
    errors = problem.errors()
    for error in errors[:_LISTED]:
        field = ".".join(f"{part!s:.80}" for part in error["loc"]) or "(whole file)"
        message = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = "is not a known field: remove it or correct its spelling"
        elif error["type"] == "missing":
            message = "is missing: add it"
        elif error["type"] in _FIXES:
            message = f"{message}: {_FIXES[error['type']]} (found {error['input']!r:.80})"
        else:
            message = f"{message} (found {error['input']!r:.80})"
        lines.append(f"{path}: {visible(f'{field}: {message}')}")
    if len(errors) > _LISTED:
        lines.append(f"{path}: has {len(errors) - _LISTED:,} more problems")
    return lines
