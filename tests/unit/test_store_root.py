"""A root in an object store: one whole snapshot and one chain whoever writes, and every forged or missing object is found."""

import base64
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from azure_store import KEY, AzureStore, signature
from google_store import TOKEN, GoogleStore
from object_store import EVERYWHERE, ObjectStore, Store
from reviewed_audits import FailedAudit, kept, rejection
from sealed_audits import CLUSTER, WholeAudit, audit_id, seal, sealed_folder, snapshot
from test_audit_check import said

from kafka_audit.audit.previous import not_signed
from kafka_audit.audit.reviews import reviews_of
from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.lag_days import LagDay, days_in
from kafka_audit.store.layout import EvidenceRoot, Snapshot, seal_audit, unseal_audit
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirror_size import limit_mirror
from kafka_audit.store.mirrors import root_folder
from kafka_audit.store.objects import Objects, RefusedError
from kafka_audit.store.remote import url_of
from kafka_audit.store.remote_root import RemoteRoot
from kafka_audit.store.sealed import OFFSETS, Sealed
from kafka_audit.store.sealed import seal as seal_folder
from kafka_audit.store.signing import new_key

Machine = Callable[[str], EvidenceRoot]


@pytest.fixture
def url(store: Store, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty root, which this process may use."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store.new_root()


@pytest.fixture
def machine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The root as a machine of that name sees it: each has a mirror of its own, and this process goes on as that machine."""

    def go_on_as(name: str) -> EvidenceRoot:
        monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / name))
        return EvidenceRoot.at(url)

    return go_on_as


@EVERYWHERE
def test_an_object_is_created_once_whoever_else_tries(url: str) -> None:
    objects = Objects(url=url)
    with ThreadPoolExecutor(64) as pool:
        won = [one for one in pool.map(lambda number: objects.create_new("race", b"%d" % number) and number, range(1, 65)) if one]
    assert len(won) == 1
    assert objects.read("race") == b"%d" % won[0]
    assert objects.create("race", b"%d" % won[0])  # the answer to the first try may have got lost
    assert not objects.create("race", b"another")


@EVERYWHERE
def test_of_64_racing_writers_one_whole_snapshot_stays(url: str, machine: Machine, tmp_path: Path) -> None:
    reader = machine("reader")
    final = reader.snapshot_dir(CLUSTER, audit_id(0))
    remote = RemoteRoot(url=url, mirror=reader.path)

    def publish(number: int) -> bool:
        folder = tmp_path / f"written-{number}"
        folder.mkdir()
        for name in ("topics", "groups"):
            (folder / f"{name}.parquet").write_text(f"{name} of {number}")
        fields = {"kind": "snapshot", "cluster": CLUSTER, "snapshot_id": final.name, "writer": number}
        seal_folder(folder, fields)
        return remote.publish(folder, final)

    with ThreadPoolExecutor(64) as pool:
        won = [number for number, first in enumerate(pool.map(publish, range(64))) if first]
    assert len(won) == 1
    found = Snapshot.verified(final)
    assert found.manifest["writer"] == won[0]
    assert (final / "topics.parquet").read_text() == f"topics of {won[0]}"


@EVERYWHERE
def test_a_snapshot_of_one_machine_is_read_on_another(machine: Machine, url: str) -> None:
    taken = snapshot(machine("one"), 0)
    other = machine("other")
    assert other.newest_sealed(CLUSTER) == taken.snapshot_id
    assert other.sealed_ids(CLUSTER) == list(other.ids(CLUSTER)) == [taken.snapshot_id]
    found = other.snapshot(CLUSTER, taken.snapshot_id)
    assert not (found.path / "topics.parquet").exists()  # copied when it is asked for
    assert found.dataset("topics").read_bytes() == taken.dataset("topics").read_bytes()
    assert found.problems() == []
    assert other.name == url
    location = url_of(found.dataset("topics"))
    assert location is not None
    assert Objects(url=url).read(location.removeprefix(f"{url}/")) == taken.dataset("topics").read_bytes()
    assert url_of(other.path / "audits" / CLUSTER / "new.txt") is None


@EVERYWHERE
def test_an_audit_of_one_machine_is_verified_on_another(machine: Machine, url: str) -> None:
    whole = WholeAudit(machine("one").path)
    machine("other")
    text = said("verify", f"{url}/audits/{CLUSTER}/{whole.audit.path.name}")
    assert f"intact   snapshot {whole.snapshot.snapshot_id}" in text
    assert f"intact   earlier snapshot {whole.earlier.snapshot_id}" in text
    text = said("verify", "--chain", CLUSTER, "--root", url, "--deep", "--head", whole.sealed.manifest_sha256)
    assert "intact   1 audits, numbers 1 to 1" in text
    assert "intact   witness" in text


def object_of(objects: Objects, folder: str, words: str) -> str:
    return next(one.name for one in objects.names(folder) if words in one.name)


TAMPERED = {
    "a table": ("audits", "findings", "sha256 differs"),
    "the manifest": ("manifests/audits", ".json", "is not the one that has number 1 of the chain"),
    "a dataset of the snapshot": ("evidence", "topics", "sha256 differs"),
    "the number": ("chain/audits", ".json", ""),
}


CASES = [
    *(("object_store", what, deleted) for what in TAMPERED for deleted in (False, True)),
    *((store, what, deleted) for store in ("azure_store", "google_store") for what, deleted in (("a table", False), ("the number", True))),
]


@pytest.mark.parametrize(("store", "what", "deleted"), CASES, indirect=["store"])
def test_a_forged_newer_version_and_a_deleted_object_are_found(machine: Machine, url: str, what: str, deleted: bool) -> None:
    whole = WholeAudit(machine("one").path)
    seal(machine("two"), 5)
    folder, words, problem = TAMPERED[what]
    objects = Objects(url=url)
    name = object_of(objects, f"{folder}/{CLUSTER}", whole.snapshot.snapshot_id if folder == "evidence" else words)
    if folder == "manifests/audits":
        name = f"{folder}/{CLUSTER}/{whole.audit.path.name}.json"
    if deleted:
        objects.remove([name])
    else:
        objects.replace(name, (objects.read(name) or b"").replace(b"FAILED", b"PASSED") + b" ")
    text = said("verify", "--chain", CLUSTER, "--root", url, "--deep", code=5)
    assert (deleted or problem) in (True, "") or problem in text
    assert not deleted or "missing" in text or "gone" in text


@EVERYWHERE
def test_audits_of_several_machines_make_one_chain(machine: Machine, url: str) -> None:
    seals = [seal(machine(name), hour) for hour, name in enumerate(("one", "two", "one", "three"))]
    assert [one.sequence for one in seals] == [1, 2, 3, 4]
    text = said("verify", "--chain", CLUSTER, "--root", url)
    assert "intact   4 audits, numbers 1 to 4" in text


def test_audits_sealed_at_the_same_moment_get_different_numbers(machine: Machine, url: str, tmp_path: Path) -> None:
    machine("reader")
    code = (
        "import sys; from sealed_audits import *; [seal(EvidenceRoot.at(sys.argv[1]), float(sys.argv[2]) + number) for number in range(4)]"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, url, str(100 * number)],
            env={**environment, "KAFKA_AUDIT_MIRROR": str(tmp_path / f"machine-{number}")},
        )
        for number in range(3)
    ]
    assert [process.wait(120) for process in started] == [0, 0, 0]
    assert "intact   12 audits, numbers 1 to 12" in said("verify", "--chain", CLUSTER, "--root", url)


def test_a_sealed_audit_is_final(machine: Machine) -> None:
    made = seal(machine("one"), 0)
    root = machine("other")
    audit = root.audit(CLUSTER, made.audit_id)
    assert not unseal_audit(audit)
    write_json(audit.run_file, {"audit_id": audit.path.name})
    write_json(audit.report / "report.json", {"verdict": "another"})
    assert seal_audit(root, CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": "x"}}) == made
    root.bring_audit(CLUSTER, made.audit_id)
    assert json.loads((audit.report / "report.json").read_text()) == {"verdict": "PASSED"}


def test_a_seal_that_was_cut_off_is_finished_by_the_next(machine: Machine, url: str, object_store: ObjectStore) -> None:
    seal(machine("one"), 0)
    cut_off, whole = object_store.new_root(), Objects(url=url)
    for folder in ("audits", "chain"):  # as if the writer had been killed before it wrote the manifest to its place
        for one in whole.names(folder):
            Objects(url=cut_off).create(one.name, whole.read(one.name) or b"")
    assert seal(EvidenceRoot.at(cut_off), 1).sequence == 2
    assert "intact   2 audits, numbers 1 to 2" in said("verify", "--chain", CLUSTER, "--root", cut_off)


def test_a_number_that_is_gone_is_not_given_again_by_a_machine_that_saw_it(machine: Machine, url: str) -> None:
    seal(machine("one"), 0)
    objects = Objects(url=url)
    objects.remove([one.name for one in objects.names(f"chain/audits/{CLUSTER}")])
    with pytest.raises(IntegrityError, match="was there and is gone"):
        seal(machine("one"), 1)


@EVERYWHERE
def test_an_open_audit_goes_from_machine_to_machine(machine: Machine, url: str) -> None:
    root = machine("one")
    audit = root.bring_audit(CLUSTER, audit_id(0))
    write_json(audit.run_file, {"audit_id": audit.path.name, "try": 1})
    write_json(audit.path / "failures" / "verify.json", {"step": "verify"})
    assert root.remote is not None
    root.remote.send_audit(audit.path)
    root = machine("two")
    audit = root.bring_audit(CLUSTER, audit_id(0))
    assert audit.run()["try"] == 1
    (audit.path / "failures" / "verify.json").unlink()
    write_json(audit.path / "settings" / "done.json", {})
    assert root.remote is not None
    root.remote.send_audit(audit.path)
    root = machine("one")
    write_json(root.audit(CLUSTER, audit_id(0)).path / "lag" / "half.json", {})  # of a step that was killed here: it was never sent
    audit = root.bring_audit(CLUSTER, audit_id(0))
    files = sorted(path.relative_to(audit.path).as_posix() for path in audit.path.rglob("*") if path.is_file())
    assert files == ["run.json", "settings/done.json"]
    seal_audit(root, CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": "x"}})
    assert list(Objects(url=url).names("work")) == []
    found = machine("three").bring_audit(CLUSTER, audit_id(0))
    assert Sealed.open(found.path).problems() == []


def test_a_changed_object_is_not_read(machine: Machine, url: str) -> None:
    taken = snapshot(machine("one"), 0)
    objects = Objects(url=url)
    objects.replace(object_of(objects, f"evidence/{CLUSTER}", "topics"), b"forged")
    found = machine("other").snapshot(CLUSTER, taken.snapshot_id)
    with pytest.raises(IntegrityError, match="has another sha256 than the manifest says"):
        found.dataset("topics")


def test_the_mirror_is_kept_small_and_filled_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    root = machine("one")
    old, new = snapshot(root, 0), snapshot(root, 1)
    size = sum(path.stat().st_size for path in new.path.iterdir())
    used = old.path.stat().st_mtime
    os.utime(old.path, (used - 8000, used - 8000))
    os.utime(new.path, (used - 7000, used - 7000))
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR_GB", str(1.5 * size / 1e9))
    limit_mirror(root.path, now=used)
    assert [path.name for path in old.path.iterdir()] == [MANIFEST]
    assert (new.path / "topics.parquet").is_file()
    assert old.dataset("topics").is_file()
    assert root.path.stat().st_mode & 0o777 == 0o700


@EVERYWHERE
def test_the_newest_of_many_is_found_in_one_request(machine: Machine, url: str) -> None:
    remote = machine("one").remote
    assert remote is not None
    objects, folder = remote.objects, f"manifests/offsets/{CLUSTER}"
    remote.each(lambda hour: objects.create(f"{folder}/{audit_id(hour)}.json", b"{}"), range(40))
    assert machine("two").newest_sealed(CLUSTER, OFFSETS) == audit_id(39)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("ftp://host/x", "KAFKA_AUDIT_ROOT: a root cannot lie at ftp://"),
        ("s3://key:secret@bucket/x", "KAFKA_AUDIT_ROOT: the URL of a root holds a bucket and a folder only"),
        ("s3://bucket/x?region=a", "KAFKA_AUDIT_ROOT: the URL of a root holds a bucket and a folder only"),
        ("s3:///x", "names no bucket"),
        ("abfss://container/x", "write abfss://container@account.dfs.core.windows.net/folder"),
        ("abfss://container@account.blob.core.windows.net/x", "is no name of a bucket"),
        ("abfss://container:secret@account.dfs.core.windows.net/x", "no key and no option"),
        ("s3://bucket/*", "holds \\*"),
        ("file://host/x", "a file:// URL has no host"),
    ],
)
def test_a_url_that_cannot_be_a_root_is_refused(named: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as refused:
        root_folder(named, "KAFKA_AUDIT_ROOT")
    assert "secret" not in str(refused.value)


@EVERYWHERE
def test_errors_of_a_store_say_what_to_do_and_hold_no_secret(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Objects(url=re.sub("evidence-[0-9a-f]+", "missing-bucket", url))
    for ask in (lambda: missing.read("x"), lambda: list(missing.names("x")), lambda: missing.create("x", b"")):
        with pytest.raises(ConfigurationError, match="there is no such bucket"):
            ask()
    scheme = url.partition(":")[0]
    secret = {"s3": "secret_access_key", "abfss": "account_key", "gs": "bearer_token"}[scheme]
    guessed = base64.b64encode(b"guessed wrong").decode()
    wrong = Objects(url=url, options={**Objects(url=url).options, secret: guessed})
    with pytest.raises(CollectionError, match="does not accept the credentials") as refused:
        wrong.read("x")
    assert guessed not in str(refused.value)
    with pytest.raises(ConfigurationError, match="KAFKA_AUDIT_STORE_OPTIONS"):
        Objects(url=url, options={"endpiont": "x"}).read("x")
    monkeypatch.setenv("KAFKA_AUDIT_STORE_OPTIONS", "my-secret-value")
    with pytest.raises(ConfigurationError, match="write name=value pairs") as refused:
        Objects(url=url)
    assert "my-secret-value" not in str(refused.value)


@EVERYWHERE
def test_root_check_proves_what_it_can_and_says_what_it_cannot(url: str, machine: Machine) -> None:
    machine("one")
    text = said("root", "check", url)
    assert "proved     create-only: a second object of the same name was refused" in text
    assert "too wide   these credentials may replace objects outside of work/" in text
    if url.startswith("s3:"):
        assert "proved     versions: the bucket keeps them" in text
        assert "not known  lock: whether objects are retained cannot be asked" in text
    else:
        assert re.search("not known  versions: the store does not tell whether replaced objects are kept; ask (az|gcloud) storage", text)
    assert "only a URL of an object store is checked" in said("root", "check", "audit-root", code=2)


BY_VARIABLES = {
    "key": ("azure_store", {"AZURE_STORAGE_ENDPOINT": "{}", "AZURE_STORAGE_ACCOUNT_KEY": KEY}),
    "signature": ("azure_store", {"AZURE_ENDPOINT": "{}", "AZURE_STORAGE_SAS_TOKEN": signature("rwdlc")}),
    "options": ("azure_store", {"KAFKA_AUDIT_STORE_OPTIONS": f"endpoint={{}},account_key={KEY}"}),
    "token": ("google_store", {"GOOGLE_BASE_URL": "{}", "GOOGLE_BEARER_TOKEN": TOKEN}),
}


@pytest.mark.parametrize(("store", "given"), BY_VARIABLES.values(), ids=BY_VARIABLES, indirect=["store"])
def test_the_variables_that_the_docs_name_are_enough(store: Store, given: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in given.items():
        monkeypatch.setenv(name, value.format(store.endpoint))
    objects = Objects(url=store.new_root())
    assert objects.create("a/50%25 ü.json", b"{}")
    assert [one.name for one in objects.names("a")] == ["a/50%25 ü.json"]
    assert objects.read("a/50%25 ü.json") == b"{}"


def test_an_endpoint_that_is_no_store_is_no_empty_root(google_store: GoogleStore) -> None:
    objects = Objects(url=google_store.new_root(), options={"base_url": f"http://127.0.0.1:{google_store.port}", "bearer_token": TOKEN})
    with pytest.raises(CollectionError, match="the endpoint does not answer as a store does"):
        objects.read("manifests/audits/prod/x.json")


def test_root_check_names_each_right_that_is_missing(azure_store: AzureStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", azure_store.endpoint)
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", signature("rcl"))
    url = azure_store.new_root()
    text = said("root", "check", url, code=2)
    assert "proved     create-only" in text
    assert re.search("denied     work/: .*no right to do so; docs/storage.md lists the rights", text)
    assert "proved     these credentials may not replace objects outside of work/" in text
    assert "not known  whether these credentials may remove objects outside of work/" in text  # Azurite answers 500 to a signature's batch
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", signature("rl"))
    with pytest.raises(RefusedError, match="no right to do so") as refused:
        Objects(url=url).create("x", b"")
    assert "sig=" not in str(refused.value)


def test_what_a_store_cannot_do_is_refused(url: str, machine: Machine) -> None:
    root = machine("one")
    snapshot(root, 0, OFFSETS)
    assert "needs a root in a local folder" in said("retention", "--cluster", CLUSTER, "--root", url, "--dry-run", code=2)


def test_buckets_of_one_name_at_two_endpoints_have_a_mirror_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path))
    folders = [root_folder("s3://evidence/kafka")]
    for port in (9000, 9001):
        monkeypatch.setenv("KAFKA_AUDIT_STORE_OPTIONS", f"endpoint=http://127.0.0.1:{port}")
        folders.append(root_folder("s3://evidence/kafka"))
    monkeypatch.delenv("KAFKA_AUDIT_STORE_OPTIONS")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9002")
    folders.append(root_folder("s3://evidence/kafka"))
    assert len(set(folders)) == 4
    assert root_folder("s3://evidence/kafka") == folders[-1]
    monkeypatch.setenv("KAFKA_AUDIT_STORE_OPTIONS", "endpoint")
    with pytest.raises(ConfigurationError, match="KAFKA_AUDIT_STORE_OPTIONS: write name=value pairs"):
        root_folder("s3://evidence/kafka")


def test_a_local_root_loads_nothing_of_a_store(tmp_path: Path) -> None:
    code = (
        "import sys; from kafka_audit.store.layout import EvidenceRoot, Snapshot; root = EvidenceRoot.at(sys.argv[1]); "
        "root.sealed_ids('prod'); root.audits('prod'); root.find_snapshot('prod', '20261120T231500Z-ab12cd34ef56ab78'); "
        "assert 'obstore' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert EvidenceRoot.at(f"file://{tmp_path}").path == tmp_path.resolve()


def test_reviews_of_several_machines_are_numbered_by_the_store(machine: Machine, url: str) -> None:
    failed = FailedAudit(machine("one").path)
    folders = [failed.record(rejection())]
    for name, value in (("two", rejection(5)), ("three", kept(9))):
        failed.root = machine(name)
        failed.root.bring_audit(failed.audit.path.parent.name, failed.audit.path.name)
        folders.append(failed.record(value))
    for folder in folders:
        assert "intact" in said("verify", f"{url}/reviews/{folder.parent.name}/{folder.name}")
    assert [one.name[-6:] for one in Objects(url=url).names("chain/reviews")] == ["1.json", "2.json", "3.json"]
    found = reviews_of(machine("four"), folders[0].parent.name, failed.audit.path.name)
    assert [(one.sequence, one.problems) for one in found] == [(1, ()), (2, ()), (3, ())]


def test_a_signature_travels_with_its_audit(machine: Machine, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    public = new_key(tmp_path / "key.pem")
    monkeypatch.setenv("KAFKA_AUDIT_SIGNING_KEY", str(tmp_path / "key.pem"))
    made = [seal(machine(name), hour) for hour, name in enumerate(("one", "two"))]
    machine("reader")
    assert "2 of 2 audits are signed by a key that was given" in said("verify", "--chain", CLUSTER, "--root", url, "--key", public)
    taken = snapshot(machine("one"), 0)
    assert "intact" in said("verify", f"{url}/evidence/{CLUSTER}/{taken.snapshot_id}", "--key", public)
    audits = machine("three").audits(CLUSTER)
    assert not_signed(made[0], audits / made[0].audit_id) is None


def test_a_rolled_up_day_that_is_made_again_replaces_the_copies(machine: Machine) -> None:
    def roll_up(name: str, rows: int) -> EvidenceRoot:
        root = machine(name)
        with replaced_folder(root.lag_days(CLUSTER) / "2026-11-19") as folder:
            sealed_folder(folder, rows, kind="lag_day", day="2026-11-19")
            assert root.remote is not None
            assert root.remote.publish(folder, root.lag_days(CLUSTER) / "2026-11-19", replace=True)
        return root

    def rows(root: EvidenceRoot) -> list[int]:
        return [pq.read_metadata(LagDay.verified(one).path / "groups.parquet").num_rows for one in days_in(root, CLUSTER)]

    roll_up("one", 3)
    assert rows(machine("reader")) == [3]
    roll_up("two", 5)
    assert rows(EvidenceRoot(path=machine("another").path)) == [5]
    remote = machine("reader").remote
    assert remote is not None
    remote._listings.clear()  # as if two seconds had gone by
    assert rows(machine("reader")) == [5]
