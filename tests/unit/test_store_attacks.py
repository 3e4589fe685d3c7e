"""Whoever may write to the bucket, or beside the mirror, can disturb, and it is told: nothing leaves its folder, and nothing is lost."""

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from object_store import ObjectStore
from sealed_audits import CLUSTER, audit_id, seal, snapshot
from test_audit_check import said

from kafka_audit.cli import doctor_installation
from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit
from kafka_audit.store.mirror_size import limit_mirror
from kafka_audit.store.mirrors import folder_at, fresh_copy, remote_at, root_folder
from kafka_audit.store.objects import Objects
from kafka_audit.store.remote_root import RemoteRoot
from kafka_audit.store.sealed import Sealed

OTHER = audit_id(90)


@pytest.fixture
def url(object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty root, which this process uses as one machine."""
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / "mirror"))
    return object_store.new_root()


def remote_of(root: EvidenceRoot) -> RemoteRoot:
    remote = root.remote
    assert remote is not None
    return remote


def elsewhere(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvidenceRoot:
    """The root as a machine with an empty mirror sees it."""
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / "elsewhere"))
    return EvidenceRoot.at(url)


def test_names_that_are_not_ours_become_no_path(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, objects = EvidenceRoot.at(url), Objects(url=url)
    made, kept = seal(root, 0), root.path / "audits" / CLUSTER / audit_id(0) / "run.json"
    for name in ("...json", ".json", "zzz.json", f"{OTHER}/{OTHER}.json", f"{OTHER}.x.json", "%2e%2e.json"):
        objects.create_new(f"manifests/audits/{CLUSTER}/{name}", b'{"files": {}}')
        objects.create_new(f"work/audits/{CLUSTER}/{name}/run.json", b"{}")
    objects.create_new(f"chain/audits/{CLUSTER}/zzz.json", b"{}")
    objects.create_new(f"chain/audits/{CLUSTER}/1.json", b"{}")
    remote_of(root)._listings.clear()
    for machine in ("one", "two"):
        place = root if machine == "one" else elsewhere(url, tmp_path, monkeypatch)
        assert place.sealed_ids(CLUSTER, "audit") == [made.audit_id] == list(place.ids(CLUSTER, "audit"))
        assert place.newest_sealed(CLUSTER, "audit") == made.audit_id
        assert not (place.path / "audits" / "manifest.json").exists()
    assert kept.is_file()
    assert seal(place, 1).sequence == 2


FORGED_FILES: dict[str, Any] = {
    "../../../../outside": {"sha256": "0" * 64, "bytes": 1},
    "/outside": {"sha256": "0" * 64, "bytes": 1},
    "a\0b": {"sha256": "0" * 64, "bytes": 1},
    "\ud800": {"sha256": "0" * 64, "bytes": 1},
    "x" * 300: {"sha256": "0" * 64, "bytes": 1},
    "topics.parquet/below": {"sha256": "0" * 64, "bytes": 1},
    "manifest.json": {"sha256": "0" * 64, "bytes": 1},
    "no entry": None,
    "no bytes": {"sha256": "0" * 64},
    "no sha256": {"sha256": 1, "bytes": 1},
}


@pytest.mark.parametrize("name", FORGED_FILES, ids=[f"{number}" for number in range(len(FORGED_FILES))])
def test_a_manifest_names_only_files_of_its_folder(url: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, objects = snapshot(EvidenceRoot.at(url), 0), Objects(url=url)
    manifest = json.loads((taken.path / "manifest.json").read_text())
    manifest["files"][name] = FORGED_FILES[name]
    objects.replace(f"manifests/evidence/{CLUSTER}/{taken.snapshot_id}.json", json.dumps(manifest).encode())
    found = elsewhere(url, tmp_path, monkeypatch).snapshot(CLUSTER, taken.snapshot_id)
    with pytest.raises(IntegrityError, match="which is no file of ours"):
        found.dataset("topics")
    with fresh_copy(found.root.path) as place:
        assert Sealed.open(place / "evidence" / CLUSTER / taken.snapshot_id).problems()
    assert not [*tmp_path.rglob("outside")]


def test_a_huge_object_is_not_copied_whole(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, objects = snapshot(EvidenceRoot.at(url), 0), Objects(url=url)
    name = next(one.name for one in objects.names(f"evidence/{CLUSTER}"))
    objects.replace(name, b"\0" * (40 << 20))
    found = elsewhere(url, tmp_path, monkeypatch).snapshot(CLUSTER, taken.snapshot_id)
    with pytest.raises(IntegrityError, match="has another sha256"):
        found.dataset("topics")
    target = tmp_path / "copied"
    objects.copy(name, target, 1000)
    assert target.stat().st_size <= 20 << 20
    objects.replace(f"manifests/evidence/{CLUSTER}/{OTHER}.json", b"\0" * (33 << 20))
    with pytest.raises(IntegrityError, match="longer than"):
        found.root.find_snapshot(CLUSTER, OTHER)


def test_a_manifest_without_a_number_does_not_end_an_open_audit(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, objects = EvidenceRoot.at(url), Objects(url=url)
    made = seal(root, 0)
    audit = root.audit(CLUSTER, audit_id(1))
    write_json(audit.run_file, {"audit_id": audit.path.name})
    remote_of(root).send_audit(audit.path)
    forged = json.loads(objects.read(f"manifests/audits/{CLUSTER}/{made.audit_id}.json") or b"{}")
    planted = f"manifests/audits/{CLUSTER}/{audit.path.name}.json"
    objects.replace(planted, json.dumps({**forged, "audit_id": audit.path.name, "files": {}}).encode())
    with pytest.raises(IntegrityError, match="has no number in the chain, so it was added"):
        seal_audit(root, CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": "x"}})
    assert audit.run_file.is_file()
    with pytest.raises(IntegrityError, match="has no number in the chain, so it was added"):
        elsewhere(url, tmp_path, monkeypatch).bring_audit(CLUSTER, audit.path.name)
    assert [one.name for one in objects.names("work/audits")] == [f"work/audits/{CLUSTER}/{audit.path.name}/run.json"]


def test_a_number_far_ahead_is_one_problem(url: str) -> None:
    root, objects = EvidenceRoot.at(url), Objects(url=url)
    raw = objects.read(f"manifests/audits/{CLUSTER}/{seal(root, 0).audit_id}.json") or b""
    objects.create(f"chain/audits/{CLUSTER}/999999999999.json", raw)
    assert remote_of(root).chain_problems(root.path / "audits" / CLUSTER) == [
        f"chain/audits/{CLUSTER}/000000000002.json to 999999999998: is gone, so the chain has a gap before number 999999999999: restore it",
        f"chain/audits/{CLUSTER}/999999999999.json: holds the manifest of number 1: it was changed",
    ]
    assert "is not the manifest with that number" in said("verify", "--chain", CLUSTER, "--root", url, code=5)


def test_more_than_a_thousand_objects_are_listed(url: str) -> None:
    root = EvidenceRoot.at(url)
    remote, folder = remote_of(root), f"manifests/offsets/{CLUSTER}"
    names = [f"20261120T{number // 3600:02d}{number // 60 % 60:02d}{number % 60:02d}Z-{number:016x}" for number in range(1050)]
    remote.each(lambda name: remote.objects.create_new(f"{folder}/{name}.json", b"{}"), names)
    assert root.sealed_ids(CLUSTER, "offsets") == names


def test_a_step_that_dies_while_it_sends_leaves_nothing_sealed_and_is_repeated(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root, sent = EvidenceRoot.at(url), []
    create = Objects.create

    def dies(objects: Objects, name: str, data: bytes) -> bool:
        if name.startswith(("manifests/", "chain/")):
            raise CollectionError("the store is gone")
        sent.append(name)
        return create(objects, name, data)

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "create", dies)
        with pytest.raises(CollectionError, match="the store is gone"):
            snapshot(root, 0)
        with pytest.raises(CollectionError, match="the store is gone"):
            seal(root, 0)
    assert sent
    remote_of(root)._listings.clear()
    assert root.sealed_ids(CLUSTER) == root.sealed_ids(CLUSTER, "audit") == []
    assert snapshot(root, 0).problems() == []
    assert seal(root, 0).sequence == 1
    assert "intact   1 audits" in said("verify", "--chain", CLUSTER, "--root", url)


def test_a_store_that_refuses_for_a_moment_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Amazon's S3 answers 409 while another writer is at it, which this server does not."""
    objects, create_new = Objects(url=url), Objects.create_new
    answers = iter((False, True))
    monkeypatch.setattr(Objects, "create_new", lambda *given: create_new(*given) if next(answers) else None)
    assert objects.create("x", b"mine")
    assert objects.read("x") == b"mine"


def test_a_store_that_is_down_is_told_each_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = EvidenceRoot.at(url)

    def down(*_: object) -> list[str]:
        raise CollectionError("cannot be reached")

    monkeypatch.setattr(Objects, "folders", down)
    for _ in range(2):
        with pytest.raises(CollectionError, match="cannot be reached"):
            remote_of(root).bring_clusters()


def test_a_broken_chain_of_one_cluster_hides_no_other(url: str) -> None:
    root = EvidenceRoot.at(url)
    seal(root, 0)
    Objects(url=url).create("chain/audits/broken/000000000001.json", b"{}")
    Objects(url=url).create(f"work/audits/broken/{OTHER}/run.json", b"{}")
    remote_of(root).bring_clusters()
    assert sorted(one.name for one in (root.path / "audits").iterdir()) == ["broken", CLUSTER]
    with pytest.raises(IntegrityError, match="does not say its place"):
        root.audits("broken")


def test_a_folder_that_is_used_meanwhile_stays(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = EvidenceRoot.at(url)
    taken = snapshot(root, 0)
    old = taken.path.stat().st_mtime - 8000
    os.utime(taken.path, (old, old))
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR_GB", "0.000000001")
    monkeypatch.setattr("kafka_audit.store.mirror_size._size", lambda folder: os.utime(folder) or 1000)  # another process brings it
    limit_mirror(root.path, now=old + 8000)
    assert (taken.path / "topics.parquet").is_file()


def test_a_mirror_that_a_power_cut_emptied_is_filled_again(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = snapshot(EvidenceRoot.at(url), 0)
    mirror = tmp_path / "elsewhere" / root_folder(url).name
    folder = mirror / "evidence" / CLUSTER / taken.snapshot_id
    folder.mkdir(parents=True)
    for path in (mirror / ".url", folder / "manifest.json", folder / "topics.parquet"):
        path.touch()
    found = elsewhere(url, tmp_path, monkeypatch).snapshot(CLUSTER, taken.snapshot_id)
    assert found.path == folder
    assert found.dataset("topics").read_bytes() == taken.dataset("topics").read_bytes()


@pytest.mark.parametrize("what", ["link", "shared", "another user"])
def test_a_mirror_that_others_can_write_is_refused(what: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = tmp_path / "base"
    base.mkdir()
    if what == "link":
        (tmp_path / "theirs").mkdir()
        (base / root_folder(url).name).symlink_to(tmp_path / "theirs")
    elif what == "shared":
        base.chmod(0o1777)
    else:
        user = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(base))
    with pytest.raises(ConfigurationError, match=r"KAFKA_AUDIT_MIRROR: .* is a link, belongs to another user or is shared"):
        root_folder(url)
    assert not [*base.rglob(".url"), *(tmp_path / "theirs").rglob(".url")]


@pytest.mark.parametrize(
    "named",
    [
        "s3:/bucket/x",
        "S3:bucket",
        "file:/x",
        "s3://[bucket/x",
        "s3://bucket:9000/x",
        "s3://bucket/a/./b",
        "s3://bucket/a\x7f",
        "s3://b c/x",
    ],
)
def test_what_is_almost_a_url_becomes_no_folder(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="KAFKA_AUDIT_ROOT"):
        root_folder(named, "KAFKA_AUDIT_ROOT")
    monkeypatch.setenv("KAFKA_AUDIT_ROOT", named)
    said("fleet", code=2)
    assert doctor_installation.root_folder(named).state == doctor_installation.MISSING
    assert list(tmp_path.iterdir()) == []


def test_one_root_has_one_mirror_however_it_is_written(url: str) -> None:
    assert {root_folder(one) for one in (url, f"{url}/", url.replace("s3:", "S3:"), url.replace("/root", "//root"))} == {root_folder(url)}
    bucket = root_folder(url.removesuffix("/root"))
    remote = remote_at(bucket)
    assert remote is not None
    assert remote.objects.create("x", b"1")
    assert remote.objects.read("x") == b"1"


def test_no_secret_of_a_url_is_told(url: str) -> None:
    for named in (
        "s3://key:hidden-word@bucket/x",
        "s3://bucket/audits/x?X-Amz-Signature=hidden-word",
        "s3://key:hidden-word@bucket/audits/a/b",
    ):
        with pytest.raises(ConfigurationError) as refused:
            folder_at(named)
        assert "hidden-word" not in str(refused.value)
    told = Objects(url=url)._said(ValueError("error for url (https://key:hidden-word@proxy:1/x?sig=hidden-word)"))
    assert "hidden-word" not in told


def test_threads_that_seal_at_the_same_moment_get_different_numbers(url: str) -> None:
    root = EvidenceRoot.at(url)
    failed: list[BaseException] = []

    def one(hour: int) -> None:
        try:
            seal(root, hour)
        except BaseException as problem:  # noqa: BLE001 - a thread that fails is told below
            failed.append(problem)

    threads = [threading.Thread(target=one, args=(hour,)) for hour in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert re.search(r"16 audits, numbers 1 to 16", said("verify", "--chain", CLUSTER, "--root", url))
