"""Reads connection keys from a properties, JSON or YAML file."""

import json
from pathlib import Path

from kafka_audit.errors import ConfigurationError

_FORMATS = ".properties, .conf, .json, .yaml or .yml"


def read_keys(path: Path) -> dict[str, object]:
    """The flat key-value pairs of a connection file.

    ConfigurationError says what is wrong without repeating a value: a line of this file may hold a password.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); give the path of a connection file") from problem
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"{path}: is not UTF-8 text; write a {_FORMATS} file") from problem
    suffix = path.suffix.lower()
    if suffix in (".properties", ".conf"):
        return _read_properties(path, text)
    if suffix == ".json":
        return _checked(path, _read_json(path, text))
    if suffix in (".yaml", ".yml"):
        return _checked(path, _read_yaml(path, text))
    raise ConfigurationError(f"{path}: the kind of file is told by its ending; name it {_FORMATS}")


def _read_properties(path: Path, text: str) -> dict[str, object]:
    keys: dict[str, object] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        key, separator, value = stripped.partition("=")
        key = key.strip()
        if not separator or not key:
            raise ConfigurationError(f"{path} line {number}: write key=value")
        if key in keys:
            raise ConfigurationError(f"{path} line {number}: {key} is given a second time; keep one")
        keys[key] = value.strip()
    return keys


def _read_json(path: Path, text: str) -> object:
    try:
        return json.loads(text)
    except ValueError as problem:
        position = f"line {problem.lineno} column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else "some place"
        raise ConfigurationError(f"{path}: is not valid JSON at {position}") from None


def _read_yaml(path: Path, text: str) -> object:
    import yaml  # noqa: PLC0415  (only a YAML file pays for it)

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        position = f"line {mark.line + 1} column {mark.column + 1}" if mark else "some place"
        # The parser's own message quotes the line, and with it perhaps a password.
        raise ConfigurationError(f"{path}: is not valid YAML at {position}") from None


def _checked(path: Path, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path}: holds {type(value).__name__} where key-value pairs are expected")
    return {str(key): entry for key, entry in value.items()}
