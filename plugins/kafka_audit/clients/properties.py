"""Reads key-value files of clients: Java properties, and the ini-like files that librdkafka's users write."""

import re
from collections.abc import Iterator
from pathlib import Path

import javaproperties

from kafka_audit.errors import ConfigurationError

JAVA_SUFFIX = ".properties"
INI_SUFFIXES = frozenset({".conf", ".cfg", ".ini"})
_SECTION = re.compile(r"\[\s*([^\]]*?)\s*\]")
_PAIR = re.compile(r"([^\s=:]+)\s*[=:]\s*(.*)")
_OF_A_KIND = frozenset({"producer", "consumer"})
_LARGEST = 1_000_000


def read_pairs(path: Path) -> dict[str, str]:
    """The keys and values of a file; where a key stands twice the last one counts, as it does for the clients.

    A section ``[producer]`` or ``[consumer]`` of an ini file becomes a prefix of its keys; other sections do not count. Raises
    ConfigurationError (exit 2) with the line, and without its text: it may hold a password.
    """
    text = _text(path)
    return dict(_java_pairs(path, text) if path.suffix.lower() == JAVA_SUFFIX else _ini_pairs(path, text))


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); name a file of client settings") from problem
    if len(raw) > _LARGEST:
        raise ConfigurationError(f"{path}: has more than {_LARGEST:,} bytes, so it is no file of client settings")
    if b"\0" in raw:
        raise ConfigurationError(f"{path}: is a binary file; name a file of client settings")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")  # what the format itself prescribes


def _java_pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    number = 1
    try:
        for part in javaproperties.parse(text):
            if isinstance(part, javaproperties.KeyValue):
                yield part.key, part.value
            number += len(part.source.splitlines())
    except javaproperties.InvalidUEscapeError as problem:
        raise ConfigurationError(f"{path} line {number} or the next: holds \\u without four hexadecimal digits; write \\\\u") from problem


def _ini_pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    prefix = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;!":
            continue
        section = _SECTION.fullmatch(stripped)
        if section is not None:
            prefix = f"{section.group(1)}." if section.group(1) in _OF_A_KIND else ""
            continue
        pair = _PAIR.fullmatch(stripped)
        if pair is None:
            raise ConfigurationError(f"{path} line {number}: write key=value")
        yield prefix + pair.group(1), pair.group(2)
