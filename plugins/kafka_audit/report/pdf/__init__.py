"""Writes the report as one PDF, which a person hands over."""

from kafka_audit.report.model import Report
from kafka_audit.report.pdf import appendix, failures, frameworks, front, lag, policy
from kafka_audit.report.pdf.typesetter import typeset


def content(report: Report) -> dict[str, object]:
    """All that the templates print, as texts, numbers for charts, and lists of these."""
    return {
        "front": front.content(report),
        "frameworks": frameworks.content(report),
        "failures": failures.content(report),
        "lag": lag.content(report),
        "policy": policy.content(report),
        "appendix": appendix.content(report),
    }


def render(report: Report) -> bytes:
    """Render the PDF (PDF/A-2a and PDF/UA-1); the same report gives the same bytes. CollectionError (exit 1) if it cannot be set."""
    return typeset(
        "report.typ",
        content(report),
        title=f"Kafka reliability audit of {report.cluster or 'an unnamed cluster'}",
        keywords=[report.audit_id, report.outcome.verdict],
        made_at=report.generated_at,
        file="report.pdf",
        source="the audit's report.json",
    )
