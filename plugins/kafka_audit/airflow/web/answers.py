"""How pages are rendered and what a browser may do with them: templates, content security policies and headers."""

from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kafka_audit.safe_text import visible

HTML = "text/html; charset=utf-8"

_EVERY_PAGE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "private, no-store"}
_ALL = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'self'"
INERT = f"{_ALL}; form-action 'none'"
PAGE_POLICY = f"{_ALL}; form-action 'self'; frame-src 'self'"
"""Pages have search forms, which go to this server only."""
# Names from the cluster are in the report: it runs nothing, and as an opaque origin it could reach nothing.
REPORT_POLICY = f"{INERT}; sandbox allow-popups allow-popups-to-escape-sandbox"
# No sandbox: from an opaque origin the links between these pages would be followed without the login cookie.
DOCS_POLICY = INERT


@cache
def templates() -> Environment:
    """The Jinja environment of the pages; texts are escaped, and the filter ``visible`` spells out invisible characters."""
    folder = Path(__file__).parent / "templates"
    made = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    # What stands in an audit's files comes from the cluster and from whoever holds the folder.
    made.filters["visible"] = lambda text: "\n".join(visible(line) for line in str(text).split("\n"))
    return made


def page(template: str, *, status_code: int = 200, **facts: object) -> Response:
    """A page made from a template."""
    text = templates().get_template(template).render(**facts)
    return HTMLResponse(text, status_code=status_code, headers={"Content-Security-Policy": PAGE_POLICY})


def served(path: Path | None, policy: str, media_type: str, **more: Any) -> Response:  # noqa: ANN401  (FileResponse's own)
    """A file of an audit; 404 where there is none."""
    if path is None:
        raise HTTPException(status_code=404, detail="this audit has no such file")
    return FileResponse(path, media_type=media_type, headers={"Content-Security-Policy": policy}, **more)


async def with_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Give every answer the headers that keep it private; refusals too: a kept "404" would hide what a person may read meanwhile."""
    response = await answer(request)
    for name, value in {"Content-Security-Policy": INERT, **_EVERY_PAGE}.items():
        response.headers.setdefault(name, value)
    return response
