"""Makes text from a cluster inert in the formats that other tools read: nothing in it becomes markup, a link, a placeholder or a command.

Names stay exact in their ``kafka://`` names; a text may spell out characters and be cut.
"""

import json
import math
import re
from functools import lru_cache

from kafka_audit import safe_text

_LONGEST = 2000
_LINK = "]("
_FULL_WIDTH = {ord(one): chr(ord(one) + 0xFEE0) for one in "!#$&*:<>@[]\\^`{|}~"}
_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENDINGS = (
    "com|net|org|info|biz|dev|app|xyz|top|site|shop|club|online|store|link|click|live|cloud|tech|page|zip|mov|gov|edu|mil"
    "|email|lol|monster|support|bank|cafe|bar|life|world|today|vip|fun|icu|cyou|sbs|cfd|rest|buzz|work|win|bid|loan|men|date|party"
    "|science|stream|download|host|space|website|press|finance|money|cash|services|company|name|pro|mobi|cam|help|chat|social|digital"
)
_HOST = re.compile(rf"(?<=\bwww)\.|\.(?=(?:[a-z]{{2}}|{_ENDINGS}|xn--[a-z0-9-]+|\w*[^\W\x00-\x7f]\w*)(?![\w-]|\.\w))", re.IGNORECASE)
"""The last dot of what chats and mail programs may take for the name of a host."""


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


def chat(value: object, length: int = 120) -> str:
    """At most ``length`` characters in one line for mail, chats and pagers: no mention, link, emoji, command or formatting comes of it.

    Each of them formats text in its own way and some know no escape, so punctuation that any of them reads is replaced by its full-width
    form, which looks the same. What looks like the name of a web host gets its dot in brackets, ``example[.]com``.
    """
    kept, cut = safe_text.shortened(safe_text.visible(str(value)[: length + 1]), length)
    plain = _HOST.sub("[.]", _EDGE_UNDERSCORE.sub("\N{FULLWIDTH LOW LINE}", kept).translate(_FULL_WIDTH)).strip()
    return (plain or "without a name") + ("\N{HORIZONTAL ELLIPSIS}" if cut else "")


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
