"""Writes the files of a fleet report."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.report.fleet.document import as_pdf
from kafka_audit.report.fleet.matrix import Fleet
from kafka_audit.report.fleet.page import as_html
from kafka_audit.report.fleet.table import as_csv
from kafka_audit.report.sealed_report import refuse_sealed_place
from kafka_audit.store.durable_files import make_folder, new_file, write_failed
from kafka_audit.store.layout import EvidenceRoot

FORMATS: Mapping[str, str] = {"html": "fleet.html", "pdf": "fleet.pdf", "csv": "fleet.csv"}
"""The formats and their files."""

_RENDERERS = {"html": as_html, "pdf": as_pdf, "csv": as_csv}


def read_formats(text: str) -> tuple[str, ...]:
    """The formats of a list that is separated by commas; ConfigurationError (exit 2) names what is none."""
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in FORMATS]
    if unknown:
        said = ", ".join(repr(name) for name in unknown)
        raise ConfigurationError(
            f"--formats: {said:.200} is no format of a fleet report: write some of {', '.join(FORMATS)}, separated by commas"
        )
    return tuple(name for name in FORMATS if name in names)


def write_fleet(fleet: Fleet, root: EvidenceRoot, formats: Collection[str], to: Path) -> list[Path]:
    """Write the files to the folder ``to``, which is made if it is missing; returns their paths. The same fleet gives the same bytes.

    A PDF that cannot be set is missing: the others are written, then CollectionError (exit 1) names it.
    ConfigurationError (exit 2) when a file is there already, or when ``to`` lies among the sealed folders of the root or in another one.
    """
    refuse_sealed_place(root.path, to)
    files = {name: to / FORMATS[name] for name in formats}
    for file in files.values():
        if os.path.lexists(file):
            raise ConfigurationError(f"{file} is there already and is not overwritten: name another folder with --to")
    made: dict[str, bytes] = {}
    missing: CollectionError | None = None
    for name in files:
        try:
            made[name] = _RENDERERS[name](fleet)
        except CollectionError as problem:
            missing = problem
    try:
        make_folder(to)
    except OSError as problem:
        raise write_failed(to, problem) from problem
    for name, content in made.items():
        with new_file(files[name]) as target:
            target.write(content)
    if missing is not None:
        raise missing
    return list(files.values())
