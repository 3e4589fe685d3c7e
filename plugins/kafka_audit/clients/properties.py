"""Reads key-value files of clients: Java properties, and the ini-like files that users of librdkafka write."""

import re
from collections.abc import Iterator
from pathlib import Path

from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.read import read_input

JAVA_SUFFIX = ".properties"
INI_SUFFIXES = frozenset({".conf", ".cfg", ".ini"})
_SECTION = re.compile(r"\[([^\]]*)\]")
_LINE_END = re.compile(r"\r\n|\r|\n")  # only the line ends of the format; str.splitlines() splits at others too
_PAIR = re.compile(r"([^\s=:]+)\s*[=:]\s*(.*)")
_OUTCOMMENTED = re.compile(r"[#;!][#;!\s]*([^\s=]+)\s*=\s*(.+)")
_PEM = ("-----BEGIN", "-----END")
_MOST_CONTINUED = 50
_OF_A_KIND = frozenset({"producer", "consumer"})


def read_pairs(path: Path) -> dict[str, str]:
    """The keys and values of a file, as :func:`pairs_of` finds them in its bytes."""
    return pairs_of(path, settings_bytes(path))


def pairs_of(path: Path, raw: bytes) -> dict[str, str]:
    """The keys and values in the bytes of a file. If a key appears twice, the last value counts, as it does for the clients.

    The name of an ini section ``[producer]`` or ``[consumer]`` becomes a prefix of its keys; other sections are ignored.
    ConfigurationError (exit 2) names the line, but does not quote it, because it may contain a password.
    """
    pairs = dict(_every_pair(path, _text(path, raw)))
    if any("\ud800" <= character <= "\udfff" for each in (*pairs, *pairs.values()) for character in each):
        raise ConfigurationError(f"{path}: has a \\u escape of half a character (a surrogate without its pair); write both or none")
    return pairs


def written_pairs(path: Path) -> list[tuple[str, str]]:
    """Every pair in the text of a file: also those that a later line replaces, and ``key=value`` in a line that is a comment."""
    text = _text(path, settings_bytes(path))
    comments = (_OUTCOMMENTED.fullmatch(line.strip()) for line in _LINE_END.split(text))
    return [*_every_pair(path, text), *((found[1], found[2]) for found in comments if found is not None)]


def settings_bytes(path: Path) -> bytes:
    """All bytes of a file of client settings; ConfigurationError when it cannot be read."""
    advice = "name a file of client settings"
    try:
        return read_input(path, advice)
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); {advice}") from problem


def _text(path: Path, raw: bytes) -> str:
    if b"\0" in raw:
        raise ConfigurationError(f"{path}: is a binary file; name a file of client settings")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("latin-1")  # the encoding that the format prescribes


def _every_pair(path: Path, text: str) -> Iterator[tuple[str, str]]:
    return _java_pairs(path, text) if path.suffix.lower() == JAVA_SUFFIX else _ini_pairs(path, text)


def _java_pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    import javaproperties  # noqa: PLC0415 - with the XML and HTTP modules it loads; most policies name no such file

    _refuse_endless_lines(path, text)
    number = 1
    try:
        for part in javaproperties.parse(text):
            if isinstance(part, javaproperties.KeyValue):
                _refuse_pem(path, number, part.key)
                yield part.key, part.value
            number += len(_LINE_END.findall(part.source))
    except javaproperties.InvalidUEscapeError as problem:
        raise ConfigurationError(f"{path} line {number} or the next: holds \\u without four hexadecimal digits; write \\\\u") from problem


def _refuse_pem(path: Path, number: int, line: str) -> None:
    """Refuse a key or certificate whose lines stand alone: every client takes each of them for a setting, and so would this program."""
    if line.startswith(_PEM):
        raise ConfigurationError(
            f"{path} line {number}: begins with BEGIN or END of a key or certificate, so its lines are not the value of a setting: "
            "leave the setting out, or write the whole value in one line (in a .properties file with \\n between its lines)"
        )


def _refuse_endless_lines(path: Path, text: str) -> None:
    """Refuse files with very many continued lines: javaproperties joins them one by one, which takes hours for a hundred thousand."""
    in_a_row = 0
    for number, line in enumerate(_LINE_END.split(text), start=1):
        in_a_row = in_a_row + 1 if line.endswith("\\") else 0
        if in_a_row > _MOST_CONTINUED:
            raise ConfigurationError(
                f"{path} line {number}: more than {_MOST_CONTINUED} lines in a row go on with a backslash: write fewer"
            )


def _ini_pairs(path: Path, text: str) -> Iterator[tuple[str, str]]:
    prefix = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#;!":
            continue
        _refuse_pem(path, number, stripped)
        section = _SECTION.fullmatch(stripped)
        if section is not None:
            name = section.group(1).strip()
            prefix = f"{name}." if name in _OF_A_KIND else ""
            continue
        pair = _PAIR.fullmatch(stripped)
        if pair is None:
            raise ConfigurationError(f"{path} line {number}: write key=value")
        yield prefix + pair.group(1), pair.group(2)
