"""Prepares text for the PDF: spells out what draws nothing or has no glyph in the embedded fonts, and says where long words may break."""

import re
from collections.abc import Iterator, Mapping

from kafka_audit import safe_text

Words = str | list[str | list[str]]
"""Text for the template: one string, or pieces between which a line may break. A piece in a list of its own is a spelled-out character."""

_LONGEST_NAME = 300
_LONGEST_WORD = 14
_LONGEST_WIDE_WORD = 40
_LONGEST_PIECE = 8
_PIECE = re.compile(r"[^-._:/,=;&?@(){}|\[\]]*[-._:/,=;&?@(){}|\[\]]*")

# The characters of DejaVu Sans Mono (regular and bold) in typst's wheel, without those that are written from right to left.
_GLYPHS = (
    "20-7e a0-ac ae-1c3 1cd-1e3 1e6-1f0 1f4-1f6 1f8-1f9 1fc-221 224-241 243-245 24c-24d 250-2b9 2bb-2c1 2c6-2c9 2cc-2d3 2d6-2de 2e0-2e9 "
    "2ee 2f3 300-33f 343 358 361 374-377 37a-37f 384-38a 38c 38e-3a1 3a3-3ce 3d0-3e1 3f0-45f 462-463 472-473 490-49b 4a2-4a5 4aa-4b3 "
    "4ba-4bb 4c0-4c4 4c7-4c8 4cb-4cc 4cf-4f9 510-511 51a-51d 531-556 559-55f 561-587 589-58a 1e00-1e13 1e18-1e2d 1e30-1e4d 1e54-1e63 "
    "1e68-1e79 1e7c-1e99 1e9b 1e9f-1ea1 1eac-1ead 1eb0-1eb1 1eb6-1eb9 1ebc-1ebd 1ec6-1ec7 1eca-1ecd 1ed8-1edd 1ee0-1ee5 1ee8-1eeb "
    "1eee-1ef5 1ef8-1ef9 1f00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fc4 1fc6-1fd3 "
    "1fd6-1fdb 1fdd-1fef 1ff2-1ff4 1ff6-1ffe 2000-200a 2010-2023 2026 202f-2037 2039-203a 203c-203f 2045-2049 204b 205f 2070-2071 "
    "2074-208e 2090-209c 20a0-20b5 20b8-20ba 20bd 2102 2105 210d-210f 2115-2117 2119-211a 211d 2122 2124 2126 212a-212b 212e 2148 "
    "2150-2151 2153-215f 2189 2190-2213 2215 2217-2220 2223 2227-222d 2234-223d 2241-2269 226d-228b 228d-22a5 22b2-22b5 22b8 22c2-22c6 "
    "22cd-22d1 22da-22e9 22ef 2300-2306 2308-2315 2318-2319 231c-2321 2325-2328 232b 2335-237a 237d 2380-2383 2388-238b 2395 239b-23ae "
    "23ce-23cf 2423 2500-262f 2638-268b 2690-269c 26a0-26a1 26b0-26b1 2701-2704 2706-2709 270c-2727 2729-274b 274d 274f-2752 2756 "
    "2758-275e 2761-2775 2794 2798-27af 27b1-27be 27c2 27c5-27c6 27dc 27e0 27e6-27eb 27f5-27f7 2987-2988 2997-2998 29eb 29fa-29fb 2a00 "
    "2a2f 2a6a-2a6b 2b05-2b0d 2b12-2b1a fffd "
)


def _glyphs() -> frozenset[int]:
    ends = (one.split("-") for one in "".join(_GLYPHS).split())
    codes = (code for end in ends for code in range(int(end[0], 16), int(end[-1], 16) + 1))
    return frozenset(code for code in codes if not safe_text.is_invisible(chr(code)))


GLYPHS = _glyphs()
"""The code points that the PDF can show; all others are spelled out, such as ``\\u4e2d``."""


class Wide(str):
    """Text for a column of at least 65 mm, in which words of up to 40 characters, such as names of settings, stay on one line."""

    __slots__ = ()


def name(value: object) -> str | None:
    """A name or value from the cluster, cut after 300 characters; None if it is not known, which the template shows as a dash."""
    if value is None:
        return None
    return "(empty)" if value == "" else cut(str(value), _LONGEST_NAME)


def cut(text: str, longest: int) -> str:
    """Text, cut to at most ``longest`` printed characters, of which a spelled-out one takes six, with a note of how many are left out."""
    kept, left_out = safe_text.shortened(text, _fitting(text, longest))
    return f"{kept}\N{HORIZONTAL ELLIPSIS} ({left_out:,} more characters)" if left_out else kept


def brief(text: str, longest: int) -> str:
    """Text, cut to at most ``longest`` printed characters, the ellipsis at its end included: for a place where others have it whole."""
    if _fitting(text, longest) == len(text):
        return text
    return f"{text[: _fitting(text, longest - 1)]}\N{HORIZONTAL ELLIPSIS}"


def _fitting(text: str, longest: int) -> int:
    """How many characters of the text are at most ``longest`` when they are printed."""
    printed = place = 0
    for escaped, piece in _pieces(text[: longest + 1]):
        if printed + len(piece) > longest:
            return place if escaped else place + longest - printed
        printed += len(piece)
        place += 1 if escaped else len(piece)
    return len(text)


def drawable(text: str) -> str:
    """Text in one string, with invisible characters and those without a glyph spelled out."""
    return "".join(piece for _, piece in _pieces(text))


def spelled(text: str) -> Words:
    """Text for the template: escapes apart, and long words in pieces that may go to the next line."""
    longest = _LONGEST_WIDE_WORD if isinstance(text, Wide) else _LONGEST_WORD
    if text.isascii() and text.isprintable() and all(len(word) <= longest for word in text.split(" ")):
        return str(text)
    made: list[str | list[str]] = []
    for escaped, piece in _pieces(text):
        if escaped:
            made.append([piece])
        else:
            made.extend(_broken(piece, longest))
    return made[0] if len(made) == 1 and isinstance(made[0], str) else made


def prepared(value: object) -> object:
    """The same value with every text in it as the template takes it. Numbers, flags and None stay, and so do keys.

    A text with the key ``alt`` describes a chart to those who do not see it: it stays in one piece.
    """
    if isinstance(value, str):
        return spelled(value)
    if isinstance(value, Mapping):
        return {key: drawable(one) if key == "alt" else prepared(one) for key, one in value.items()}
    return [prepared(one) for one in value] if isinstance(value, list | tuple) else value


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    for escaped, piece in safe_text.pieces(text):
        if escaped or all(ord(character) in GLYPHS for character in piece):
            yield escaped, piece
            continue
        plain = ""
        for character in piece:
            if ord(character) in GLYPHS:
                plain += character
                continue
            if plain:
                yield False, plain
                plain = ""
            yield True, safe_text.escape_of(character)
        if plain:
            yield False, plain


def _broken(text: str, longest: int) -> Iterator[str]:
    """The pieces of a text between which a line may break: only within words that are too long for a narrow column."""
    held = ""
    for number, word in enumerate(text.split(" ")):
        held += " " if number else ""
        if len(word) <= longest:
            held += word
            continue
        for part in _parts(word):
            yield held + part
            held = ""
    if held:
        yield held


def _parts(word: str) -> Iterator[str]:
    """A long word after each separator, and at every eighth character of what has none."""
    held = ""
    for found in _PIECE.finditer(word):
        held += found[0]
        if len(held) >= _LONGEST_PIECE // 2:
            yield from (held[start : start + _LONGEST_PIECE] for start in range(0, len(held), _LONGEST_PIECE))
            held = ""
    if held:
        yield held
