"""The formats that a report is written in: one module each, which renders the same Report."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kafka_audit.report import html, json_report, junit, pdf
from kafka_audit.report.model import Report


@dataclass(frozen=True, kw_only=True)
class Format:
    """``file``: its name in the audit's report folder; ``render``: a report as text, or as bytes where the format is no text."""

    file: str
    media_type: str
    render: Callable[[Report], str | bytes]


FORMATS: Mapping[str, Format] = {
    "html": Format(file="report.html", media_type="text/html; charset=utf-8", render=html.render),
    "json": Format(file="report.json", media_type="application/json", render=json_report.render),
    "pdf": Format(file="report.pdf", media_type="application/pdf", render=pdf.render),
    "junit": Format(file="junit.xml", media_type="application/xml", render=junit.render),
}
