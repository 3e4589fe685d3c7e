"""Audits are numbered and chained in the order in which they are sealed, and a rewritten audit is detected."""

import json
import multiprocessing
import os
import shutil
from pathlib import Path

import pytest
from sealed_audits import CLUSTER, WholeAudit, audit_id, seal
from test_audit_check import said

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store import chain
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, seal_audit, unseal_audit
from kafka_audit.store.sealed import Sealed


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    return EvidenceRoot(path=tmp_path)


def audit(root: EvidenceRoot, hour: float) -> Audit:
    return root.audit(CLUSTER, audit_id(hour))


def links(root: EvidenceRoot) -> dict[str, tuple[int, str | None]]:
    """Number and predecessor of each sealed audit."""
    found = {}
    for file in root.audits(CLUSTER).glob("*/manifest.json"):
        manifest = json.loads(file.read_text())
        found[file.parent.name] = (manifest["sequence"], (manifest["previous"] or {}).get("audit_id"))
    return found


def chained(root: EvidenceRoot, *more: object, code: int = 0) -> str:
    return said("verify", "--chain", CLUSTER, "--root", root.path, *more, code=code)


def test_audits_follow_each_other_by_number_when_the_clock_is_set_back(root: EvidenceRoot) -> None:
    for hour in (5, 3, 4):
        seal(root, hour)
    assert links(root) == {audit_id(5): (1, None), audit_id(3): (2, audit_id(5)), audit_id(4): (3, audit_id(3))}
    assert "intact   3 audits, numbers 1 to 3" in chained(root)


def seal_many(path: Path, first: int) -> None:
    for hour in range(first, first + 10):
        seal(EvidenceRoot(path=path), hour)


def test_audits_sealed_by_several_processes_at_once_make_one_chain(root: EvidenceRoot) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=seal_many, args=(root.path, 100 * number)) for number in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    found = links(root)
    assert sorted(number for number, _ in found.values()) == list(range(1, 21))
    assert len({before for _, before in found.values()}) == 20
    assert "intact   20 audits" in chained(root)


def test_the_newest_may_be_done_again_and_keeps_its_place(root: EvidenceRoot) -> None:
    seal(root, 1)
    old = seal(root, 2)
    assert unseal_audit(audit(root, 2))
    new = seal(root, 2, "FAILED")
    assert (new.sequence, Sealed.open(audit(root, 2).path).problems()) == (2, [])
    assert Sealed.verified(audit(root, 2).path).manifest["replaces"] == [old.manifest_sha256]
    assert unseal_audit(audit(root, 2))
    assert seal(root, 2, "FAILED") == new
    assert "1 audits were done again" in chained(root)


def test_an_audit_with_a_later_one_is_never_rewritten(root: EvidenceRoot) -> None:
    seal(root, 1)
    seal(root, 2)
    before = (audit(root, 1).path / "manifest.json").read_bytes()
    assert not unseal_audit(audit(root, 1))
    with pytest.raises(IntegrityError, match="a later audit was chained to it"):
        seal(root, 1)
    assert (audit(root, 1).path / "manifest.json").read_bytes() == before


def test_nor_while_the_later_one_is_being_done_again(root: EvidenceRoot) -> None:
    seal(root, 1)
    seal(root, 2)
    assert unseal_audit(audit(root, 2))
    assert not unseal_audit(audit(root, 1))


def test_one_that_is_open_while_another_is_sealed_leaves_an_explained_hole_and_gets_a_new_number(root: EvidenceRoot) -> None:
    seal(root, 1)
    seal(root, 2)
    assert unseal_audit(audit(root, 2))
    seal(root, 3)
    assert f"{audit_id(2)}: was number 2, was opened to be done again and is not sealed" in chained(root)
    assert seal(root, 2).sequence == 4
    assert links(root) == {audit_id(1): (1, None), audit_id(3): (3, audit_id(1)), audit_id(2): (4, audit_id(3))}
    chained(root)
    shutil.rmtree(audit(root, 2).path)
    assert f"{audit_id(2)}: number 2 was open to be done again" in chained(root, code=5)


def test_the_first_one_may_be_the_open_one(root: EvidenceRoot) -> None:
    seal(root, 1)
    assert unseal_audit(audit(root, 1))
    seal(root, 2)
    assert links(root) == {audit_id(2): (2, None)}
    chained(root)
    assert Sealed.open(audit(root, 2).path).problems() == []


def test_an_open_audit_whose_folder_was_removed_is_a_problem(root: EvidenceRoot) -> None:
    seal(root, 1)
    seal(root, 2)
    assert unseal_audit(audit(root, 2))
    chained(root)
    shutil.rmtree(audit(root, 2).path)
    assert f"{audit_id(2)}: was opened to be done again as number 2, and its folder is gone" in chained(root, code=5)


class Killed(BaseException):
    """Stands for SIGKILL at one place: nothing after it runs."""


@pytest.mark.parametrize("writes", [1, 2])
@pytest.mark.parametrize("again", [False, True])
def test_a_seal_that_is_cut_off_is_finished_or_forgotten_by_the_next(
    root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch, writes: int, again: bool
) -> None:
    seal(root, 1)
    if again:
        seal(root, 2)
        assert unseal_audit(audit(root, 2))
    done, write = [], chain.write_state

    def killed(*arguments: object) -> None:
        done.append(arguments)
        if len(done) == writes:
            if writes == 1:
                write(*arguments)
            raise Killed
        write(*arguments)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(chain, "write_state", killed)
        seal(root, 2, "PASSED")
    chained(root)
    assert seal(root, 3).sequence == (3 if writes == 2 or again else 2)
    if audit_id(2) not in links(root):
        seal(root, 2)
    numbers = sorted(number for number, _ in links(root).values())
    assert len(numbers) == len(set(numbers)) == 3
    chained(root)


def test_an_opening_that_is_cut_off_is_finished_by_the_next(root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    seal(root, 1)
    seal(root, 2)

    def killed(_: Path) -> None:
        raise Killed

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(chain, "_unseal", killed)
        unseal_audit(audit(root, 2))
    chained(root)
    assert unseal_audit(audit(root, 2))
    assert seal(root, 3).sequence == 3
    assert seal(root, 2).sequence == 4
    chained(root)


def test_without_chain_json_the_manifests_tell_the_newest(root: EvidenceRoot) -> None:
    for hour in (2, 1):
        seal(root, hour)
    (root.audits(CLUSTER) / ".chain.json").unlink()
    assert "chain.json: is not there" in chained(root)
    assert seal(root, 0).sequence == 3
    chained(root)


def test_a_full_disk_while_sealing_is_one_clear_error(root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(chain, "sync_folder", full)
    with pytest.raises(CollectionError, match="the disk is full"):
        seal(root, 1)


def test_every_file_and_folder_of_an_audit_is_durable_before_its_manifest_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = WholeAudit(tmp_path / "root")
    assert unseal_audit(whole.audit)
    folder, synced, sync = whole.audit.path, set(), os.fsync
    own = {path.stat().st_ino for path in (folder, *folder.rglob("*")) if path.is_dir() or path.stat().st_nlink == 1}

    def record(descriptor: int) -> None:
        if not (folder / "manifest.json").exists():
            synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    whole.seal()
    written_again = {path.stat().st_ino for name in ("policy", "controls") for path in (folder / "inputs" / name).rglob("*")}
    assert len(own) > 30
    assert own & {path.stat().st_ino for path in folder.rglob("*")} <= synced
    assert written_again <= synced


def test_a_cluster_without_audits_is_not_called_intact(root: EvidenceRoot) -> None:
    assert "there is no folder" in chained(root, code=2)
    root.audits(CLUSTER).mkdir(parents=True)
    assert "holds no sealed audit" in chained(root, code=5)


def test_deep_also_checks_what_each_audit_names(tmp_path: Path) -> None:
    whole = WholeAudit(tmp_path / "root")
    chained(whole.root, "--deep")
    shutil.rmtree(whole.snapshot.path)
    assert "what they name outside was not looked at" in chained(whole.root)
    assert f"snapshot {whole.snapshot.snapshot_id}: is gone" in chained(whole.root, "--deep", code=5)


def test_a_chain_that_a_crash_left_is_not_repaired_by_looking_at_it(root: EvidenceRoot) -> None:
    seal(root, 1)
    before = {path: path.stat().st_mtime_ns for path in root.path.rglob("*")}
    chained(root)
    assert {path: path.stat().st_mtime_ns for path in root.path.rglob("*")} == before


def test_sealing_gives_back_the_place_and_the_sha256_that_a_witness_keeps(root: EvidenceRoot) -> None:
    write_json(audit(root, 1).run_file, {"audit_id": "x"})
    made = seal_audit(root, CLUSTER, audit_id(1), {})
    assert made == chain.sealed_as(audit(root, 1).path)
    assert (made.sequence, len(made.manifest_sha256)) == (1, 64)
