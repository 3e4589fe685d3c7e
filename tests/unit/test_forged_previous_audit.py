"""Whoever may write into the evidence folder, without the key, gets no new failure called old, and stops no later audit."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_audits import TOPIC, Judged, Shop, row
from report_audit import gate
from sealed_audits import forge

from kafka_audit.audit.previous import FIGURES
from kafka_audit.report import html, pdf, sarif
from kafka_audit.report.changes import old_failures
from kafka_audit.store.chain_state import STATE
from kafka_audit.store.signing import new_key
from kafka_audit.store.signing_key import VARIABLE

FAILS, PASSES = [row(TOPIC, "orders")], [row(TOPIC, "orders", "pass")]
FINDINGS = "settings/findings.parquet"
Change = Callable[[Path], object]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "root")


def _written(name: str, text: str) -> Change:
    return lambda audit: (audit / name).write_text(text)


def _without_findings(audit: Path) -> None:
    for part in ("settings", "lag"):
        shutil.rmtree(audit / part / "findings.parquet")


@pytest.mark.parametrize(
    "change",
    [
        _written("gate/evidence.json", json.dumps(gate("evidence", "FAIL", 4))),
        _written("gate/evidence.json", "x"),
        _written(FIGURES, '{"cluster_id": "another"}'),
        _without_findings,
        lambda audit: (audit / "manifest.json").unlink(),
    ],
    ids=["looks void", "looks broken", "looks like another cluster's", "looks cut short", "is not sealed"],
)
def test_a_changed_audit_is_not_passed_over_for_an_older_one_that_had_the_failure(shop: Shop, change: Change) -> None:
    shop.audit(FAILS)
    newest = shop.audit(PASSES)
    change(newest.audit.path)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.previous, found.counts) == (newest.id, {})
    assert found.why_none


def _sign(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_key(folder / "seal.key")
    monkeypatch.setenv(VARIABLE, str(folder / "seal.key"))


def test_an_installation_that_signs_lets_nothing_through_for_an_audit_without_its_signature(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sign(tmp_path, monkeypatch)
    shop.audit(PASSES)
    monkeypatch.delenv(VARIABLE)
    forged = shop.audit(FAILS)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.previous, found.counts) == (forged.id, {})
    assert found.why_none is not None
    assert found.why_none.startswith(f"audit {forged.id} has no signature of this installation")


def test_a_signed_audit_that_was_changed_and_its_hashes_with_it_lets_nothing_through(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sign(tmp_path, monkeypatch)
    signed = shop.audit(PASSES)
    _column("status", pa.array(["fail"]))(signed.audit.path)
    _seal_by_hand(signed)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert found.counts == {}
    assert "the manifest was changed after it was signed" in str(found.why_none)


def test_an_installation_that_signs_lets_old_failures_of_its_own_audits_through(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sign(tmp_path, monkeypatch)
    shop.audit(FAILS)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.counts, found.why_none) == ({("topic_replicated", "high"): 1}, None)


def _column(name: str, values: pa.Array) -> Change:
    def change(audit: Path) -> None:
        [path] = (audit / FINDINGS).glob("*.parquet")
        table = pq.read_table(path)
        pq.write_table(table.set_column(table.schema.get_field_index(name), name, values), path)

    return change


def _figures(**changes: object) -> Change:
    def change(audit: Path) -> None:
        record = json.loads((audit / FIGURES).read_text())
        (audit / FIGURES).write_text(json.dumps({**record, **changes}))

    return change


def _manifest(**changes: object) -> Change:
    def change(audit: Path) -> None:
        record = json.loads((audit / "manifest.json").read_text())
        (audit / "manifest.json").write_text(json.dumps({**record, **changes}))

    return change


def _seal_by_hand(made: Judged) -> None:
    """Make all hashes fit, as one who may write into the folder can; without .chain.json the manifests tell which audit is the newest."""
    forge(made.audit.path)
    (made.audit.path.parent / STATE).unlink()


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers())
NOT_COMPARED = {
    "no snapshot": _manifest(snapshot=None),
    "a path as snapshot": _manifest(snapshot={"snapshot_id": "../x"}),
    "no control": _column("control_id", pa.nulls(1, pa.string())),
    "no resource": _column("resource", pa.nulls(1, pa.string())),
    "a number as resource": _column("resource", pa.array([1])),
    "a list as resource": _column("resource", pa.array([["a"]])),
    "bytes as resource": _column("resource", pa.array([b"\xff"])),
    "no UTF-8": _column("resource", NOT_UTF8),
    "a run that is a list": _written("run.json", "[1]"),
}
NOT_IN_TREND = {
    "infinite failures": _figures(failed_by_severity={"critical": float("inf")}),
    "more failures than numbers": _figures(failed_by_severity={"critical": 10**400}),
    "fewer failures than none": _figures(failed_by_severity={"critical": -1}),
    "a severity of its own": _figures(failed_by_severity={"<b>": 1}),
    "no number as coverage": _figures(coverage=float("nan")),
    "infinite coverage": _figures(coverage=float("inf")),
    "an availability below 0": _figures(availability_percent=-1e308),
    "a verdict of its own": _figures(verdict="<script>"),
    "a time of its own": _figures(started_at="\x1b[31m"),
    "no audit before it": _manifest(previous="x"),
}


@pytest.mark.parametrize("change", NOT_COMPARED.values(), ids=NOT_COMPARED)
def test_an_earlier_audit_of_a_wrong_form_is_said_and_stops_no_later_audit(shop: Shop, change: Change) -> None:
    forged = shop.audit(FAILS)
    change(forged.audit.path)
    _seal_by_hand(forged)
    now = shop.judge(FAILS)
    found = old_failures(*now.inputs)
    assert (found.previous, found.counts) == (forged.id, {})
    comparison = now.comparison()
    assert not comparison.possible
    assert comparison.notes[0].startswith("Nothing could be compared: ")


@pytest.mark.parametrize("change", NOT_IN_TREND.values(), ids=NOT_IN_TREND)
def test_figures_that_no_release_writes_are_a_gap_in_the_trend_and_break_no_format(shop: Shop, change: Change) -> None:
    shop.audit(PASSES)
    forged = shop.audit(FAILS)
    change(forged.audit.path)
    _seal_by_hand(forged)
    report = shop.judge(FAILS).read()
    assert forged.id not in [point.audit_id for point in report.trend]
    assert report.comparison is not None
    assert f"Audit {forged.id} is missing in the trend: " in "\n".join(report.comparison.notes)
    assert all(one.render(report) for one in (html, sarif))


def test_a_manifest_without_a_list_of_files_is_said(shop: Shop) -> None:
    forged = shop.audit(FAILS)
    _manifest(files=None)(forged.audit.path)
    (forged.audit.path.parent / STATE).unlink()
    comparison = shop.judge(FAILS).comparison()
    assert "has no list of files" in comparison.notes[0]
    assert pdf.content(shop.judge(FAILS).read())
