"""Whatever .chain.json or a manifest contains, sealing removes no evidence, and one clear error says what is wrong."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sealed_audits import CLUSTER, audit_id, forge, seal
from test_audit_chain import audit, chained, links
from test_audit_check import said

from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.layout import EvidenceRoot, unseal_audit

NINES = int("9" * 4300)


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    return EvidenceRoot(path=tmp_path)


def change_state(root: EvidenceRoot, change: Mapping[str, Any]) -> None:
    file = root.audits(CLUSTER) / ".chain.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))


def opened(seal: Seal) -> dict[str, Any]:
    return {"seal": vars(seal), "replaces": []}


def test_a_path_among_the_open_audits_removes_nothing(root: EvidenceRoot) -> None:
    victim = root.path / "audits" / "pay" / audit_id(1)
    made = seal(root, 1)
    victim.parent.mkdir()
    shutil.copytree(audit(root, 1).path, victim)
    for name in (f"../pay/{victim.name}", str(victim)):
        for inside in (name, made.audit_id):
            change_state(root, {"opened": {name: opened(Seal(**{**vars(made), "audit_id": inside}))}})
            with pytest.raises(IntegrityError, match="is not the state of a chain"):
                seal(root, 2)
            assert "is not the state of a chain" in chained(root, code=5)
    assert (victim / "manifest.json").is_file()


@pytest.mark.parametrize("hour", [1, 2, 3])
def test_a_sealed_audit_that_is_said_to_be_open_stays_sealed(root: EvidenceRoot, hour: float) -> None:
    made = {hour: seal(root, hour) for hour in (1, 2, 3)}
    change_state(root, {"opened": {audit_id(hour): opened(made[hour])}})
    assert seal(root, 4).sequence == 4
    assert links(root)[audit_id(4)] == (4, audit_id(3))
    assert (audit(root, hour).path / "manifest.json").is_file()
    chained(root)


WRONG: list[Mapping[str, Any]] = [
    {"last": float("inf")},
    {"last": NINES},
    {"last": -5},
    {"last": True},
    {"last": "3"},
    {"last": 2**60},
    {"head": {"audit_id": audit_id(1), "sequence": float("inf"), "manifest_sha256": "0" * 64}},
    {"head": {"audit_id": audit_id(1), "sequence": 0, "manifest_sha256": "0" * 64}},
    {"head": {"audit_id": audit_id(1), "sequence": 1, "manifest_sha256": "0"}},
    {"head": {"audit_id": "x" * 300, "sequence": 1, "manifest_sha256": "0" * 64}},
    {"sealing": {"audit_id": "../pay", "sequence": 1, "manifest_sha256": "0" * 64}},
    {"sealing": {"audit_id": 7, "sequence": 1, "manifest_sha256": "0" * 64}},
    {"opened": []},
    {"opened": {audit_id(1): {"seal": {"audit_id": audit_id(2), "sequence": 1, "manifest_sha256": "0" * 64}, "replaces": []}}},
    {"opened": {audit_id(1): {"seal": {"audit_id": audit_id(1), "sequence": 1, "manifest_sha256": "0" * 64}, "replaces": "x"}}},
]


@pytest.mark.parametrize("change", WRONG, ids=range(len(WRONG)))
def test_a_state_that_no_seal_wrote_is_one_clear_error(root: EvidenceRoot, change: Mapping[str, Any]) -> None:
    seal(root, 1)
    change_state(root, change)
    for act in (lambda: seal(root, 2), lambda: unseal_audit(audit(root, 1))):
        with pytest.raises(IntegrityError, match=r"is not the state of a chain .* remove it: the manifests tell then"):
            act()
    assert "is not the state of a chain" in chained(root, code=5)
    assert "the chain cannot be checked" in said("verify", audit(root, 1).path, code=5)
    (root.audits(CLUSTER) / ".chain.json").unlink()
    assert seal(root, 2).sequence == 2


@pytest.mark.parametrize("sequence", [float("inf"), NINES, 0, -1, True, None, "2"])
def test_a_number_that_no_seal_gave_is_a_problem_and_no_traceback(root: EvidenceRoot, sequence: object) -> None:
    first = seal(root, 1)
    seal(root, 2)
    forge(audit(root, 2).path, {"previous": {**vars(first), "sequence": sequence}})
    assert "its manifest does not say its place" in chained(root, code=5)
    forge(audit(root, 2).path, {"previous": vars(first), "sequence": sequence})
    assert "its manifest does not say its place" in chained(root, code=5)
    said("verify", audit(root, 2).path, code=5)


def junk_folder(root: EvidenceRoot) -> None:
    (root.audits(CLUSTER) / "copy").mkdir()
    (root.audits(CLUSTER) / "copy" / "manifest.json").write_text("{}")


def copied_audit(root: EvidenceRoot) -> None:
    shutil.copytree(audit(root, 1).path, root.audits(CLUSTER) / "copy")


def other_audit(root: EvidenceRoot) -> None:
    shutil.copytree(audit(root, 2).path, audit(root, 9).path)
    forge(audit(root, 9).path, {"sequence": 9})


def audit_of_another_cluster(root: EvidenceRoot) -> None:
    shutil.copytree(audit(root, 1).path, audit(root, 9).path)
    forge(audit(root, 9).path, {"audit_id": audit_id(9), "cluster": "pay", "sequence": 9})


def snapshot_among_them(root: EvidenceRoot) -> None:
    shutil.copytree(audit(root, 1).path, audit(root, 9).path)
    forge(audit(root, 9).path, {"audit_id": audit_id(9), "kind": "snapshot", "sequence": None})


@pytest.mark.parametrize("put", [junk_folder, copied_audit, other_audit, audit_of_another_cluster, snapshot_among_them])
def test_what_is_no_audit_of_the_cluster_does_not_keep_the_next_from_being_sealed(
    root: EvidenceRoot, caplog: pytest.LogCaptureFixture, put: Callable[[EvidenceRoot], None]
) -> None:
    seal(root, 1)
    seal(root, 2)
    put(root)
    (root.audits(CLUSTER) / ".chain.json").unlink()
    assert seal(root, 3).sequence == 3
    assert "is passed over" in caplog.text
    assert "Move it away from the audits" in caplog.text
    assert json.loads((audit(root, 3).path / "manifest.json").read_text())["previous"]["audit_id"] == audit_id(2)
    assert "the chain cannot be checked" not in said("verify", audit(root, 3).path, code=5)  # a bare audit has no snapshot


@pytest.mark.parametrize("content", ["{", "[" * 100_000, "no number"])
def test_an_audit_that_cannot_tell_its_number_is_named_as_what_to_move_away(root: EvidenceRoot, content: str) -> None:
    seal(root, 1)
    seal(root, 2)
    if content == "no number":
        forge(audit(root, 2).path, {"sequence": None})
    else:
        (audit(root, 2).path / "manifest.json").write_text(content)
    (root.audits(CLUSTER) / ".chain.json").unlink()
    with pytest.raises(IntegrityError, match=rf"{audit_id(2)}.* move .*away"):
        seal(root, 3)
    audit(root, 2).path.rename(root.path / "away")
    assert seal(root, 3).sequence == 2
