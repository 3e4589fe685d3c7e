"""The formats that a report can be written in: names, files and media types. ``report/formats.py`` has what writes each.

Nothing here is slow to import: DAG files, the trigger form and the web pages need the names, and none of the renderers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ReportFile:
    """One format: its name for people, and its file in the audit's report folder."""

    label: str
    file: str
    media_type: str


@dataclass(frozen=True, kw_only=True)
class NotWritten:
    """A format that was asked for and could not be written: its name in the table, the file that is missing, and the error in words."""

    format: str
    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file} could not be written and is missing ({self.reason})"


REPORT_FILES: Mapping[str, ReportFile] = {
    "html": ReportFile(label="HTML", file="report.html", media_type="text/html; charset=utf-8"),
    "pdf": ReportFile(label="PDF", file="report.pdf", media_type="application/pdf"),
    "json": ReportFile(label="JSON", file="report.json", media_type="application/json"),
    "junit": ReportFile(label="JUnit", file="junit.xml", media_type="application/xml"),
    "sarif": ReportFile(label="SARIF", file="report.sarif", media_type="application/sarif+json"),
    "ocsf": ReportFile(label="OCSF", file="report.ocsf.json", media_type="application/json"),
    "oscal": ReportFile(label="OSCAL", file="report.oscal.json", media_type="application/oscal+json"),
    "csv": ReportFile(label="CSV of all findings", file="findings.csv", media_type="text/csv; charset=utf-8"),
    "markdown": ReportFile(label="Markdown", file="summary.md", media_type="text/markdown; charset=utf-8"),
    "openmetrics": ReportFile(
        label="OpenMetrics", file="metrics.prom", media_type="application/openmetrics-text; version=1.0.0; charset=utf-8"
    ),
}

ALWAYS = ("html", "json")
"""The page is what people open, and the outcome and the list of audits are read from the JSON."""

DEFAULT_FORMATS = tuple(name for name in ("html", "pdf", "json", "junit", "sarif") if name in REPORT_FILES)


def not_written(found: object) -> tuple[NotWritten, ...]:
    """The missing formats as ``report.json`` and an audit's manifest list them; whatever else stands there names none."""
    listed = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return tuple(NotWritten(**{name: str(one.get(name)) for name in ("format", "file", "reason")}) for one in listed)


def shown_file(report: Path) -> Path | None:
    """The file of a report's folder that a person opens: the page, or report.json if the page could not be written; None without both."""
    return next((file for name in ALWAYS if (file := report / REPORT_FILES[name].file).is_file()), None)


def once_more(missing: Iterable[NotWritten], audit: str) -> str:
    """How to write formats that are missing, as a sentence; ``audit`` is the folder of the sealed audit."""
    return f"To try again: kafka-audit report {audit} --formats {','.join(one.format for one in missing)}"


def read_formats(text: str) -> tuple[str, ...]:
    """The formats of a list that is separated by commas, in the order of the table; ValueError names what is none."""
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in REPORT_FILES]
    if unknown:
        said = ", ".join(repr(name) for name in unknown)
        raise ValueError(f"{said:.200} is no format of a report: write some of {', '.join(REPORT_FILES)}, separated by commas")
    return tuple(name for name in REPORT_FILES if name in names)
