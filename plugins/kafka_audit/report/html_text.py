"""Turns text into HTML that stays text: invisible characters are spelled out, long text is cut and says so."""

import re
from collections.abc import Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from kafka_audit import safe_text as text
from kafka_audit.report.words import counted

BRIEF = 60
"""The longest name in the one line that stands for a folded part; the part itself has it with up to 200 characters."""

_LONGEST_PROSE = 4000
_LONGEST_SENTENCE = 500
_START, _END = Markup('<bdi class="name" dir="ltr">'), Markup("</bdi>")
_OPTION = re.compile(r"--[a-z-]{1,30}")


def _marked(value: str) -> Markup:
    """Text as HTML, with each invisible character spelled out in a marked span."""
    if value.isascii() and value.isprintable():
        return escape(value)
    parts = [Markup('<span class="esc">{}</span>').format(piece) if escaped else escape(piece) for escaped, piece in text.pieces(value)]
    return Markup("").join(parts)


def finalize(value: object) -> object:
    """Jinja2 calls this for every printed value: it spells out invisible characters and cuts long text, so no template can forget to."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _cut(value, _LONGEST_PROSE)


@lru_cache(maxsize=1024)
def sentence(value: str) -> Markup:
    """A sentence that may contain names from the cluster, at most 500 characters."""
    return _cut(value, _LONGEST_SENTENCE)


def _cut(value: str, longest: int) -> Markup:
    kept, cut = text.shortened(value, longest)
    return _marked(kept) + _cut_note(cut)


def _cut_note(cut: int) -> Markup:
    if not cut:
        return Markup("")
    return Markup('<span class="cut">\N{HORIZONTAL ELLIPSIS} {}</span>').format(counted(cut, "more character"))


def name(value: object, longest: int = text.NAME_LENGTH) -> Markup:
    """A name or value from the cluster: isolated from the surrounding text, at most ``longest`` characters, a dash if it is not known."""
    if value is None:
        return Markup('<span class="muted">\N{EN DASH}</span>')
    if value == "":
        return Markup('<span class="muted">(empty)</span>')
    return _isolated(str(value), longest)


@lru_cache(maxsize=4096)  # what was observed and expected repeats from resource to resource
def _isolated(value: str, longest: int) -> Markup:
    kept, cut = text.shortened(value, longest)
    return _START + _marked(kept) + _END + _cut_note(cut)


def brief(value: object) -> Markup:
    """A name in a line that stands for a folded part."""
    return name(value, BRIEF)


def attribute(value: object) -> Markup:
    """A name inside an attribute's value, whole."""
    return escape(text.visible(str(value)))


def grouped(number: int | None) -> Markup:
    """A whole number; with more than twelve digits it may wrap at its separators, so that no table is wider than the page."""
    digits = text.grouped(number).split(",")
    return Markup(",<wbr>" if len(digits) > 4 else ",").join(digits)


def code(value: str) -> Markup:
    """A command or a rule, line by line; options such as ``--add-config`` do not wrap at their hyphens."""
    lines = []
    for line in value.strip().split("\n"):
        marked = (_marked(word) for word in line.split(" "))
        lines.append(Markup(" ").join(Markup("<span>{}</span>").format(word) if _OPTION.fullmatch(word) else word for word in marked))
    return Markup("\n").join(lines)


def prose(value: str | Sequence[str] | None) -> Markup:
    """One text, or several in sequence, as paragraphs."""
    several = [value or ""] if value is None or isinstance(value, str) else value
    parts = [part for one in several for part in text.paragraphs(one)]
    return Markup("").join(Markup("<p>{}</p>").format(finalize(part)) for part in parts)
