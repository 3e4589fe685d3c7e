"""Reads connection keys from a properties, JSON or YAML file."""

import json
from pathlib import Path

import yaml

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.read import read_input
from kafka_audit.input_files.strict_yaml import parse_yaml
from kafka_audit.safe_text import visible

_FORMATS = ".properties, .conf, .json, .yaml or .yml"


def read_keys(path: Path, *, pipe: bool = False) -> dict[str, object]:
    """The flat key-value pairs of a connection file; with ``pipe`` also of a named pipe, whose writer is waited for.

    ConfigurationError says what is wrong without repeating a value: a line of this file may hold a password.
    """
    advice = "give the path of a connection file"
    try:
        raw = read_input(path, advice, pipe=pipe)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); {advice}") from problem
    except UnicodeDecodeError as problem:
        raise ConfigurationError(f"{path}: is not UTF-8 text; write a {_FORMATS} file") from problem
    suffix = path.suffix.lower()
    if suffix in (".properties", ".conf"):
        return _read_properties(path, text)
    if suffix == ".json":
        return _checked(path, _read_json(path, text))
    if suffix in (".yaml", ".yml"):
        return _checked(path, _read_yaml(path, raw))
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
            raise ConfigurationError(f"{path} line {number}: {visible(key)} is given a second time; keep one")
        keys[key] = value.strip()
    return keys


def _read_json(path: Path, text: str) -> object:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in pairs:
            if key in found:
                raise ConfigurationError(f"{path}: {visible(key)} is given a second time; keep one")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as problem:
        raise ConfigurationError(f"{path}: is not valid JSON at line {problem.lineno} column {problem.colno}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; lists in lists in lists
        raise ConfigurationError(f"{path}: holds JSON that no connection has: write key-value pairs of text and small numbers") from None


def _read_yaml(path: Path, raw: bytes) -> object:
    try:
        return parse_yaml(raw)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        position = f"line {mark.line + 1} column {mark.column + 1}" if mark else "some place"
        # The parser's own message quotes the line, and with it perhaps a password.
        raise ConfigurationError(f"{path}: is not valid YAML at {position}") from None


def _checked(path: Path, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ConfigurationError(f"{path}: holds {type(value).__name__} where key-value pairs are expected")
    strange = next((type(key).__name__ for key in value if not isinstance(key, str)), None)
    if strange is not None:
        raise ConfigurationError(f"{path}: has a key that is no text ({strange}); write librdkafka's names of the keys")
    return value
