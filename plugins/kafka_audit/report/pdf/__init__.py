"""Writes the report as one PDF, which a person hands over: set by typst, whose wheel contains the typesetter and its fonts.

The content goes to the templates as JSON, and no template evaluates text: a name from the cluster is always only text. The typesetter
can read the folder of the templates and nothing else; none of them imports a package, so nothing is downloaded.
"""

import json
from functools import cache
from pathlib import Path

from kafka_audit import __version__
from kafka_audit.errors import CollectionError
from kafka_audit.report.model import Report
from kafka_audit.report.pdf import appendix, failures, frameworks, front, lag, policy
from kafka_audit.report.pdf.letters import drawable, prepared

try:
    import typst
except ImportError as missing:  # costs the PDF and no other format: see render
    NOT_INSTALLED: ImportError | None = missing
else:
    NOT_INSTALLED = None

TEMPLATES = Path(__file__).parent.parent / "templates" / "pdf"


@cache
def fonts() -> "typst.Fonts":
    """The fonts in typst's wheel; those of the machine are left out, so that every machine writes the same file."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)


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
    if NOT_INSTALLED is not None:
        raise CollectionError(f"report.pdf could not be set: typst cannot be loaded ({NOT_INSTALLED})") from NOT_INSTALLED
    title = drawable(f"Kafka reliability audit of {report.cluster or 'an unnamed cluster'}")
    about = {"title": title, "author": f"kafka-audit {__version__}", "keywords": [report.audit_id, report.outcome.verdict]}
    given = {"document": json.dumps(about), "content": json.dumps(prepared(content(report)))}
    nowhere = TEMPLATES / "no-packages"
    try:
        compiler = typst.Compiler(
            TEMPLATES / "report.typ",
            root=TEMPLATES,
            font_paths=fonts(),
            sys_inputs=given,
            package_path=nowhere,
            package_cache_path=nowhere,
        )
        made = compiler.compile(format="pdf", pdf_standards=["a-2a", "ua-1"], timestamp=report.generated_at.replace(microsecond=0))
    except BaseException as problem:
        # A panic of the typesetter is no Exception, but it ends neither this process nor the other formats.
        if not isinstance(problem, typst.TypstError) and type(problem).__name__ != "PanicException":
            raise
        raise CollectionError(f"report.pdf could not be set ({problem}): report this as a bug, with the audit's report.json") from problem
    if not isinstance(made, bytes):
        raise CollectionError("report.pdf could not be set: typst returned no document; report this as a bug")
    return made
