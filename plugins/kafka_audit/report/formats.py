"""What writes each format of a report: one module each, from the same Report. ``audit/formats.py`` has their files and media types."""

import logging
import traceback
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from kafka_audit.audit.formats import REPORT_FILES, NotWritten
from kafka_audit.errors import IntegrityError
from kafka_audit.report import csv_findings, html, json_report, junit, markdown, ocsf, openmetrics, oscal, pdf, sarif
from kafka_audit.report.model import Report
from kafka_audit.safe_text import shortened, visible

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

_REASON = 500

log = logging.getLogger(__name__)


def write_formats(report: Report, audit: Path, formats: Collection[str], folder: Path) -> tuple[NotWritten, ...]:
    """Write new files into ``folder``, one for each format; returns the formats that could not be written, in the order of the table.

    ``audit`` is the folder whose report it is. A fault in what writes one format costs that format only; its traceback is logged.
    OSError when a file is there already or cannot be written, IntegrityError when the audit's results are broken: these cost all.
    """
    missing = []
    for name, about in REPORT_FILES.items():
        if name not in formats:
            continue
        target = folder / about.file
        try:
            made = None if name == "csv" else RENDERERS[name](report)
        except IntegrityError:
            raise
        except Exception as problem:  # noqa: BLE001 - the report, the seal and the outcome name it: see write_report
            missing.append(_not_written(name, problem))
            continue
        if made is not None:
            with target.open("xb") as stream:
                stream.write(made if isinstance(made, bytes) else made.encode("utf-8", "replace"))
        elif (fault := _csv(report, audit, target)) is not None:
            target.unlink()
            missing.append(_not_written(name, fault))
    return tuple(missing)


def _csv(report: Report, audit: Path, target: Path) -> Exception | None:
    """Write all findings batch by batch; the error of what writes them, after which the file is not whole."""
    with target.open("xb") as stream:
        try:
            csv_findings.write(audit, [one.id for one in report.waivers.listed if one.status == "used"], stream)
        except (IntegrityError, OSError):
            raise
        except Exception as problem:  # noqa: BLE001 - as above
            return problem
    return None


def _not_written(name: str, problem: Exception) -> NotWritten:
    kept, cut = shortened(visible(f"{type(problem).__name__}: {problem}"), _REASON)
    missing = NotWritten(format=name, file=REPORT_FILES[name].file, reason=kept + ("\N{HORIZONTAL ELLIPSIS}" if cut else ""))
    told = "".join(traceback.format_exception(problem)).splitlines()  # the error may name what a cluster chose
    log.error("%s; the other formats are written without it\n%s", missing, "\n".join(visible(line) for line in told))
    return missing
