"""Whose failures count as old for a gate that blocks on new ones only: running an audit again does not get past it."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compared_audits import TOPIC, Judged, Shop, row
from report_audit import gate
from sealed_audits import forge

from expectations.gate import judge_findings
from kafka_audit.audit.baseline import BASELINE, BLOCKED, read_baseline
from kafka_audit.audit.check import check_audit
from kafka_audit.audit.gate_result import GateResult
from kafka_audit.audit.outcome import RESULTS
from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.findings import Severity
from kafka_audit.report.changes import old_failures
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import unseal_audit
from kafka_audit.store.signing import new_key
from kafka_audit.store.signing_key import VARIABLE

pytestmark = pytest.mark.usefixtures("without_data_docs")

FAILS, PASSES = [row(TOPIC, "orders")], [row(TOPIC, "orders", "pass")]
OTHER_FAILS = [row(TOPIC, "orders"), row(TOPIC, "audit")]
OLD = {("topic_replicated", "high"): 1}
NEW_ONLY = {"fail_on": "high", "fail_on_new": True}
Rows = Sequence[Mapping[str, object]]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "root")


def judged(made: Judged, *, fail_on_new: bool = True) -> GateResult:
    """The findings gate itself on an audit that is not sealed yet, with evidence that is fit."""
    about = {"snapshot_id": made.snapshot.snapshot_id, "manifest_sha256": made.snapshot.manifest_sha256}
    write_json(made.audit.gate / "evidence.json", gate("evidence", "PASS", 0, snapshot=about))
    for part in (SETTINGS, LAG):
        _fill(made.audit.path / part / "findings.parquet", "snapshot_id", made.snapshot.snapshot_id, pa.string())
        _fill(made.audit.path / part / "summary.parquet", "waived", 0, pa.int64())
    return judge_findings(
        *(made.audit, made.snapshot, made.audit.gate),
        fail_on=Severity.HIGH,
        min_coverage=0.5,
        controls={control.id: control.severity for control in made.catalogue.controls},
        old=old_failures(*made.inputs) if fail_on_new else None,
    )


def _fill(folder: Path, column: str, value: object, kind: pa.DataType) -> None:
    """Give all rows one value, as a job would write it."""
    for path in folder.glob("*.parquet"):
        table = pq.read_table(path)
        values = pa.array([value] * len(table), kind)
        others = table.drop_columns([column]) if column in table.column_names else table
        pq.write_table(others.append_column(column, values), path)


def run(shop: Shop, rows: Rows, *, fail_on_new: bool = True) -> tuple[Judged, GateResult]:
    """The next audit, with its gate, report and seal."""
    made = shop.judge(rows)
    result = judged(made, fail_on_new=fail_on_new)
    made.seal()
    return made, result


def sealed(shop: Shop, rows: Rows, verdict: str = "FAIL", exit_code: int = 3, **gate_result: object) -> Judged:
    """A sealed audit with a gate on new failures only that ended so."""
    made = shop.judge(rows)
    write_json(made.audit.gate / "findings.json", gate("findings", verdict, exit_code, parameters=NEW_ONLY, **gate_result))
    made.seal()
    return made


def exit_codes(*results: tuple[Judged, GateResult]) -> list[int | None]:
    return [result.exit_code for _, result in results]


def test_a_failure_blocks_again_when_the_audit_is_run_again_until_it_is_fixed(shop: Shop) -> None:
    first = run(shop, PASSES)
    blocked = run(shop, FAILS)
    again = run(shop, FAILS)
    fixed = run(shop, PASSES)
    assert exit_codes(first, blocked, again, fixed) == [0, 3, 3, 0]
    assert again[1].let_through.model_dump() == {
        "previous": blocked[0].id,
        "baseline": first[0].id,
        "not_previous": BLOCKED,
        "failures": 0,
        "why_none": None,
    }
    assert [reason.split()[0] for reason in again[1].reasons] == ["GAT-01", "GAT-20"]
    assert f"audit {first[0].id}, not the previous audit {blocked[0].id}: {BLOCKED}" in again[1].reasons[1]


def test_failures_of_an_ordinary_audit_are_old_also_behind_audits_that_were_blocked(shop: Shop) -> None:
    start = run(shop, FAILS, fail_on_new=False)
    old = run(shop, FAILS)
    blocked = [run(shop, OTHER_FAILS) for _ in range(2)]
    fixed = run(shop, FAILS)
    assert exit_codes(start, old, *blocked, fixed) == [3, 0, 3, 3, 0]
    assert (fixed[1].let_through.baseline, fixed[1].let_through.failures) == (old[0].id, 1)


def test_an_ordinary_audit_between_makes_its_failures_old_whether_it_passed_or_not(shop: Shop) -> None:
    sealed(shop, PASSES, "PASS", 0)
    sealed(shop, FAILS)
    ordinary = shop.audit(FAILS)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.previous, found.baseline, found.counts, found.not_previous) == (ordinary.id, ordinary.id, OLD, None)


def test_a_first_audit_that_was_blocked_makes_nothing_old(shop: Shop) -> None:
    first = run(shop, FAILS)
    again = run(shop, FAILS)
    assert exit_codes(first, again) == [3, 3]
    through = again[1].let_through
    assert (through.previous, through.baseline, through.failures) == (first[0].id, None, 0)
    assert through.why_none == (
        f"the failures of no earlier audit count as old (audit {first[0].id}: {BLOCKED}); after one audit without fail_on_new, its failures do"
    )
    assert [reason.split()[0] for reason in again[1].reasons] == ["GAT-01", "GAT-19"]


def test_a_deleted_baseline_makes_nothing_old_and_no_older_one_is_taken(shop: Shop) -> None:
    shop.audit(FAILS)
    gone = sealed(shop, FAILS, "PASS", 0)
    blocked = sealed(shop, OTHER_FAILS)
    shutil.rmtree(gone.audit.path)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.previous, found.baseline, found.counts) == (blocked.id, gone.id, {})
    assert found.why_none == f"audit {gone.id} is no longer there: it was deleted or moved away"


@pytest.mark.parametrize("change", [{"exit_code": 0, "verdict": "PASS"}, {"parameters": {"fail_on": "high"}}], ids=["passed", "ordinary"])
def test_a_blocked_audit_that_was_edited_to_look_accepted_makes_nothing_old(shop: Shop, change: Mapping[str, object]) -> None:
    shop.audit(PASSES)
    blocked = sealed(shop, FAILS)
    path = blocked.audit.gate / "findings.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.baseline, found.counts) == (blocked.id, {})
    assert "gate/findings.json" in str(found.why_none)


def test_an_accepted_audit_that_was_edited_to_look_blocked_is_not_passed_over_for_an_older_one(shop: Shop) -> None:
    shop.audit(FAILS)
    fixed = sealed(shop, PASSES, "PASS", 0)
    (fixed.audit.gate / "findings.json").write_text(json.dumps(gate("findings", "FAIL", 3, parameters=NEW_ONLY)))
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.baseline, found.counts) == (fixed.id, {})


@pytest.mark.parametrize("newest", [True, False], ids=["the previous audit", "an audit before it"])
def test_an_installation_that_signs_follows_no_audit_without_its_signature(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, newest: bool
) -> None:
    new_key(tmp_path / "seal.key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    shop.audit(FAILS)
    monkeypatch.delenv(VARIABLE)
    forged = sealed(shop, FAILS)
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    if not newest:
        sealed(shop, FAILS)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert found.counts == {}
    assert str(found.why_none).startswith(f"audit {forged.id} has no signature of this installation")


def test_an_installation_that_signs_finds_the_baseline_behind_its_own_blocked_audits(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_key(tmp_path / "seal.key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    start = shop.audit(FAILS)
    sealed(shop, OTHER_FAILS)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.baseline, found.counts, found.why_none) == (start.id, OLD, None)


def _not_judged(made: Judged) -> None:
    (made.audit.gate / "findings.json").unlink()


def _unreadable(made: Judged) -> None:
    (made.audit.gate / "findings.json").write_text("{}")


def _of_other_evidence(made: Judged) -> None:
    about = {"snapshot_id": made.snapshot.snapshot_id, "manifest_sha256": "0" * 64}
    write_json(made.audit.gate / "findings.json", gate("findings", "PASS", 0, snapshot=about))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (_not_judged, "its findings were not judged by a gate"),
        (_unreadable, "the result of its gate cannot be read"),
        (_of_other_evidence, "its gate judged other evidence"),
    ],
)
def test_failures_that_no_gate_judged_are_not_old(shop: Shop, damage: object, why: str) -> None:
    start = shop.audit(PASSES)
    made = shop.audit(FAILS)
    damage(made)
    forge(made.audit.path)
    (made.audit.path.parent / ".chain.json").unlink()
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.previous, found.baseline, found.counts) == (made.id, start.id, {})
    assert str(found.not_previous).startswith(why)


def test_an_audit_that_only_lacked_coverage_found_no_new_failure_and_its_failures_are_old(shop: Shop) -> None:
    shop.audit(FAILS)
    rules = [{**gate("findings", "PASS", 0)["results"][0], "rule_id": "GAT-01"}]
    incomplete = sealed(shop, FAILS, "FAIL", 4, results=rules)
    assert old_failures(*shop.judge(FAILS).inputs).baseline == incomplete.id
    uncounted = sealed(shop, FAILS, "ERROR", 1)
    assert old_failures(*shop.judge(FAILS).inputs).baseline == incomplete.id != uncounted.id


def test_void_audits_and_those_of_other_clusters_are_passed_over_on_the_way_back(shop: Shop) -> None:
    start = shop.audit(PASSES)
    void = shop.audit(FAILS, evidence=("FAIL", 4))
    other = shop.audit(FAILS, cluster_id="two")
    blocked = sealed(shop, FAILS)
    now = shop.judge(FAILS)
    assert old_failures(*now.inputs).baseline == start.id
    assert [audit_id for audit_id, _ in read_baseline(now.audit).passed_over] == [blocked.id, other.id, void.id]


def test_an_audit_that_is_cleared_and_run_again_has_the_same_baseline_and_blocks_again(shop: Shop) -> None:
    first = run(shop, PASSES)
    again, result = run(shop, FAILS)
    kept = (again.audit.path / BASELINE).read_bytes()
    assert unseal_audit(again.audit)
    for name in RESULTS["findings_gate"]:
        path = again.audit.path / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    repeated = judged(again)
    again.seal()
    assert (repeated.exit_code, repeated.let_through) == (result.exit_code, result.let_through) == (3, repeated.let_through)
    assert repeated.let_through.baseline == first[0].id
    assert (again.audit.path / BASELINE).read_bytes() == kept


def test_the_report_says_whose_failures_are_old_where_it_compares_with_another_audit(shop: Shop) -> None:
    first = sealed(shop, FAILS, "PASS", 0)
    sealed(shop, OTHER_FAILS)
    now = shop.judge(OTHER_FAILS)
    result = judged(now)
    report = now.read()
    assert (result.exit_code, report.comparison.counts["unchanged"]) == (3, 2)
    assert report.comparison.notes[0] == (
        f"The gate did not count the failures of the previous audit as old ({BLOCKED}), but those of audit {first.id}: it may block on the 2 "
        "that are called unchanged here, and let through one that is called new, worse or incomparable."
    )


def test_the_report_says_that_nothing_is_old_where_failures_are_unchanged(shop: Shop) -> None:
    sealed(shop, FAILS)
    now = shop.judge(FAILS)
    judged(now)
    assert now.comparison().notes[0] == (
        f"The gate did not count the failures of the previous audit as old ({BLOCKED}), and no others, so it blocks on the one that is called "
        "unchanged here, too, if severe enough and not waived."
    )


def test_the_baseline_is_sealed_and_verify_checks_it(shop: Shop) -> None:
    start = sealed(shop, PASSES, "PASS", 0)
    sealed(shop, FAILS)
    made, _ = run(shop, FAILS)
    what = f"audit {start.id}, whose failures count as old in the gate of this one"
    assert BASELINE in json.loads((made.audit.path / "manifest.json").read_text())["files"]
    assert what not in "\n".join(check_audit(made.audit.path, shop.root).problems)
    forge(start.audit.path, {"note": "changed"})
    assert f"{what}: the manifest of audit {start.id} was changed" in "\n".join(check_audit(made.audit.path, shop.root).problems)
    shutil.rmtree(start.audit.path)
    assert f"{what}: audit {start.id} is no longer there" in "\n".join(check_audit(made.audit.path, shop.root).problems)


def test_verify_finds_a_baseline_that_is_no_earlier_audit(shop: Shop) -> None:
    sealed(shop, PASSES, "PASS", 0)
    second, _ = run(shop, FAILS)
    third, _ = run(shop, FAILS, fail_on_new=False)
    run(shop, FAILS)
    seal = read_baseline(second.audit).seal
    record = {
        "schema_version": 1,
        "passed_over": [],
        "seal": {"audit_id": third.id, "sequence": 3, "manifest_sha256": seal.manifest_sha256},
    }
    (second.audit.path / BASELINE).write_text(json.dumps(record))
    forge(second.audit.path)
    assert "is not an earlier audit" in "\n".join(check_audit(second.audit.path, shop.root).problems)
