"""What the tests of PDFs share: the tools that read a PDF, and names that typst could take for something else than text."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

TYPST = (
    '#read("/etc/passwd")',
    '#import "@preview/cetz:0.3.0"',
    "= Passed\n#pagebreak()",
    "$ x^2 $ *bold* _it_ `raw` <label> @ref // comment",
    '"#{panic()}"',
    "\\u{41}",
)
UNSEEN = ("\u4e2d\u6587", "\u0645\u0631\u062d\u0628\u0627", "\U0001f4a9", "lone\ud800surrogate", "a\u0301\u0301\u0301\u0301", "\ufb1d")
LONGEST_TOPIC = "payments." + "x" * 240

needs_poppler = pytest.mark.skipif(
    shutil.which("pdftotext") is None or shutil.which("pdfinfo") is None, reason="no pdftotext on PATH: apt-get install poppler-utils"
)
needs_qpdf = pytest.mark.skipif(shutil.which("qpdf") is None, reason="no qpdf on PATH: apt-get install qpdf")


def text_of(made: bytes, *options: str) -> str:
    return subprocess.run(["pdftotext", *options, "-", "-"], input=made, capture_output=True, check=True).stdout.decode()


def unspaced(text: str) -> str:
    return re.sub(r"\s", "", text)


def says_what_it_is(file: Path, *, title: str, made: str) -> str:
    """Assert that qpdf finds the file valid, and that it is tagged, PDF/A-2a and PDF/UA-1 and has its fonts; what pdfinfo prints of it."""
    checked = subprocess.run(["qpdf", "--check", str(file)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    info = subprocess.run(["pdfinfo", str(file)], capture_output=True, text=True, check=True, env={"TZ": "UTC"}).stdout
    for said in (rf"Title: +{title}", r"Author: +kafka-audit \d", r"Tagged: +yes", r"JavaScript: +no", rf"CreationDate: +{made}"):
        assert re.search(said, info), info
    fonts_used = subprocess.run(["pdffonts", str(file)], capture_output=True, text=True, check=True).stdout.splitlines()[2:]
    assert fonts_used and all(re.search(r" yes +yes +yes +\d", line) for line in fonts_used), "embedded, as a subset, with Unicode"
    content = re.sub(rb"\s", b"", file.read_bytes())
    assert b"<pdfaid:part>2</pdfaid:part><pdfaid:conformance>A</pdfaid:conformance>" in content
    assert b"<pdfuaid:part>1</pdfuaid:part>" in content
    return info
