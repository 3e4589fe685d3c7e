"""Which earlier audit an audit is compared with, that the choice is kept and checked, and the trend over earlier audits."""

import json
import shutil

import pytest
from compared_audits import CLUSTER, TOPIC, Shop, row
from sealed_audits import forge

from kafka_audit.audit.check import check_audit
from kafka_audit.audit.previous import FIGURES, PREVIOUS, read_choice
from kafka_audit.report.changes import old_failures
from kafka_audit.report.compare import compare
from kafka_audit.report.side import Side
from kafka_audit.report.trend import keep_figures


@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path)


FAILS, PASSES = [row(TOPIC, "orders")], [row(TOPIC, "orders", "pass")]


def test_audits_that_judged_nothing_are_passed_over_and_named(shop):
    first = shop.audit(PASSES)
    void = shop.audit(FAILS, evidence=("FAIL", 4))
    cut_short = shop.audit([], parts=())
    other = shop.audit(FAILS, cluster_id="two")
    found = shop.judge(FAILS).comparison()
    assert (found.previous_audit_id, found.counts["new"]) == (first.id, 1)
    assert found.notes[:3] == (
        f"Audit {other.id} was passed over: it is of another Kafka cluster (two).",
        f"Audit {cut_short.id} was passed over: it judged nothing: it was cut short before the findings.",
        f"Audit {void.id} was passed over: it was void: its evidence was not fit to be judged.",
    )


def test_an_audit_that_does_not_know_its_cluster_is_compared_with_nothing_and_says_so(shop):
    assert shop.judge(PASSES).read().comparison is None
    first = shop.audit(PASSES)
    found = shop.judge(FAILS, cluster_id=None).comparison()
    assert (found.previous_audit_id, found.possible, dict(found.counts)) == (None, False, {})
    said = "one of the two audits does not say which Kafka cluster it is of"
    assert found.notes[:2] == ("No earlier audit can be compared with.", f"Audit {first.id} was passed over: {said}.")


def test_the_verdict_and_the_time_of_the_previous_audit_are_told(shop):
    shop.audit(PASSES)
    found = shop.judge(FAILS).comparison()
    assert (found.previous_verdict, found.previous_started_at) == ("FAILED", "2026-11-20T13:00:00+00:00")


def test_the_choice_is_kept_and_sealed_and_later_audits_do_not_change_it(shop):
    first = shop.audit(PASSES)
    second = shop.judge(FAILS)
    second.read()
    between = shop.audit(FAILS)
    second.seal()
    assert second.comparison().previous_audit_id == first.id != between.id
    assert PREVIOUS in json.loads((second.audit.path / "manifest.json").read_text())["files"]
    assert check_audit(second.audit.path, shop.root).counted("intact") >= 3


def test_a_sealed_audit_that_is_rendered_again_keeps_its_comparison_as_it_was_sealed(shop):
    shop.audit(PASSES)
    second = shop.audit(FAILS)
    before = {path: path.read_bytes() for path in (second.audit.path / "comparison").iterdir()}
    keep_figures(second.audit, second.snapshot, second.read().trend[0])
    assert {path: path.read_bytes() for path in (second.audit.path / "comparison").iterdir()} == before


def test_a_deleted_previous_audit_is_said_and_no_older_one_is_taken(shop):
    shop.audit(PASSES)
    gone = shop.audit(PASSES)
    third = shop.audit(FAILS)
    shutil.rmtree(gone.audit.path)
    found = third.comparison()
    assert (found.previous_audit_id, found.possible, dict(found.counts), found.listed) == (gone.id, False, {}, ())
    assert found.notes[0] == f"Nothing could be compared: audit {gone.id} is no longer there: it was deleted or moved away."
    assert f"audit {gone.id}, which this one was compared with" in "\n".join(check_audit(third.audit.path, shop.root).problems)


def test_a_previous_audit_that_is_deleted_before_the_choice_is_said_too(shop):
    gone = shop.audit(PASSES)
    shutil.rmtree(gone.audit.path)
    found = shop.judge(FAILS).comparison()
    assert (found.previous_audit_id, found.possible) == (gone.id, False)


@pytest.mark.parametrize(
    "file", ["settings/findings.parquet/part-00000-x.snappy.parquet", "inputs/controls/topic_replicated.yaml", "run.json"]
)
def test_a_previous_audit_whose_files_were_changed_is_not_compared_with(shop, file):
    first = shop.audit(PASSES)
    path = first.audit.path / file
    path.write_bytes(path.read_bytes() + b" ")
    found = shop.judge(FAILS).comparison()
    assert not found.possible
    assert file in found.notes[0]


def test_a_previous_audit_that_was_sealed_again_by_hand_is_not_compared_with(shop):
    first = shop.audit(PASSES)
    second = shop.audit(FAILS)
    forge(first.audit.path, {"note": "changed"})
    found = second.comparison()
    assert found.notes[0] == f"Nothing could be compared: the manifest of audit {first.id} was changed after it was sealed."
    assert "was changed after it was sealed" in "\n".join(check_audit(second.audit.path, shop.root).problems)


def test_verify_finds_a_choice_of_an_audit_that_is_no_earlier_one(shop):
    shop.audit(PASSES)
    second = shop.audit(FAILS)
    third = shop.audit(FAILS)
    record = json.loads((third.audit.path / PREVIOUS).read_text())
    (second.audit.path / PREVIOUS).write_text(json.dumps(record))
    forge(second.audit.path)
    assert "is not an earlier audit" in "\n".join(check_audit(second.audit.path, shop.root).problems)
    assert read_choice(third.audit).seal.audit_id == second.id


def test_the_trend_holds_the_figures_of_every_audit_oldest_first(shop):
    shop.audit(PASSES)
    shop.audit([row(TOPIC, "orders"), row(TOPIC, "audit", severity="low"), row(TOPIC, "new", "not_assessed")])
    trend = shop.judge(FAILS).read().trend
    assert [(point.failed_by_severity["high"], point.failed_by_severity["low"], point.coverage) for point in trend] == [
        (0, 0, 1.0),
        (1, 1, 0.666667),
        (1, 0, 1.0),
    ]
    assert {(point.lost_records, point.availability_percent) for point in trend} == {(7, None)}


def test_figures_of_an_audit_without_lag_have_no_lost_records(shop):
    trend = shop.judge(FAILS, parts=("settings",)).read().trend
    assert trend[-1].lost_records is None


def test_an_audit_whose_figures_cannot_be_read_is_a_gap_and_no_zero(shop):
    changed, without = shop.audit(PASSES), shop.audit(PASSES)
    (changed.audit.path / FIGURES).write_text('{"coverage": 1}')
    (without.audit.path / FIGURES).unlink()
    third = shop.audit(PASSES)
    report = shop.judge(FAILS).read()
    assert [point.audit_id for point in report.trend[:-1]] == [third.id]
    assert f"Audit {without.id} is missing in the trend: it kept no figures." in report.comparison.notes
    assert f"Audit {changed.id} is missing in the trend: its figures were changed after it was sealed." in report.comparison.notes


def test_a_trend_ends_at_an_audit_that_was_deleted(shop):
    shop.audit(PASSES)
    gone = shop.audit(PASSES)
    third = shop.audit(PASSES)
    shutil.rmtree(gone.audit.path)
    report = shop.judge(FAILS).read()
    assert [point.audit_id for point in report.trend[:-1]] == [third.id]
    said = f"Audit {gone.id} is missing in the trend: audit {gone.id} is no longer there: it was deleted or moved away."
    assert said in report.comparison.notes


def test_a_gate_on_new_failures_gets_only_those_that_are_shown_to_be_old(shop):
    assert old_failures(*shop.judge(FAILS).inputs).why_none == "no earlier audit judged this cluster"
    first = shop.audit([row(TOPIC, "orders"), row(TOPIC, "waived"), row(TOPIC, "worse", severity="low"), row(TOPIC, "new", "pass")])
    now = [row(TOPIC, "orders"), row(TOPIC, "waived", waiver="W-1"), row(TOPIC, "worse"), row(TOPIC, "new"), row(TOPIC, "unknown")]
    found = old_failures(*shop.judge(now).inputs)
    assert (found.previous, found.counts, found.why_none) == (first.id, {("topic_replicated", "high"): 1}, None)


def test_a_gate_on_new_failures_gets_none_if_the_previous_audit_is_gone(shop):
    gone = shop.audit(FAILS)
    shutil.rmtree(gone.audit.path)
    found = old_failures(*shop.judge(FAILS).inputs)
    assert (found.previous, found.counts) == (gone.id, {})
    assert "no longer there" in found.why_none
    assert shop.root.audits(CLUSTER).is_dir()


@pytest.mark.parametrize("file", ["gate/evidence.json", FIGURES])
def test_an_audit_that_was_changed_to_look_void_or_foreign_is_not_passed_over(shop, file):
    shop.audit(FAILS)
    changed = shop.audit(PASSES)
    path = changed.audit.path / file
    path.write_text(path.read_text().replace('"PASS"', '"FAIL"').replace('"one"', '"two"'))
    found = shop.judge(FAILS).comparison()
    assert (found.previous_audit_id, found.possible) == (changed.id, False)
    assert file in found.notes[0]


def test_an_audit_whose_findings_were_deleted_is_not_taken_for_one_that_was_cut_short(shop):
    shop.audit(FAILS)
    changed = shop.audit(PASSES)
    for part in ("settings", "lag"):
        shutil.rmtree(changed.audit.path / part)
    found = shop.judge(FAILS).comparison()
    assert (found.previous_audit_id, found.possible) == (changed.id, False)


def test_an_audit_that_was_sealed_late_is_not_compared_with_later_evidence(shop):
    first = shop.audit(PASSES)
    begun_first = shop.judge(PASSES)
    later = shop.audit(FAILS)
    found = begun_first.comparison
    assert found().previous_audit_id == first.id
    said = "its evidence was taken later than that of this audit, by the clocks of those who took it"
    assert found().notes[0] == f"Audit {later.id} was passed over: {said}."


@pytest.mark.parametrize("void", ["before", "now"])
def test_results_on_evidence_that_is_not_fit_are_neither_new_nor_resolved(shop, void):
    unfit = {"evidence": ("FAIL", 4)}
    before = Side.sealed(shop.audit([*FAILS, row(TOPIC, "new", "pass")], **unfit if void == "before" else {}).audit, shop.root, CLUSTER)
    later = shop.audit([*PASSES, row(TOPIC, "new")], **unfit if void == "now" else {})
    found = compare(before, Side.sealed(later.audit, shop.root, CLUSTER))
    assert dict(found.counts) == {"incomparable": 2}
    assert {one.why for one in found.listed} == {
        f"the evidence of {'the previous' if void == 'before' else 'this'} audit was not fit to be judged"
    }
