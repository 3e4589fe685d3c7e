"""Writes all findings of an audit as CSV, one row for each control and resource, which a spreadsheet opens without running anything.

Unlike the other formats it is not limited to the findings that a report lists: it reads the audit's Parquet files batch by batch.
"""

import re
from collections.abc import Collection
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.findings import Status
from kafka_audit.report.rows import batches, exists
from kafka_audit.safe_text import visible

COLUMNS = (
    *("code", "control_id", "title", "subject", "resource", "topic", "partition", "broker_id", "group_id", "status", "severity"),
    *("catalogue_severity", "tier", "evidence_class", "observed", "expected", "reason", "waiver", "loosened", "evidence"),
    "rule_sha256",
)
"""The columns, as in findings.parquet; after them comes ``waived``: true if the failure is covered by a waiver that is in force."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters that make a spreadsheet compute a cell, also in their full-width form."""

_AFTER_SEMICOLON = re.compile(rf"(?<=;)(?=[\s\"']*[{re.escape(''.join(_FORMULA))}])")
"""Where a spreadsheet begins a cell that it computes if it takes the semicolon for the separator, as it does where commas are decimal."""
_MAY_COMPUTE = "^[ \"']*[=+@-]|;"
"""In a text of printable ASCII: where a cell may need an apostrophe."""
_ROWS_AT_ONCE = 8_192


def write(folder: Path, waivers: Collection[str], target: BinaryIO) -> None:
    """Write the findings of the audit in ``folder``; ``waivers`` are the ids of those that cover failures.

    UTF-8 with a byte order mark, so that spreadsheets read names that are not ASCII. IntegrityError if a findings file is broken.
    """
    target.write(b"\xef\xbb\xbf")
    fields = [(name, pa.int32() if name in ("partition", "broker_id") else pa.string()) for name in COLUMNS]
    schema = pa.schema([*fields, ("waived", pa.bool_())])
    ids = pa.array(sorted(waivers), pa.string())
    with csv.CSVWriter(target, schema, write_options=csv.WriteOptions(quoting_style="needed")) as writer:
        for part in (SETTINGS, LAG):
            path = folder / part / "findings.parquet"
            for table in batches(path, COLUMNS, rows=_ROWS_AT_ONCE) if exists(path) else ():
                writer.write_table(_rows(table, ids, schema))


def _rows(table: pa.Table, waivers: pa.Array, schema: pa.Schema) -> pa.Table:
    failed = pc.equal(table["status"], Status.FAIL.value)
    waived = pc.and_(failed, pc.is_in(table["waiver"], value_set=waivers))
    columns = [_cells(table[name]) if schema.field(name).type == pa.string() else table[name] for name in COLUMNS]
    return pa.table([*columns, waived], names=schema.names).cast(schema)


def _cells(column: pa.ChunkedArray) -> pa.Array:
    """The column with what :func:`cell` makes of each text; most texts are plain and stay as they are, without a look by Python."""
    texts = column.combine_chunks()
    plain = pc.and_(pc.ascii_is_printable(texts), pc.invert(pc.match_substring_regex(texts, _MAY_COMPUTE)))
    odd = pc.fill_null(pc.invert(plain), False)
    if not pc.any(odd).as_py():
        return texts
    return pc.replace_with_mask(texts, odd, pa.array([cell(value) for value in texts.filter(odd).to_pylist()], pa.string()))


def cell(text: str) -> str:
    """Text that a spreadsheet shows as it is: invisible characters spelled out, and an apostrophe before what it would compute."""
    shown = _AFTER_SEMICOLON.sub("'", visible(text))
    return f"'{shown}" if shown.lstrip(" \"'").startswith(_FORMULA) else shown
