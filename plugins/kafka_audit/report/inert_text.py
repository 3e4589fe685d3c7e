"""Makes text from a cluster inert in the formats that other tools read: nothing in it becomes markup, a link, a placeholder or a command.

Names stay exact in their ``kafka://`` names; a text may spell out characters and be cut.
"""

import json
import math
from functools import lru_cache

from kafka_audit import safe_text

_LONGEST = 2000
_LINK = "]("


def line(value: object, otherwise: str = "not known") -> str:
    """At most 2,000 characters in one line, no spaces at its ends, invisible characters spelled out; ``otherwise`` for nothing."""
    return _line("" if value is None else str(value), otherwise)


@lru_cache(maxsize=1024)  # a control's texts stand in each of its results
def _line(text: str, otherwise: str) -> str:
    kept, cut = safe_text.shortened(text, _LONGEST)
    return (safe_text.visible(kept) + (f" ... {cut} more characters" if cut else "")).strip() or otherwise


def message(value: object, otherwise: str = "not known") -> str:
    """A line for a SARIF message: braces doubled (else placeholders, SARIF 3.11.5), no embedded links (3.11.6)."""
    return line(value, otherwise).replace(_LINK, "] (").replace("{", "{{").replace("}", "}}")


def markdown(value: object, otherwise: str = "not known") -> str:
    """A line for a text that is rendered as Markdown: no HTML, no entities, no links and no images."""
    plain = line(value, otherwise).replace(_LINK, "] (")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def json_value(text: str | None) -> object:
    """Evidence as JSON values with inert strings, or as a line of text if it is no JSON; None for none. Numbers are finite."""
    if not text:
        return None
    try:
        return _inert(json.loads(text))
    except (ValueError, RecursionError):
        return line(text)


def _inert(value: object) -> object:
    if isinstance(value, str):
        return safe_text.visible(value)
    if isinstance(value, dict):
        return {safe_text.visible(key): _inert(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_inert(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
