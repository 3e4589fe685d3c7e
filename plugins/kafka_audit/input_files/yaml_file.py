"""Reads policy and control files as strict YAML with plain texts, and turns problems into messages with file, field and fix."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.read import read_input, refuse_outside
from kafka_audit.input_files.strict_yaml import parse_yaml
from kafka_audit.safe_text import visible

_LISTED = 50
_MOST_PROBLEMS = 10
_LONGEST_KEY = 80
_MOST_KNOWN = 1_000
_LEVEL_OF_CLIENT = 2  # clients, its number, its field
_OF_CLIENT = re.compile(r"clients\.[0-9]+\.settings\..*", re.DOTALL)
_Model = TypeVar("_Model", bound=BaseModel)
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
    raw = _bytes_of(path, within)
    return _parsed(path, raw), raw


def _bytes_of(path: Path, within: Path | None) -> bytes:
    if within is not None:
        try:
            refuse_outside(within, path)
        except ConfigurationError as problem:
            raise ConfigurationError(f"{path}: {problem}") from problem
    try:
        return read_input(path, "name a YAML file")
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: the file is missing") from problem


def _parsed(path: Path, raw: bytes) -> Any:  # noqa: ANN401 - whatever the file holds
    try:
        return parse_yaml(raw)
    except yaml.YAMLError as problem:
        said = " ".join(str(problem).split()).replace(' in "<byte string>", line', ": line")
        hint = "; indent with spaces: YAML does not allow tabs" if "cannot start any token" in said and b"\t" in raw else ""
        raise ConfigurationError(f"{path}: is not valid YAML: {visible(said)}{hint}") from problem


def read_model(
    path: Path,
    model: type[_Model],
    *,
    within: Path | None = None,
    explained: Callable[[Path, ValidationError], list[str]] | None = None,
    known: dict[bytes, _Model] | None = None,
) -> tuple[_Model, bytes]:
    """The content of one YAML file as a model, and its bytes; ConfigurationError (exit 2) lists all problems of the file.

    ``within``: as for :func:`load_yaml`. ``explained``: writes the model's problems instead of :func:`explain`. ``known``: models that
    nobody changes, by the bytes that they were read from, at most 1,000; a file of the same bytes is not parsed again, and a new model is
    added.
    """
    raw = _bytes_of(path, within)
    if known is not None and raw in known:
        return known[raw], raw
    value = _parsed(path, raw)
    unfit = unfit_texts(value)
    if unfit:
        raise ConfigurationError("\n  ".join(f"{path}: {line}" for line in unfit))
    try:
        made = model.model_validate(value)
    except ValidationError as problem:
        raise ConfigurationError("\n  ".join((explained or explain)(path, problem))) from problem
    if known is not None:
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known[raw] = made
    return made, raw


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
            message = f"{message}: {_FIXES[error['type']]}{_found(error)}"
        elif error["type"] != "value_error" or not isinstance(error["input"], dict | list):
            message = f"{message}{_found(error)}"
        lines.append(f"{path}: {visible(f'{field}: {message}')}")
    if len(errors) > _LISTED:
        lines.append(f"{path}: has {len(errors) - _LISTED:,} more problems")
    return lines


def _found(error: ErrorDetails) -> str:
    """The value that was found, unless it may be a secret or hold one: a list, a mapping, a whole file, or a setting of a client."""
    place, value = error["loc"], error["input"]
    if isinstance(value, dict | list):
        return f" (found a {'mapping' if isinstance(value, dict) else 'list'})"
    hidden = not place or (place[0] == "clients" and (len(place) <= _LEVEL_OF_CLIENT or place[_LEVEL_OF_CLIENT] == "settings"))
    return "" if hidden else f" (found {value!r:.80})"


def unfit_texts(value: object) -> list[str]:
    """The texts of a YAML value that are refused, keys too, as lines that begin with the field; the first ten.

    Refused is ``${``, which shells, Java clients and Spark replace by environment variables and other values of their own, and what
    cannot be written as UTF-8.
    """
    found = []
    for field, text in _texts(value, ""):
        if "${" in text:
            # A client's value that is known only when it starts cannot be written here; as a file, its settings are taken as they are.
            inline = _OF_CLIENT.fullmatch(field)
            advice = "remove the setting, or name a settings_file" if inline else "write the text itself ($NAME in a command)"
            found.append(f"{field}: holds ${{, which programs replace by values of their environment; {advice}")
        elif not _is_unicode(text):
            found.append(f"{field}: holds half of a surrogate pair, which is no character; write the character itself")
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def _texts(value: object, field: str) -> Iterator[tuple[str, str]]:
    """Every text with its field; a part that the file names twice is read once, so that no alias makes it long or endless."""
    waiting, seen = [(value, field)], set()
    while waiting:
        one, where = waiting.pop()
        if isinstance(one, str):
            yield where or "(whole file)", one
        elif isinstance(one, dict | list) and id(one) not in seen:
            seen.add(id(one))
            parts = list(one.items() if isinstance(one, dict) else enumerate(one))
            if isinstance(one, dict):
                waiting += [(key, where) for key in one]
            waiting += [(part, f"{where}.{_shown(key)}".lstrip(".")) for key, part in reversed(parts)]


def _shown(key: object) -> str:
    text = str(key)
    return text if len(text) <= _LONGEST_KEY and "${" not in text and _is_unicode(text) else "..."


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
