"""The report of an audit: an HTML page for people, and the same content as JSON and JUnit for programs.

Nothing here judges: verdicts and gate results are read from the audit's folder.
"""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_audit.report.formats import FORMATS
from kafka_audit.report.model import LIMIT, Report, read_report
from kafka_audit.report.trend import keep_figures
from kafka_audit.store.durable_files import replaced_folder
from kafka_audit.store.layout import Audit, Snapshot

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy


def write_report(audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: "Policy", *, generated_at: datetime) -> Path:
    """Write ``report.html``, ``report.json`` and ``junit.xml`` to the audit's ``report/`` folder; returns the path of the page.

    The folder is replaced as a whole. The same audit and ``generated_at`` (with a time zone) give the same bytes.
    IntegrityError (exit 5) if results are broken, CollectionError (exit 1) if the files cannot be written.
    """
    report = read_report(audit, snapshot, catalogue, policy, generated_at=generated_at)
    keep_figures(audit, snapshot, report.trend[-1])
    with replaced_folder(audit.report) as folder:
        for one in FORMATS.values():
            made = one.render(report)
            (folder / one.file).write_bytes(made if isinstance(made, bytes) else made.encode("utf-8", "replace"))
    return audit.report / "report.html"


__all__ = ["LIMIT", "Report", "read_report", "write_report"]
