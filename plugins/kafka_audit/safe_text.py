"""Makes text from a cluster safe to display: invisible characters become visible, long text is cut, only web links become links."""

import re
import unicodedata
from collections.abc import Iterator
from datetime import datetime, timezone
from urllib.parse import urlsplit

from kafka_audit.times import parse_time

# Default_Ignorable_Code_Point of Unicode 14.0 (DerivedCoreProperties.txt), and the Braille pattern without a dot. They draw nothing, also
# those that are letters or combining marks, so that two different names look the same.
_DRAWS_NOTHING = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Control, format (bidi, zero width), surrogate, private, unassigned, line and paragraph separators.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_COMBINING = frozenset({"Mn", "Me"})
_LONGEST_COMBINING_RUN = 2
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

NAME_LENGTH = 200
"""Names and values longer than this are cut on the page; report.json keeps them whole."""


def escape_of(character: str) -> str:
    """The visible spelling of one character: ``\\n``, ``\\u202e``, ``\\U000e0001``."""
    code = ord(character)
    return _SHORT_ESCAPES.get(character) or (f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}")


def is_invisible(character: str) -> bool:
    """Whether a character draws nothing, reorders its neighbours or breaks the line."""
    category = unicodedata.category(character)
    blank = category == "Zs" and character != " "
    return blank or category in _INVISIBLE or _DRAWS_NOTHING.match(character) is not None


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Split text into (escaped?, piece): plain runs as they are, each invisible character as its visible spelling.

    More than two combining marks in a row are escaped too: stacked marks paint over the lines above and below.
    """
    plain: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in _COMBINING else 0
        if is_invisible(character) or marks > _LONGEST_COMBINING_RUN:
            if plain:
                yield False, "".join(plain)
                plain = []
            yield True, escape_of(character)
        else:
            plain.append(character)
    if plain:
        yield False, "".join(plain)


def visible(text: str) -> str:
    """Text with every invisible character spelled out."""
    if text.isascii() and text.isprintable():  # most names and all figures; no such character is invisible
        return text
    return "".join(piece for _, piece in pieces(text))


def shortened(text: str, length: int = NAME_LENGTH) -> tuple[str, int]:
    """The first ``length`` characters and how many were cut off."""
    return text[:length], max(0, len(text) - length)


def with_link(text: str) -> tuple[str, str]:
    """A reference such as ``KIP-966 - https://...`` as its words and its web address, which is empty when there is none to link to."""
    last = text.rsplit(maxsplit=1)[-1] if text.strip() else ""
    found = re.search(r"\bhttps?://", last)
    address = last[found.start() :] if found else ""
    if not is_web_link(address):
        return text, ""
    return text.strip().removesuffix(address).rstrip(" -\N{EN DASH}:"), address


def is_web_link(text: str) -> bool:
    """Whether text may be a link: http or https, with a host, without characters that hide where it leads."""
    if re.search(r"[\s\\\"'<>]", text) or any(is_invisible(character) for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc


def grouped(number: int | None) -> str:
    """A whole number with thousands separators; a dash when it is not known."""
    return "\N{EN DASH}" if number is None else f"{number:,}"


def percent(part: int, whole: int) -> str:
    """A percentage with one decimal, rounded down, so that 99.97 % never reads as all; a dash when there is no whole."""
    if whole <= 0:
        return "\N{EN DASH}"
    tenths = part * 1000 // whole
    return f"{tenths // 10}.{tenths % 10}%"


def utc(when: datetime | str | None) -> str:
    """A time to the second in UTC, like ``2026-11-20 23:15:00 UTC``; text that is no ISO time comes back as it is."""
    if not when:
        return "not known"
    try:
        moment = parse_time(when) if isinstance(when, str) else when
        aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
        return aware.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):  # no time, or one that in UTC has no year of four digits
        return str(when)


def paragraphs(text: str) -> list[str]:
    """Paragraphs of prose: blank lines separate them, single line breaks are spaces."""
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", text) if block.strip()]
