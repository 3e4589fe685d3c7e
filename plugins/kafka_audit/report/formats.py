"""What writes each format of a report: one module each, from the same Report. ``audit/formats.py`` has their files and media types."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from kafka_audit.audit.formats import REPORT_FILES
from kafka_audit.report import csv_findings, html, json_report, junit, markdown, ocsf, openmetrics, oscal, pdf, sarif
from kafka_audit.report.model import Report

RENDERERS: Mapping[str, Callable[[Report], str | bytes]] = {
    "html": html.render,
    "pdf": pdf.render,
    "json": json_report.render,
    "junit": junit.render,
    "sarif": sarif.render,
    "ocsf": ocsf.render,
    "oscal": oscal.render,
    "markdown": markdown.render,
    "openmetrics": openmetrics.render,
}
"""A report as text, or as bytes where the format is no text. CSV is not among them: it has all findings, and not only the listed ones."""


def write_formats(report: Report, audit: Path, formats: Collection[str], folder: Path) -> list[str]:
    """Write new files into ``folder``, one for each format, in the order of the table; returns their names.

    ``audit`` is the folder whose report it is. OSError when a file is there already or cannot be written.
    """
    names = []
    for name, about in REPORT_FILES.items():
        if name in formats:
            with (folder / about.file).open("xb") as target:
                if name == "csv":
                    csv_findings.write(audit, [one.id for one in report.waivers.listed if one.status == "used"], target)
                else:
                    made = RENDERERS[name](report)
                    target.write(made if isinstance(made, bytes) else made.encode("utf-8", "replace"))
            names.append(about.file)
    return names
