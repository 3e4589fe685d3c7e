"""How pages are rendered and what a browser may do with them: templates, content security policies and headers."""

import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from fastapi import HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from kafka_audit.airflow.web import marks
from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.safe_text import visible

log = logging.getLogger(__name__)

HTML = "text/html; charset=utf-8"

_EVERY_PAGE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "private, no-store"}
_ALL = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; frame-ancestors 'self'"
INERT = f"{_ALL}; form-action 'none'"
_TEMPLATES = Path(__file__).parent / "templates"
_THEME = (_TEMPLATES / "theme.js").read_text(encoding="utf-8")
_THEME_HASH = b64encode(sha256(_THEME.encode()).digest()).decode()
PAGE_POLICY = f"{_ALL}; form-action 'self'; frame-src 'self'; script-src 'sha256-{_THEME_HASH}'"
"""Pages have search forms, which go to this server only, and one script, of which nothing but these bytes runs.

Airflow keeps the mode that a person chose (light, dark or system) in the browser's local storage only, so a page that is to be as light or
as dark has to read it there (``theme.js``). Without the script, or without a choice, the mode is the system's.
"""
# Names from the cluster are in the report: it runs nothing, and as an opaque origin it could reach nothing.
REPORT_POLICY = f"{INERT}; sandbox allow-popups allow-popups-to-escape-sandbox"
# No sandbox: from an opaque origin the links between these pages would be followed without the login cookie.
DOCS_POLICY = INERT


@cache
def templates() -> Environment:
    """The Jinja environment of the pages; texts are escaped, and the filter ``visible`` spells out invisible characters."""
    made = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    # What stands in an audit's files comes from the cluster and from whoever holds the folder.
    made.filters["visible"] = lambda text: "\n".join(visible(line) for line in str(text).split("\n"))
    made.filters |= marks.FILTERS
    made.globals["sparkline"] = marks.sparkline
    made.globals["theme_script"] = Markup(_THEME)
    return made


def render(template: str, *, up: str, framed: bool = False, **facts: object) -> str:
    """The text of a page. ``up``: the relative address of the first page, as seen from this one, such as ``../../``.

    Addresses are relative, because Airflow may be served below a path. ``framed``: the page is shown within a page of Airflow, whose
    frame lets no link out: those to Airflow's own pages are left away.
    """
    return templates().get_template(template).render(up=up, framed=framed, **facts)


def page(request: Request, template: str, *, status_code: int = 200, **facts: object) -> Response:
    """A page made from a template; ``up`` and ``framed`` (see :func:`render`) come from the request."""
    text = render(template, up=way_up(request), framed=is_framed(request), **facts)
    # The same address is answered differently within a frame.
    headers = {"Content-Security-Policy": PAGE_POLICY, "Vary": "Sec-Fetch-Dest"}
    # Half a character of a broken name has no UTF-8.
    return HTMLResponse(text.encode("utf-8", "backslashreplace"), status_code=status_code, headers=headers)


def way_up(request: Request) -> str:
    """The relative address of the first page, as seen from the one that was asked for: ``../`` for each folder of its address."""
    path = str(request.scope["path"]).removeprefix(str(request.scope.get("root_path", "")))
    return "../" * (path.count("/") - 1)


def is_framed(request: Request) -> bool:
    """Whether the browser says that it shows the answer in a frame (Fetch Metadata, Sec-Fetch-Dest)."""
    return request.headers.get("sec-fetch-dest") == "iframe"


def served(path: Path | None, policy: str, media_type: str, **more: Any) -> Response:  # noqa: ANN401  (FileResponse's own)
    """A file of an audit; 404 where there is none."""
    if path is None:
        raise HTTPException(status_code=404, detail="this audit has no such file")
    return FileResponse(path, media_type=media_type, headers={"Content-Security-Policy": policy}, **more)


def refused(request: Request, problem: Exception) -> Response:
    """A page without a trace: what is wrong with the installation's settings, or that the root cannot be read.

    Only the log says where the root lies and what is wrong there: the person may not have the right to read that cluster.
    """
    if isinstance(problem, ConfigurationError):
        return page(request, "no_audit.html.j2", status_code=500, message=str(problem))
    log.error("%s is not answered: %s", visible(request.url.path), visible(str(problem)))
    unreachable = isinstance(problem, CollectionError)
    what = "The store of the audits cannot be read now" if unreachable else "What is stored for this page cannot be used"
    message = f"{what}: the log of Airflow's API server says why."
    return page(request, "no_audit.html.j2", status_code=503 if unreachable else 500, message=message)


async def with_headers(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
    """Give every answer the headers that keep it private; refusals too: a kept "404" would hide what a person may read meanwhile."""
    response = await answer(request)
    for name, value in {"Content-Security-Policy": INERT, **_EVERY_PAGE}.items():
        response.headers.setdefault(name, value)
    return response
