"""Sets a document with typst, whose wheel contains the typesetter and its fonts.

The content goes to the templates as JSON, and no template evaluates text: a name from the cluster is always only text. The typesetter
can read the folder of the templates and nothing else; none of them imports a package, so nothing is downloaded.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path

from kafka_audit import __version__
from kafka_audit.errors import CollectionError
from kafka_audit.report.pdf.letters import drawable, prepared

try:
    import typst
except ImportError as missing:  # costs the PDF and no other format: see typeset
    NOT_INSTALLED: ImportError | None = missing
else:
    NOT_INSTALLED = None

TEMPLATES = Path(__file__).parent.parent / "templates" / "pdf"


@cache
def fonts() -> "typst.Fonts":
    """The fonts in typst's wheel; those of the machine are left out, so that every machine writes the same file."""
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=True)


def typeset(
    template: str, content: Mapping[str, object], *, title: str, keywords: Sequence[str], made_at: datetime, file: str, source: str
) -> bytes:
    """Set ``template`` with ``content`` as a PDF (PDF/A-2a and PDF/UA-1); the same arguments give the same bytes.

    ``made_at`` is the creation date, to the second. ``file`` and ``source`` are named if the document cannot be set: the file that is
    missing then, and the file that a bug report needs. CollectionError (exit 1) in that case.
    """
    if NOT_INSTALLED is not None:
        raise CollectionError(f"{file} could not be set: typst cannot be loaded ({NOT_INSTALLED})") from NOT_INSTALLED
    about = {"title": drawable(title), "author": f"kafka-audit {__version__}", "keywords": [drawable(one) for one in keywords]}
    nowhere = TEMPLATES / "no-packages"
    given = {"document": json.dumps(about), "content": json.dumps(prepared(content))}
    try:
        compiler = typst.Compiler(
            TEMPLATES / template,
            root=TEMPLATES,
            font_paths=fonts(),
            sys_inputs=given,
            package_path=nowhere,
            package_cache_path=nowhere,
        )
        made = compiler.compile(format="pdf", pdf_standards=["a-2a", "ua-1"], timestamp=made_at.replace(microsecond=0))
    except BaseException as problem:
        # A panic of the typesetter is no Exception, but it ends neither this process nor the other formats.
        if not isinstance(problem, typst.TypstError) and type(problem).__name__ != "PanicException":
            raise
        raise CollectionError(f"{file} could not be set ({problem}): report this as a bug, with {source}") from problem
    if not isinstance(made, bytes):
        raise CollectionError(f"{file} could not be set: typst returned no document; report this as a bug")
    return made
