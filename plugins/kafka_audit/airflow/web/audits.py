"""The pages of audits: their list, and each audit's report and files."""

from functools import partial

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.models.dagrun import DagRun
from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response
from sqlalchemy import select

from kafka_audit.airflow.web.access import AskedAudit, Rights, root
from kafka_audit.airflow.web.answers import DOCS_POLICY, HTML, INERT, REPORT_POLICY, page, served
from kafka_audit.audit.clusters import of_kind
from kafka_audit.audit.formats import REPORT_FILES
from kafka_audit.audit.listing import FoundAudit, ListedAudit, audit_of_run, newest_audits, read_audit, with_checked_report
from kafka_audit.audit.request import DAG_ID, audit_id_of
from kafka_audit.audit.reviews import reviews_of
from kafka_audit.errors import IntegrityError
from kafka_audit.index.read import open_index
from kafka_audit.index.shown import without_root
from kafka_audit.store.layout import Audit

router = APIRouter()

_DOWNLOADS = {one.file: one.media_type for name, one in REPORT_FILES.items() if name != "html"}


@router.get("/audits/")
def audits(request: Request, may_read: Rights) -> Response:
    """The newest audits of all clusters."""
    return page(request, "audits.html.j2", found=newest_audits(root(), may_read, read=listed))


def listed(found: FoundAudit) -> ListedAudit:
    """One audit: what its index says, which is small, or else its report."""
    try:
        overview = None if found.failures() else open_index(Audit(path=found.folder)).overview
    except (IntegrityError, OSError):
        overview = None
    if overview is None:
        return read_audit(found)
    return ListedAudit(
        **vars(found),
        verdict=overview.verdict,
        sample=overview.sample,
        coverage=overview.coverage,
        generated_at=overview.generated_at[:19].replace("T", " "),
        reasons=overview.not_written,
    )


@router.get("/dags/{dag_id}/runs/{run_id}")
def audit_of_a_run(request: Request, dag_id: str, run_id: str, may_read: Rights, session: SessionDep) -> Response:
    """The audit of a run: the tab "Audit report" opens it."""
    if not of_kind(dag_id, DAG_ID):
        return page(request, "no_audit.html.j2", status_code=404, message=f"Only runs of {DAG_ID} have an audit report.")
    run = select(DagRun.run_after).where(DagRun.dag_id == dag_id, DagRun.run_id == run_id)
    run_after = session.scalar(run) if may_read(dag_id) else None
    if run_after is None:
        return page(request, "no_audit.html.j2", status_code=404, message="There is no such run, or you may not read it.")
    found = audit_of_run(root(), dag_id, run_id, audit_id_of(dag_id, run_id, run_after), may_read)
    if found is None:
        message = "This run has not begun its audit: the task plan is waiting, or it refused the run's parameters (see its log)."
        return page(request, "no_audit.html.j2", message=message)
    return RedirectResponse(f"../../../audits/{found.cluster}/{found.audit_id}/")


@router.get("/audits/{cluster}/{audit_id}/")
def audit(request: Request, found: AskedAudit) -> Response:
    """One audit with its report, and the reviews of a failed one."""
    shown, reviews = with_checked_report(listed(found)), reviews_of(root(), found.cluster, found.audit_id)
    return page(request, "audit.html.j2", audit=shown, reviews=reviews, told=partial(without_root, root()))


@router.get("/audits/{cluster}/{audit_id}/report.html")
def report(request: Request, found: AskedAudit) -> Response:
    """The report alone."""
    return _file(request, found, "report/report.html", policy=REPORT_POLICY, media_type=HTML)


@router.get("/audits/{cluster}/{audit_id}/reviews/{review_id}/waivers.yaml")
def proposed_waivers(found: AskedAudit, review_id: str) -> Response:
    """The waivers that an acceptance proposes; only of a review that can be relied on."""
    reviews = reviews_of(root(), found.cluster, found.audit_id)
    path = next((one.waivers_file for one in reviews if one.review_id == review_id), None)
    return served(path, INERT, "application/yaml", filename=f"{found.cluster}-{review_id}-waivers.yaml")


@router.get("/audits/{cluster}/{audit_id}/data-docs/{name}")
def data_docs(request: Request, found: AskedAudit, name: str) -> Response:
    """A page of the gates' Data Docs."""
    if not name.endswith(".html"):
        raise HTTPException(status_code=404, detail="only pages of the Data Docs can be read")
    return _file(request, found, f"gate/data_docs/{name}", policy=DOCS_POLICY, media_type=HTML)


@router.get("/audits/{cluster}/{audit_id}/{name}")
def download(request: Request, found: AskedAudit, name: str) -> Response:
    """The report in another format."""
    media_type = _DOWNLOADS.get(name)
    if media_type is None:
        raise HTTPException(status_code=404, detail=f"only {', '.join(_DOWNLOADS)} can be downloaded")
    filename = f"{found.cluster}-{found.audit_id}-{name}"
    return _file(request, found, f"report/{name}", policy=INERT, media_type=media_type, filename=filename)


def _file(request: Request, found: FoundAudit, name: str, *, policy: str, media_type: str, filename: str | None = None) -> Response:
    """A file of an audit; 404 where there is none, and a page that says why (500) if it is not as it was sealed."""
    try:
        path = found.file(name)
    except (IntegrityError, OSError) as problem:
        message = f"This file is not shown: {without_root(root(), problem)}."
        return page(request, "no_audit.html.j2", status_code=500, message=message)
    return served(path, policy, media_type, filename=filename)
