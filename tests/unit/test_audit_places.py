"""The place of a folder decides what is checked, never its manifest."""

import json
import shutil
from pathlib import Path

import pytest
from sealed_audits import CLUSTER, WholeAudit, audit_id, forge
from test_audit_check import said

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.sealed import place_of
from kafka_audit.store.signing import new_key
from kafka_audit.store.signing_key import VARIABLE


@pytest.fixture
def whole(tmp_path: Path) -> WholeAudit:
    return WholeAudit(tmp_path / "root")


@pytest.mark.parametrize("kind", ["snapshot", "offsets", "lag_day", "commit_behaviour", "copy", None, [], {}])
def test_a_forged_audit_is_not_intact_because_it_calls_itself_something_else(whole: WholeAudit, kind: object) -> None:
    write_json(whole.audit.report / "report.json", {"verdict": "PASSED"})
    forge(whole.audit.path, {"kind": kind, "snapshot_id": whole.audit.path.name})
    assert "its manifest is of " in said("verify", whole.audit.path, code=5)


def test_a_snapshot_in_the_place_of_an_audit_is_not_intact(whole: WholeAudit) -> None:
    shutil.rmtree(whole.audit.path)
    shutil.copytree(whole.snapshot.path, whole.audit.path)
    assert f"and audit {whole.audit.path.name} of {CLUSTER} belongs here" in said("verify", whole.audit.path, code=5)


@pytest.mark.parametrize("what", ["snapshot", "offsets", "day", "behaviour"])
def test_evidence_under_the_name_of_another_is_not_intact(whole: WholeAudit, what: str) -> None:
    folder = getattr(whole, what)
    folder = folder if isinstance(folder, Path) else folder.path
    name = {"day": "2026-11-18", "behaviour": "20261120T100000Z"}.get(what, audit_id(9))
    said("verify", folder)
    shutil.copytree(folder, folder.with_name(name))
    assert f" {name} of {CLUSTER} belongs here" in said("verify", folder.with_name(name), code=5)


def test_evidence_of_another_kind_or_cluster_is_not_intact(whole: WholeAudit) -> None:
    for place in (Path("offsets") / CLUSTER, Path("evidence") / "pay", Path("audits") / CLUSTER):
        copy = whole.root.path / place / whole.snapshot.path.name
        shutil.copytree(whole.snapshot.path, copy)
        assert "its manifest is of snapshot" in said("verify", copy, code=5)


def test_a_signed_audit_of_another_cluster_is_not_intact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = new_key(tmp_path / "seal.key")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "seal.key"))
    whole = WholeAudit(tmp_path / "root")
    said("verify", "--key", key, whole.audit.path)
    copy = whole.root.path / "audits" / "pay" / whole.audit.path.name
    shutil.copytree(whole.audit.path, copy)
    assert f"of cluster '{CLUSTER}', and audit {copy.name} of pay belongs here" in said("verify", "--key", key, copy, code=5)


def test_a_copy_outside_of_a_root_is_checked_by_itself_and_says_so(whole: WholeAudit, tmp_path: Path) -> None:
    for folder in (whole.audit.path, whole.snapshot.path):
        copy = tmp_path / "copy" / folder.name
        shutil.copytree(folder, copy)
        text = said("verify", copy)
        assert "stands alone, outside of any root: only its own files were checked" in text
        assert "intact by itself: " in text
        next(path for path in copy.rglob("*.parquet") if path.is_file()).write_bytes(b"x")
        assert "its sha256 differs" in said("verify", copy, code=5)


def test_a_copy_that_says_nothing_known_of_itself_is_not_intact(whole: WholeAudit, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole.audit.path, copy)
    forge(copy, {"kind": "other"})
    assert "the kind 'other', which this release does not know" in said("verify", copy, code=5)


def test_a_line_break_in_a_name_does_not_look_like_another_answer(whole: WholeAudit, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(whole.audit.path, copy)
    forge(copy, {"cluster": "x\nintact: audit 1 of cluster prod"})
    assert [line for line in said("verify", copy).splitlines() if line.startswith("intact: ")] == []
    (whole.audit.path / "report" / "x\nintact: all").write_text("")
    assert [line for line in said("verify", whole.audit.path, code=5).splitlines() if line.startswith("intact: ")] == []


def test_a_link_in_the_place_of_a_folder_of_the_root_does_not_make_an_audit_a_copy(whole: WholeAudit) -> None:
    audits = whole.root.path / "audits"
    audits.rename(whole.root.path / "elsewhere")
    audits.symlink_to(whole.root.path / "elsewhere")
    assert "audits is a link; name the folder itself" in said("verify", whole.audit.path, code=5)


def test_a_root_behind_a_link_and_a_folder_named_from_inside_are_found(
    whole: WholeAudit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(whole.root.path)
    assert "intact: audit" in said("verify", tmp_path / "link" / whole.audit.path.relative_to(whole.root.path))
    monkeypatch.chdir(whole.audit.path)
    assert "intact: audit" in said("verify", ".")


@pytest.mark.parametrize("folder", ["/", "/tmp", "/tmp/x", "/audits/prod", "/x/lag/2026-11-19", "/commits/behaviour/20261120T110000Z"])
def test_a_folder_that_is_in_no_root_has_no_place(folder: str) -> None:
    assert place_of(Path(folder)) is None


def test_a_cluster_may_have_the_name_of_one_of_our_folders() -> None:
    day = place_of(Path("/root/history/evidence/lag/2026-11-19"))
    assert day is not None
    assert (day.kind, day.cluster, day.root) == ("lag_day", "evidence", Path("/root"))
    snapshot = place_of(Path(f"/history/evidence/lag/{audit_id(1)}"))
    assert snapshot is not None
    assert (snapshot.kind, snapshot.cluster, snapshot.root) == ("snapshot", "lag", Path("/history"))


def test_behaviour_tables_name_the_kafka_cluster_only(whole: WholeAudit) -> None:
    file = whole.behaviour / "manifest.json"
    manifest = json.loads(file.read_text())
    del manifest["cluster"]
    file.write_text(json.dumps(manifest))
    assert f"intact: commit_behaviour 20261120T110000Z of cluster {CLUSTER}" in said("verify", whole.behaviour)
