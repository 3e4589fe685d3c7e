"""The report of an audit: a page for people, and the same content in the other formats that are asked for.

Nothing here judges: verdicts and gate results are read from the audit's folder.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_audit.audit.formats import ALWAYS, DEFAULT_FORMATS
from kafka_audit.errors import UnforeseenError
from kafka_audit.report.formats import write_formats
from kafka_audit.report.model import LIMIT, Report, read_report
from kafka_audit.report.trend import keep_figures
from kafka_audit.store.durable_files import replaced_folder
from kafka_audit.store.layout import Audit, Snapshot

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy


def write_report(
    audit: Audit,
    snapshot: Snapshot,
    catalogue: "Catalogue",
    policy: "Policy",
    *,
    generated_at: datetime,
    formats: Iterable[str] = DEFAULT_FORMATS,
) -> Report:
    """Write the report in ``formats``, ``html`` and ``json`` in any case, to the audit's ``report/`` folder, and return it.

    The folder is replaced as a whole.
    The same audit and ``generated_at`` (with a time zone) give the same bytes.
    A format that cannot be written is left out, and the others name it (``not_written`` in report.json) with the reason.
    IntegrityError (exit 5) if results are broken, CollectionError (exit 1) if the files cannot be written, UnforeseenError (exit 1) if
    report.json cannot: it is the record from which outcome, list of audits and later formats are read.
    """
    report = read_report(audit, snapshot, catalogue, policy, generated_at=generated_at)
    keep_figures(audit, snapshot, report.trend[-1])
    with replaced_folder(audit.report) as folder:
        return _write(report, audit.path, {*formats, *ALWAYS}, folder)


def _write(report: Report, audit: Path, formats: Collection[str], folder: Path) -> Report:
    """Write the formats again without those that fail, until each says of all the others whether they are missing."""
    while missing := write_formats(report, audit, formats, folder):
        if broken := next((one for one in missing if one.format == "json"), None):
            raise UnforeseenError(f"{broken}: there is no report without it. Report this as a bug")
        for file in folder.iterdir():
            file.unlink()
        report = replace(report, not_written=(*report.not_written, *missing))
        formats = set(formats) - {one.format for one in missing}
    return report


__all__ = ["LIMIT", "Report", "read_report", "write_report"]
