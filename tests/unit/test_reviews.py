"""Records of reviews: sealed beside the audits, numbered and chained, checked by ``kafka-audit verify`` and by their reader."""

import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest
from report_audit import AUDIT_ID
from reviewed_audits import ASKED, CLUSTER, FailedAudit, kept, rejection
from sealed_audits import forge
from test_audit_check import said

from kafka_audit.audit.reviews import Review, reviews_of
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.report.recorded_review import record_answer
from kafka_audit.store import reviews
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import unseal_audit
from kafka_audit.store.reviews import keep_question
from kafka_audit.store.sealed import Sealed
from kafka_audit.store.signing import new_key, read_public_key
from kafka_audit.store.signing_key import VARIABLE
from kafka_audit.store.sweep import sweep
from kafka_audit.store.unfinished import hidden_name

LATER = datetime(2027, 3, 1, tzinfo=timezone.utc)


@pytest.fixture
def failed(tmp_path: Path) -> FailedAudit:
    return FailedAudit(tmp_path / "root")


def read(failed: FailedAudit) -> list[Review]:
    return reviews_of(failed.root, CLUSTER, AUDIT_ID)


def test_an_acceptance_says_who_accepted_what_until_when_and_changes_nothing_of_the_audit(failed: FailedAudit) -> None:
    before = failed.audit.path.joinpath("manifest.json").read_bytes()
    folder = failed.record(kept())
    (found,) = read(failed)
    assert (found.folder, found.problems, found.audit_state, found.signed) == (folder, (), "as reviewed", False)
    record = found.record
    assert record is not None
    assert (record.decision, record.verdict, record.ticket, record.owner) == ("accepted", "FAILED", "OPS-7", "Olga Owner")
    assert record.reviewer is not None
    assert (record.reviewer.id, record.reviewer.name, record.reviewer_identified) == ("7", "Rita Reviewer", True)
    assert (record.expires, record.decided_at) == ("2026-12-31T00:00:00+00:00", ASKED.isoformat())
    assert record.audit.manifest_sha256 == failed.seal.manifest_sha256
    assert found.accepts and found.in_force(ASKED) and not found.in_force(LATER)
    assert failed.audit.path.joinpath("manifest.json").read_bytes() == before
    assert Sealed.verified(failed.audit.path).problems() == []
    assert "intact: the audits" in said("verify", "--chain", CLUSTER, "--root", failed.root.path)


def test_verify_checks_a_review_with_the_audit_that_it_names(failed: FailedAudit) -> None:
    text = said("verify", failed.record(kept()))
    assert f"intact   audit {AUDIT_ID}: its manifest is the one that was reviewed" in text
    assert "waivers.yaml: 2 proposed waivers" in text
    assert f"of cluster {CLUSTER}, 2 files match their sha256" in text


def test_a_rejection_and_a_timeout_are_recorded_without_waivers(failed: FailedAudit) -> None:
    folders = [failed.record(rejection()), failed.record(kept(1, chosen_options=["Reject"], responded_by_user=None, timedout=True))]
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == ["manifest.json", "review.json"]
        said("verify", folder)
    found = read(failed)
    assert [one.record.decision for one in found if one.record] == ["rejected", "unanswered"]
    assert not any(one.accepts or one.waivers_file for one in found)


def test_recording_an_answer_again_keeps_the_first_record(failed: FailedAudit) -> None:
    folder = failed.record(kept())
    content = (folder / "manifest.json").read_bytes()
    assert failed.record(kept()) == folder
    assert (folder / "manifest.json").read_bytes() == content
    (folder / "review.json").write_text("{}", encoding="utf-8")
    with pytest.raises(IntegrityError, match="does not match its manifest"):
        failed.record(kept())


def test_reviews_are_numbered_and_each_names_the_one_before(failed: FailedAudit) -> None:
    folders = [failed.record(rejection()), failed.record(rejection(5)), failed.record(kept(9))]
    assert [one.sequence for one in read(failed)] == [1, 2, 3]
    assert f"the next one, {folders[2].name}, names" in said("verify", folders[1])
    shutil.rmtree(folders[1])
    assert f"review {folders[1].name}, the one before: is gone" in said("verify", folders[2], code=5)
    said("verify", folders[0])
    assert [bool(one.problems) for one in read(failed)] == [False, True]


def test_a_record_that_was_rewritten_with_its_manifest_is_found_through_the_next_one(failed: FailedAudit) -> None:
    folder = failed.record(rejection())
    failed.record(rejection(5))
    write_json(folder / "review.json", {**read_json(folder / "review.json"), "reason": "nothing was wrong"})
    assert "its sha256 differs" in said("verify", folder, code=5)
    forge(folder)
    assert "the next one names another sha256" in said("verify", folder, code=5)


@pytest.mark.parametrize("field", ["audit", "decision", "cluster", "review_id", "extra", "schema_version"])
def test_a_record_must_be_of_the_review_and_the_audit_that_its_manifest_names(failed: FailedAudit, field: str) -> None:
    folder = failed.record(kept())
    record = read_json(folder / "review.json")
    other = {"audit": {**record["audit"], "manifest_sha256": "0" * 64}, "decision": "passed", "schema_version": 2}
    write_json(folder / "review.json", {**record, field: other.get(field, "other")})
    forge(folder)
    assert "review.json" in said("verify", folder, code=5)
    (found,) = read(failed)
    assert found.problems and found.record is None and not found.accepts


def test_waivers_that_were_added_to_a_rejection_or_widened_by_a_forger_are_found(failed: FailedAudit) -> None:
    accepted, rejected = failed.record(kept()), failed.record(rejection(5))
    shutil.copy(accepted / "waivers.yaml", rejected)
    forge(rejected)
    assert "says rejected" in said("verify", rejected, code=5)
    (accepted / "waivers.yaml").write_text("version: 1\nwaivers: [{}]\n", encoding="utf-8")
    assert "waivers.yaml: its sha256 differs" in said("verify", accepted, code=5)
    forge(accepted)
    assert "is not a policy's waivers.yaml" in said("verify", accepted, code=5)


def test_an_audit_that_was_changed_or_is_gone_is_found_through_its_review(failed: FailedAudit) -> None:
    folder = failed.record(kept())
    forge(failed.audit.path, {"snapshot": {"snapshot_id": "y"}})
    assert "is not the one that was reviewed" in said("verify", folder, code=5)
    assert [one.audit_state for one in read(failed)] == ["changed"]
    shutil.rmtree(failed.audit.path)
    assert f"gone     audit {AUDIT_ID}" in said("verify", folder, code=5)


def test_an_audit_that_was_sealed_again_is_no_longer_accepted_and_the_old_review_stays_intact(failed: FailedAudit) -> None:
    folder = failed.record(kept())
    assert unseal_audit(failed.audit)
    write_json(failed.audit.report / "report.json", {"verdict": "FAILED"})
    failed.again()
    assert "says nothing of the new one" in said("verify", folder)
    (found,) = read(failed)
    assert (found.audit_state, found.problems, found.accepts) == ("sealed again", (), False)


def test_nothing_is_recorded_of_an_audit_that_was_sealed_again_since_it_was_asked_about(failed: FailedAudit) -> None:
    assert unseal_audit(failed.audit)
    write_json(failed.audit.report / "report.json", {"verdict": "FAILED"})
    failed.again()  # ``failed.seal`` is still the one before
    with pytest.raises(IntegrityError, match="clear the task needs_review"):
        failed.record(kept())
    assert read(failed) == []


def test_nothing_is_recorded_as_accepted_of_an_answer_that_cannot_be_used_or_is_missing(failed: FailedAudit) -> None:
    with pytest.raises(ConfigurationError, match="ticket: is empty"):
        failed.record(kept(ticket="", expires="never"))
    keep_question(failed.root, CLUSTER, failed.seal)
    with pytest.raises(IntegrityError, match="there is no answer yet"):
        record_answer(failed.root, CLUSTER, AUDIT_ID, max_days=90, about={})
    assert read(failed) == []
    failed.record(kept(5))
    assert [one.accepts for one in read(failed)] == [True]


def test_a_review_is_signed_where_the_installation_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key(tmp_path / "seal.key")
    other = new_key(tmp_path / "other.key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    failed = FailedAudit(tmp_path / "root")
    folder = failed.record(kept())
    assert "the signature of its manifest is of the key given" in said("verify", "--key", key, folder)
    said("verify", "--key", other, folder, code=5)
    forge(folder, {"reviewed": {"audit_id": AUDIT_ID, "sequence": 1, "manifest_sha256": "0" * 64}})
    assert "was changed after it was signed" in said("verify", "--key", key, folder, code=5)
    (found,) = reviews_of(failed.root, CLUSTER, AUDIT_ID, [read_public_key(key)])
    assert found.signed and found.problems


def test_a_review_in_the_place_of_another_or_of_another_cluster_is_found(failed: FailedAudit) -> None:
    folder = failed.record(kept())
    for copy in (folder.with_name("20261121T083000Z-0000000000000000"), failed.root.path / "reviews" / "pay" / folder.name):
        shutil.copytree(folder, copy)
        assert f"review {copy.name} of {copy.parent.name} belongs here" in said("verify", copy, code=5)
    assert "was passed over" in said("verify", folder)


def test_one_whose_manifest_cannot_be_read_is_listed_as_broken_for_every_audit_and_does_not_stop_the_next(failed: FailedAudit) -> None:
    broken = failed.record(rejection())
    (broken / "manifest.json").write_text("[", encoding="utf-8")
    failed.record(kept(5))
    found = read(failed)
    assert [(one.folder == broken, bool(one.problems)) for one in found] == [(False, False), (True, True)]
    assert [one.folder for one in reviews_of(failed.root, CLUSTER, "20261120T000000Z-0000000000000000")] == [broken]


def test_an_audit_without_a_review_has_none(failed: FailedAudit) -> None:
    assert read(failed) == []


def test_the_answer_is_kept_outside_of_airflow_until_it_is_recorded(failed: FailedAudit) -> None:
    with pytest.raises(IntegrityError, match="clear the task review"):
        reviews.read_answer(failed.root, CLUSTER, AUDIT_ID)
    reviews.keep_question(failed.root, CLUSTER, failed.seal)
    assert reviews.read_answer(failed.root, CLUSTER, AUDIT_ID) == (failed.seal, None)
    reviews.keep_answer(failed.root, CLUSTER, AUDIT_ID, kept())
    assert reviews.read_answer(failed.root, CLUSTER, AUDIT_ID) == (failed.seal, kept())
    reviews.keep_question(failed.root, CLUSTER, failed.seal)
    assert reviews.read_answer(failed.root, CLUSTER, AUDIT_ID)[1] is None, "asked again"
    assert read(failed) == []


def test_a_sweep_removes_what_a_killed_task_left_and_nothing_else(failed: FailedAudit) -> None:
    folder = failed.record(kept())
    reviews.keep_question(failed.root, CLUSTER, failed.seal)
    left = hidden_name(folder)
    left.mkdir()
    sweep(failed.root, CLUSTER)
    assert not left.exists()
    said("verify", folder)
    assert reviews.read_answer(failed.root, CLUSTER, AUDIT_ID) == (failed.seal, None)


def test_a_copy_of_a_review_says_that_it_stands_alone(failed: FailedAudit, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "x"
    shutil.copytree(failed.record(kept()), copy)
    assert "intact by itself: review" in said("verify", copy)


def test_the_manifest_names_the_audit_and_its_own_files_only(failed: FailedAudit) -> None:
    manifest = json.loads((failed.record(kept()) / "manifest.json").read_text())
    assert manifest["reviewed"] == {"audit_id": AUDIT_ID, "sequence": 1, "manifest_sha256": failed.seal.manifest_sha256}
    assert (manifest["kind"], manifest["sequence"], manifest["review_before"]) == ("review", 1, None)
    assert sorted(manifest["files"]) == ["review.json", "waivers.yaml"]
