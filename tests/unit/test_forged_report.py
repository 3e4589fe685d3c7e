"""An audit that somebody made by hand, with hashes that fit, is rendered as text or refused: it injects nothing and breaks no command."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packed_audits import sealed_audit
from sealed_audits import forge

from kafka_audit.errors import IntegrityError
from kafka_audit.report import html, markdown
from kafka_audit.report.sealed_report import checked_audit, report_of
from kafka_audit.store.chain_state import STATE

MARKUP = "<script>@octo/team</script> | x ![y](//z)\x1b[31m"
DEEP = '{"a":' * 50_000 + "1" + "}" * 50_000


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    return sealed_audit(tmp_path / "root")


def _with_hashes(audit: Path) -> None:
    forge(audit)
    (audit.parent / STATE).unlink()


def _column(audit: Path, name: str, text: str) -> None:
    [path] = (audit / "settings" / "findings.parquet").glob("*.parquet")
    table = pq.read_table(path)
    values = pa.array([text] * len(table))
    pq.write_table(table.set_column(table.schema.get_field_index(name), name, values), path)
    _with_hashes(audit)


def _record(audit: Path, name: str, **changes: object) -> None:
    record = json.loads((audit / name).read_text())
    (audit / name).write_text(json.dumps({**record, **changes}))
    _with_hashes(audit)


def test_evidence_of_any_depth_is_shown_as_text(audit: Path) -> None:
    _column(audit, "evidence", DEEP)
    assert "&#34;a&#34;:" in html.render(report_of(checked_audit(audit)))


@pytest.mark.parametrize("name", ["severity", "code", "title", "resource"])
def test_no_column_of_the_findings_becomes_markup_in_the_summary(audit: Path, name: str) -> None:
    _column(audit, name, MARKUP)
    text = markdown.render(report_of(checked_audit(audit)))
    assert "\x1b" not in text
    assert "<script" not in text.replace("\\<", "")
    assert "@octo" not in text.replace("`@`", "")


Forge = Callable[[Path], None]


@pytest.mark.parametrize(
    "change",
    [
        lambda audit: _record(audit, "report/report.json", generated_at="9999-12-31T23:59:59-23:00"),
        lambda audit: _record(audit, "gate/findings.json", coverage={"assessed": 10**400, "applicable": 1}),
    ],
    ids=["a time outside of the calendar", "more results than numbers"],
)
def test_a_record_that_no_format_could_hold_is_refused(audit: Path, change: Forge) -> None:
    change(audit)
    with pytest.raises(IntegrityError):
        report_of(checked_audit(audit))
