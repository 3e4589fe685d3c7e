"""The web pages of the Airflow UI: the list of audits, and each audit's report and files, for people who may read runs of its DAG."""

# No "from __future__ import annotations": FastAPI could not resolve the dependency types that are defined inside app().
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy import select

from kafka_audit.audit.clusters import of_kind
from kafka_audit.audit.formats import REPORT_FILES
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.listing import FoundAudit, MayRead, audit_of_run, find_audit, newest_audits, read_audit
from kafka_audit.audit.request import DAG_ID, audit_id_of
from kafka_audit.safe_text import visible
from kafka_audit.store.layout import EvidenceRoot

_HTML = "text/html; charset=utf-8"

_EVERY_PAGE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "private, no-store"}
_INERT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
PAGE_POLICY = f"{_INERT}; frame-src 'self'"
# Names from the cluster are in the report: it runs nothing, and as an opaque origin it could reach nothing.
REPORT_POLICY = f"{_INERT}; sandbox allow-popups allow-popups-to-escape-sandbox"
# No sandbox: from an opaque origin the links between these pages would be followed without the login cookie.
DOCS_POLICY = _INERT
_DOWNLOADS = {one.file: one.media_type for name, one in REPORT_FILES.items() if name != "html"}


@cache
def _pages() -> Environment:
    folder = Path(__file__).parent / "templates"
    made = Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    # What stands in an audit's files comes from the cluster and from whoever holds the folder.
    made.filters["visible"] = lambda text: "\n".join(visible(line) for line in str(text).split("\n"))
    return made


def app() -> FastAPI:
    """The FastAPI application. Every route needs a login, and shows only audits of DAGs whose runs the person may read.

    What a person may not read is answered as what does not exist: 404, with the same words.
    """

    # The interactive API pages would be public: they are outside the dependencies.
    web = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(get_user)])

    @web.middleware("http")
    async def on_every_answer(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Refusals too: a kept "404" would hide an audit that a person may read meanwhile."""
        response = await answer(request)
        for name, value in {"Content-Security-Policy": _INERT, **_EVERY_PAGE}.items():
            response.headers.setdefault(name, value)
        return response

    def rights(user: Annotated[BaseUser, Depends(get_user)]) -> MayRead:
        @cache  # for this request
        def may_read(dag_id: str) -> bool:
            dag = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
            return get_auth_manager().is_authorized_dag(method="GET", access_entity=DagAccessEntity.RUN, details=dag, user=user)

        return may_read

    Rights = Annotated[MayRead, Depends(rights)]

    def asked(cluster: str, audit_id: str, may_read: Rights) -> FoundAudit:
        found = find_audit(_root(), cluster, audit_id, may_read)
        if found is None:
            raise HTTPException(status_code=404, detail="there is no such audit")
        return found

    Asked = Annotated[FoundAudit, Depends(asked)]

    def page(template: str, *, status_code: int = 200, **facts: object) -> Response:
        text = _pages().get_template(template).render(**facts)
        return HTMLResponse(text, status_code=status_code, headers={"Content-Security-Policy": PAGE_POLICY})

    def served(path: Path | None, policy: str, media_type: str, **more: Any) -> Response:  # noqa: ANN401  (FileResponse's own)
        if path is None:
            raise HTTPException(status_code=404, detail="this audit has no such file")
        return FileResponse(path, media_type=media_type, headers={"Content-Security-Policy": policy}, **more)

    @web.get("/")
    def audits(may_read: Rights) -> Response:
        return page("audits.html.j2", found=newest_audits(_root(), may_read))

    @web.get("/dags/{dag_id}/runs/{run_id}")
    def audit_of_a_run(dag_id: str, run_id: str, may_read: Rights, session: SessionDep) -> Response:
        if not of_kind(dag_id, DAG_ID):
            return page("no_audit.html.j2", status_code=404, message=f"Only runs of {DAG_ID} have an audit report.")
        run = select(DagRun.run_after).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
        run_after = session.scalar(run) if may_read(dag_id) else None
        if run_after is None:
            return page("no_audit.html.j2", status_code=404, message="There is no such run, or you may not read it.")
        found = audit_of_run(_root(), dag_id, run_id, audit_id_of(dag_id, run_id, run_after), may_read)
        if found is None:
            message = "This run has not begun its audit: the task plan is waiting, or it refused the run's parameters (see its log)."
            return page("no_audit.html.j2", message=message)
        return RedirectResponse(f"../../../audits/{found.cluster}/{found.audit_id}/")

    @web.get("/audits/{cluster}/{audit_id}/")
    def audit(found: Asked) -> Response:
        return page("audit.html.j2", audit=read_audit(found))

    @web.get("/audits/{cluster}/{audit_id}/report.html")
    def report(found: Asked) -> Response:
        return served(found.file("report", "report.html"), REPORT_POLICY, _HTML)

    @web.get("/audits/{cluster}/{audit_id}/data-docs/{name}")
    def data_docs(found: Asked, name: str) -> Response:
        return served(found.file("gate", "data_docs", name) if name.endswith(".html") else None, DOCS_POLICY, _HTML)

    @web.get("/audits/{cluster}/{audit_id}/{name}")
    def download(found: Asked, name: str) -> Response:
        media_type = _DOWNLOADS.get(name)
        if media_type is None:
            raise HTTPException(status_code=404, detail=f"only {', '.join(_DOWNLOADS)} can be downloaded")
        return served(found.file("report", name), _INERT, media_type, filename=f"{found.cluster}-{found.audit_id}-{name}")

    return web


def _root() -> EvidenceRoot:
    return EvidenceRoot(path=audit_root())
