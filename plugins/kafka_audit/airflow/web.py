"""The web pages of the Airflow UI: the list of audits, and each audit's report and files, for people who may read the DAG's runs."""

# No "from __future__ import annotations": FastAPI could not resolve the dependency types that are imported inside app().
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.airflow.audit_list import LISTED, ListedAudit, audit_of_id, find_audit, newest_audits
from kafka_audit.airflow.clusters import of_kind
from kafka_audit.airflow.home import audit_root
from kafka_audit.airflow.plan import audit_id_of
from kafka_audit.airflow.request import DAG_ID
from kafka_audit.evidence import EvidenceRoot

if TYPE_CHECKING:
    from fastapi import FastAPI
    from jinja2 import Environment

_HTML = "text/html; charset=utf-8"

_EVERY_PAGE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "private, no-store"}
_INERT = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
PAGE_POLICY = f"{_INERT}; frame-src 'self'"
# Names from the cluster are in the report: it runs nothing, and as an opaque origin it could reach nothing.
REPORT_POLICY = f"{_INERT}; sandbox allow-popups allow-popups-to-escape-sandbox"
# No sandbox: from an opaque origin the links between these pages would be followed without the login cookie.
DOCS_POLICY = _INERT
_DOWNLOADS = {"report.json": "application/json", "junit.xml": "application/xml"}


@cache
def _pages() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (only the api-server renders pages)

    folder = Path(__file__).parent / "templates"
    return Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True)


def _render(template: str, **facts: object) -> str:
    return _pages().get_template(template).render(**facts)


def _below(folder: Path, name: str) -> Path | None:
    """The file ``name`` below ``folder``, or None: links and ``..`` that lead elsewhere and other files than pages are refused."""
    try:
        found = (folder / name).resolve(strict=True)
    except (OSError, ValueError):
        return None
    inside = found.is_relative_to(folder.resolve())
    return found if inside and found.is_file() and found.suffix == ".html" else None


def app() -> "FastAPI":
    """The FastAPI application. Every route needs a login with the right to read runs of the audit DAG."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity  # noqa: PLC0415
    from airflow.api_fastapi.common.db.common import SessionDep  # noqa: PLC0415
    from airflow.api_fastapi.core_api.security import requires_access_dag  # noqa: PLC0415
    from airflow.models.dagrun import DagRun
    from fastapi import Depends, FastAPI, HTTPException  # noqa: PLC0415
    from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response  # noqa: PLC0415
    from sqlalchemy import select  # noqa: PLC0415

    may_read = Depends(requires_access_dag("GET", DagAccessEntity.RUN, param_dag_id=DAG_ID))
    # The interactive API pages would be public: they are outside the dependencies.
    web = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[may_read])

    def page(template: str, *, status_code: int = 200, **facts: object) -> Response:
        headers = {**_EVERY_PAGE, "Content-Security-Policy": PAGE_POLICY}
        return HTMLResponse(_render(template, **facts), status_code=status_code, headers=headers)

    def known(cluster: str, audit_id: str) -> ListedAudit:
        found = find_audit(_root(), cluster, audit_id)
        if found is None:
            raise HTTPException(status_code=404, detail="there is no such audit")
        return found

    @web.get("/")
    def audits() -> Response:
        return page("audits.html.j2", audits=newest_audits(_root()), limit=LISTED, dag_id=DAG_ID)

    @web.get("/dags/{dag_id}/runs/{run_id}")
    def audit_of_run(dag_id: str, run_id: str, session: SessionDep) -> Response:
        run_after = session.scalar(select(DagRun.run_after).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id))
        if not of_kind(dag_id, DAG_ID) or run_after is None:
            return page("no_audit.html.j2", status_code=404, message=f"Only runs of {DAG_ID} have an audit report.")
        found = audit_of_id(_root(), audit_id_of(dag_id, run_id, run_after))
        if found is None:
            message = "This run has not begun its audit: the task plan is waiting, or it refused the run's parameters (see its log)."
            return page("no_audit.html.j2", message=message)
        return RedirectResponse(f"../../../audits/{found.cluster}/{found.audit_id}/", headers=_EVERY_PAGE)

    @web.get("/audits/{cluster}/{audit_id}/")
    def audit(cluster: str, audit_id: str) -> Response:
        return page("audit.html.j2", audit=known(cluster, audit_id))

    @web.get("/audits/{cluster}/{audit_id}/report.html")
    def report(cluster: str, audit_id: str) -> Response:
        return served(known(cluster, audit_id).folder / "report" / "report.html", REPORT_POLICY, _HTML)

    @web.get("/audits/{cluster}/{audit_id}/data-docs/{name}")
    def data_docs(cluster: str, audit_id: str, name: str) -> Response:
        found = _below(known(cluster, audit_id).folder / "gate" / "data_docs", name)
        if found is None:
            raise HTTPException(status_code=404, detail="there is no such page")
        return served(found, DOCS_POLICY, _HTML)

    @web.get("/audits/{cluster}/{audit_id}/{name}")
    def download(cluster: str, audit_id: str, name: str) -> Response:
        if name not in _DOWNLOADS:
            raise HTTPException(status_code=404, detail=f"only {', '.join(_DOWNLOADS)} can be downloaded")
        found = known(cluster, audit_id)
        return served(found.folder / "report" / name, _INERT, _DOWNLOADS[name], filename=f"{found.cluster}-{found.audit_id}-{name}")

    def served(path: Path, policy: str, media_type: str, **more: Any) -> Response:  # noqa: ANN401  (FileResponse's own)
        if not path.is_file():
            raise HTTPException(status_code=404, detail="this audit has no such file yet")
        return FileResponse(path, media_type=media_type, headers={**_EVERY_PAGE, "Content-Security-Policy": policy}, **more)

    return web


def _root() -> EvidenceRoot:
    return EvidenceRoot(path=audit_root())
