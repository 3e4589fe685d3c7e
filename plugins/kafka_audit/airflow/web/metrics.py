"""The metrics page: figures of all clusters that the caller may read, for Prometheus."""

from fastapi import APIRouter
from fastapi.responses import Response

from kafka_audit.airflow.web.access import MeasuredClusters, root
from kafka_audit.report.metrics.page import CONTENT_TYPE, render_metrics

router = APIRouter()


@router.get("/metrics")
def metrics(readable: MeasuredClusters) -> Response:
    """OpenMetrics text; Prometheus sends the token of a user who may read runs of the audit DAGs."""
    # Not content_type as media_type: Starlette would add a second charset.
    return Response(render_metrics(root(), readable), headers={"Content-Type": CONTENT_TYPE})
