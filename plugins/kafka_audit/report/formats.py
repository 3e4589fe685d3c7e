"""The formats that a report is written in: one module each, which renders the same Report. ``audit/formats.py`` lists the same formats."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from kafka_audit.report import html, json_report, junit, markdown, openmetrics
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
    "junit": Format(file="junit.xml", media_type="application/xml", render=junit.render),
    "markdown": Format(file="summary.md", media_type="text/markdown; charset=utf-8", render=markdown.render),
    "openmetrics": Format(
        file="metrics.prom", media_type="application/openmetrics-text; version=1.0.0; charset=utf-8", render=openmetrics.render
    ),
}


def rendered(report: Report, formats: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """The name and the content of the file of each format, in the order of the table, one after another."""
    for name, one in FORMATS.items():
        if name in formats:
            made = one.render(report)
            yield one.file, made if isinstance(made, bytes) else made.encode("utf-8", "replace")
