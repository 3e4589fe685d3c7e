"""Reduce a rendered HTML page to plain text structure that needs no network and runs nothing."""

import html
from html.parser import HTMLParser

STYLE = (
    "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:75rem;padding:0 1rem;color:#1b1f24;background:#fff}"
    "table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}"
    "th,td{border:1px solid #c9d1d9;padding:.35rem .5rem;text-align:left;vertical-align:top}"
    "th,.rule{white-space:nowrap}.facts td,td:last-child{overflow-wrap:anywhere}"
    "th{background:#f3f5f7}h1{font-size:1.5rem}h5,h6{font-size:1.05rem;margin:1.2rem 0 .3rem}"
    ".PASS{color:#116329;font-weight:600}.FAIL,.ERROR,.VACUOUS{color:#a40e26;font-weight:600}"
    "@media print{body{margin:0;max-width:none}}"
)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_KEPT = frozenset(
    {"br", "hr", "b", "em", "code", "small", "span", "strong", "div", "p", "pre", "ol", "ul", "li"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"}
)
_VOID = frozenset({"br", "hr"})
# Whole parts of a Data Docs page that only work with scripts or fetched files, or that advertise; so does its side bar ("sticky").
_DROPPED = frozenset(
    {"script", "style", "nav", "footer", "button", "form", "label", "svg", "iframe", "object", "noscript", "head", "title", "template"}
)
# Font Awesome draws the only sign of success or failure; without the font there is none.
_MARKS = {"text-success": "PASS", "text-danger": "FAIL", "text-warning": "ERROR"}


def page(title: str, body: str) -> str:
    """A whole HTML document around ``body`` (trusted HTML); a content policy forbids it to load or run anything."""
    policy = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    head = f"{policy}<title>{html.escape(title)}</title><style>{STYLE}</style>"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def mark(status: str) -> str:
    """A status as a word, coloured."""
    return f'<span class="{html.escape(status)}">{html.escape(status)}</span>'


def plain_body(rendered: str) -> str:
    """The text and tables of a rendered page without its links, scripts, styles, images and ids; status icons become words."""
    reader = _Reader()
    reader.feed(rendered)
    reader.close()
    return "".join(reader.parts)


class _Reader(HTMLParser):
    """Copies an allow-list of elements without their attributes (but for spans of cells)."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._dropping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep, replace or drop an element."""
        given = dict(attrs)
        words = (given.get("class") or "").split()
        if self._dropping:
            if tag == self._dropping[-1]:
                self._dropping.append(tag)
        elif tag in _DROPPED or "sticky" in words or ("hidden" in given and tag not in _VOID):
            self._dropping.append(tag)
        elif tag == "i":
            self.parts += [mark(_MARKS[word]) + " " for word in words if word in _MARKS]
        elif tag in _KEPT:
            spans = "".join(f' {name}="{value}"' for name, value in attrs if name in ("colspan", "rowspan") and (value or "").isdigit())
            self.parts.append(f"<{tag}{spans}>")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """``<br/>`` and the like; a self-closed script or style still opens one, as browsers read it."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Close what was kept."""
        if self._dropping:
            if tag == self._dropping[-1]:
                self._dropping.pop()
        elif tag in _KEPT and tag not in _VOID:
            self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Text between kept elements, escaped again; runs of white space are one space."""
        if not self._dropping:
            words = " ".join(data.split())
            self.parts.append(f"{html.escape(words)} " if words else "\n" if "\n" in data and self.parts[-1:] != ["\n"] else "")
