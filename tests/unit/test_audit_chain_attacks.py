"""The chain detects audits that were removed, rewritten, forked, reordered or added; for the newest ones it needs a witness outside the folder."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sealed_audits import CLUSTER, audit_id, forge, seal
from test_audit_chain import audit, chained

from kafka_audit.store import chain
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    return EvidenceRoot(path=tmp_path)


def removed(root: EvidenceRoot) -> None:
    shutil.rmtree(audit(root, 2).path)


def newest_removed(root: EvidenceRoot) -> None:
    shutil.rmtree(audit(root, 4).path)


def rewritten(root: EvidenceRoot) -> None:
    write_json(audit(root, 2).report / "report.json", {"verdict": "OTHER"})
    forge(audit(root, 2).path)


def newest_rewritten(root: EvidenceRoot) -> None:
    write_json(audit(root, 4).report / "report.json", {"verdict": "OTHER"})
    forge(audit(root, 4).path)


def link_removed(root: EvidenceRoot) -> None:
    forge(audit(root, 4).path, {"previous": None})


def forked(root: EvidenceRoot) -> None:
    shutil.copytree(audit(root, 4).path, audit(root, 9).path)
    forge(audit(root, 9).path, {"audit_id": audit_id(9)})


def reordered(root: EvidenceRoot) -> None:
    forge(audit(root, 2).path, {"sequence": 3})
    sha256 = forge(audit(root, 3).path, {"sequence": 2})
    forge(audit(root, 4).path, {"previous": {"audit_id": audit_id(3), "sequence": 3, "manifest_sha256": sha256}})


def renamed(root: EvidenceRoot) -> None:
    audit(root, 2).path.rename(audit(root, 9).path)


def unchained(root: EvidenceRoot) -> None:
    shutil.copytree(audit(root, 1).path, audit(root, 9).path)


def without_a_number(root: EvidenceRoot) -> None:
    forge(audit(root, 4).path, {"sequence": None})


def linked(root: EvidenceRoot) -> None:
    audit(root, 2).path.rename(root.path / "elsewhere")
    audit(root, 2).path.symlink_to(root.path / "elsewhere")


def edited(root: EvidenceRoot) -> None:
    write_json(audit(root, 3).report / "report.json", {"verdict": "OTHER"})


def hidden_by_a_claim(root: EvidenceRoot) -> None:
    shutil.rmtree(audit(root, 3).path)
    gone = {"audit_id": audit_id(3), "sequence": 3, "manifest_sha256": "0" * 64}
    second = {"audit_id": audit_id(2), "sequence": 2, "manifest_sha256": chain.sealed_as(audit(root, 2).path).manifest_sha256}
    forge(audit(root, 4).path, {"previous": second, "reopened": [gone]})


@pytest.mark.parametrize(
    ("attack", "found"),
    [
        (removed, "{2}: number 2 is missing, and {3} follows it: it was removed"),
        (newest_removed, "chain.json names audit {4}"),
        (rewritten, "{2}: its manifest is not the one that {3} follows: it was rewritten"),
        (newest_rewritten, "chain.json names audit {4}"),
        (link_removed, "{4}: has number 4 and names no audit before it: the link was removed"),
        (forked, "have the number 4: the chain was forked"),
        (forked, "both follow {3}: the chain was forked"),
        (reordered, "reordered"),
        (renamed, "claims to be sealed and is not in the chain"),
        (unchained, "claims to be sealed and is not in the chain"),
        (without_a_number, "its manifest does not say its place"),
        (linked, "{2}: is a link or a file among the audits"),
        (edited, "{3}: report/report.json: its sha256 differs"),
        (hidden_by_a_claim, "{3}: number 3 was open to be done again when {4} was sealed, and is gone"),
    ],
)
def test_each_attack_on_the_chain_is_found(root: EvidenceRoot, attack: Callable[[EvidenceRoot], None], found: str) -> None:
    for hour in range(1, 5):
        seal(root, hour)
    chained(root)
    attack(root)
    wanted = found
    for hour in range(1, 5):
        wanted = wanted.replace(f"{{{hour}}}", audit_id(hour))
    assert wanted in chained(root, code=5)


def test_a_newest_audit_that_was_rewritten_with_all_that_names_it_is_found_by_the_witness(root: EvidenceRoot) -> None:
    seal(root, 1)
    told = seal(root, 2, "FAILED")
    assert f"witness: {told.audit_id}, number 2, is as its run told, the newest" in chained(root, "--head", told.manifest_sha256)
    write_json(audit(root, 2).report / "report.json", {"verdict": "PASSED"})
    sha256 = forge(audit(root, 2).path, {"replaces": [told.manifest_sha256]})
    state = root.audits(CLUSTER) / ".chain.json"
    state.write_text(state.read_text().replace(told.manifest_sha256, sha256))
    chained(root)
    assert "says that it was done again since" in chained(root, "--head", told.manifest_sha256, code=5)
    assert "it was removed or rewritten" in chained(root, "--head", f"{told.audit_id}={told.manifest_sha256}", code=5)


def test_newest_audits_that_were_removed_with_all_that_names_them_are_found_by_the_witness(root: EvidenceRoot) -> None:
    first = seal(root, 1)
    told = seal(root, 2)
    shutil.rmtree(audit(root, 2).path)
    (root.audits(CLUSTER) / ".chain.json").unlink()
    chained(root)
    assert "the 0 after it" not in chained(root, "--head", first.manifest_sha256)
    assert "it was removed or rewritten" in chained(root, "--head", told.manifest_sha256, code=5)


def test_a_witness_says_how_many_later_audits_it_does_not_vouch_for(root: EvidenceRoot) -> None:
    told = [seal(root, hour) for hour in range(1, 4)]
    text = chained(root, "--head", f"{told[0].audit_id}={told[0].manifest_sha256}")
    assert "the 2 after it are not vouched for by it" in text
    assert "it was removed or rewritten" in chained(root, "--head", f"{told[0].audit_id}={told[1].manifest_sha256}", code=5)
    chained(root, "--head", "abc", code=2)
