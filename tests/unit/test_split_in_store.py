"""A snapshot that several machines read in parts, which pass through an object store: it is that of one machine, or none, whoever disturbs."""

import json
import logging
import os
from datetime import timedelta

import pyarrow.parquet as pq
import pytest
from snapshot_taking import SNAPSHOT, START, commits, fake_cluster  # noqa: F401  (fixture)
from test_store_root import machine, url  # noqa: F401  (fixtures)

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.collect.part import parts_of
from kafka_audit.collect.parts import join_parts, missing_parts, read_part
from kafka_audit.collect.scope import Scope
from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirror_size import limit_mirror
from kafka_audit.store.objects import Objects
from kafka_audit.store.parts import SnapshotPart, parts_folder
from kafka_audit.store.remote_names import files_of, is_place, manifests_of
from kafka_audit.store.sealed import Sealed
from kafka_audit.store.sweep import OLDEST_SECONDS, sweep

CLUSTER = "split.parts"  # a name like that of a folder of parts
COUNT = 2
OF_GROUPS, OF_TOPICS = parts_of(COUNT)[:COUNT], parts_of(COUNT)[COUNT:]
FOLDER = f"work/evidence/{CLUSTER}/.{SNAPSHOT}.parts"
OTHER = new_id(START, "another run")


class Shop:
    """A cluster of fake brokers, and tasks that read parts of it; each clock ticks when it is asked."""

    def __init__(self, fake):
        self.fake = fake
        for number in range(6):
            fake.add_topic(f"topic-{number}", [1, 2])
        commits(fake, **{f"group-{number}": {(f"topic-{number}", 1): 5} for number in range(6)})
        self.restart()

    def restart(self):
        self.ticks = iter(range(10_000))

    def now(self):
        return START + timedelta(milliseconds=next(self.ticks))

    def read(self, root, *parts, snapshot_id=SNAPSHOT, progress=lambda _: None):
        """Read parts; how many requests that took."""
        before = len(self.fake.received)
        for part in parts:
            read_part(
                part,
                settings=ConnectionSettings.from_mapping({"bootstrap.servers": self.fake.bootstrap}),
                root=root,
                cluster=CLUSTER,
                snapshot_id=snapshot_id,
                scope=Scope(),
                now=self.now,
                second_look_seconds=0.01,
                progress=progress,
            )
        return len(self.fake.received) - before

    def join(self, root, snapshot_id=SNAPSHOT):
        return join_parts(COUNT, root=root, cluster=CLUSTER, snapshot_id=snapshot_id, scope=Scope(), now=self.now)


@pytest.fixture
def shop(fake):
    return Shop(fake)


def missing(root):
    return missing_parts(COUNT, root=root, cluster=CLUSTER, snapshot_id=SNAPSHOT)


def names(url, folder="work"):  # noqa: F811
    return [one.name for one in Objects(url=url).names(folder)]


def test_parts_of_machines_without_a_shared_disk_make_the_snapshot_that_one_folder_makes(shop, machine, url, tmp_path):  # noqa: F811
    local = EvidenceRoot(path=tmp_path / "folder")
    shop.read(local, *parts_of(COUNT))
    expected = shop.join(local)
    shop.restart()
    for part in parts_of(COUNT):
        root = machine(part.name)
        assert part in missing(root)
        assert shop.read(root, part) > 0
        assert shop.read(machine(f"{part.name}, tried again"), part) == 0
    shop.ticks = iter([10_000])
    found = shop.join(machine("joins"))

    for name in DATASETS:
        assert pq.read_table(found.dataset(name)).equals(pq.read_table(expected.dataset(name))), name
    times = {"finished_at": None}
    assert {**found.manifest, **times} == {**expected.manifest, **times}
    assert names(url) == []
    root = machine("afterwards")
    assert missing(root) == []
    assert shop.read(root, *parts_of(COUNT)) == 0
    assert shop.join(root).manifest == found.manifest == Snapshot.verified(found.path).manifest
    assert names(url) == []


@pytest.mark.parametrize("second", ["one", "two"], ids=["on the same machine", "on another machine"])
def test_of_two_tasks_that_read_a_part_at_once_the_first_that_is_done_counts(shop, machine, second):  # noqa: F811
    began = []

    def overtaken(_):
        if not began:
            began.append(shop.now())
            shop.read(machine(second), OF_GROUPS[0])
            machine("one")

    root = machine("one")
    shop.read(root, OF_GROUPS[0], progress=overtaken)
    part = SnapshotPart.verified(parts_folder(root, CLUSTER, SNAPSHOT) / OF_GROUPS[0].name)
    assert part.manifest["started_at"] > began[0].isoformat()
    shop.read(machine("three"), *parts_of(COUNT))
    assert len(pq.read_table(shop.join(machine("four")).dataset("groups"))) == 6


def test_another_task_of_the_machine_may_copy_a_part_at_the_moment_at_which_it_is_sealed(shop, machine, monkeypatch):  # noqa: F811
    root, create = machine("one"), Objects.create

    def create_and_copy(self, name, data):
        made = create(self, name, data)
        if name.endswith(".json"):
            missing(root)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(Objects, "create", create_and_copy)
        shop.read(root, *parts_of(COUNT))
    assert shop.join(root).problems() == []


def test_a_part_whose_object_was_changed_is_not_read_until_it_is_restored(shop, machine, url):  # noqa: F811
    objects = Objects(url=url)
    shop.read(machine("one"), *OF_GROUPS)

    def damaged(words):
        name = next(name for name in names(url, FOLDER) if words in name)
        data = objects.read(name)
        objects.replace(name, data + b" ")
        return name, data

    name, data = damaged(f"{OF_GROUPS[1].name}/committed_offsets")
    with pytest.raises(IntegrityError, match=r"committed_offsets.*has another sha256"):
        shop.read(machine("two"), OF_TOPICS[0])
    objects.replace(name, data)
    shop.read(machine("three"), *OF_TOPICS)
    name, data = damaged(f"{OF_TOPICS[1].name}/topics")
    with pytest.raises(IntegrityError, match=r"topics.*has another sha256"):
        shop.join(machine("four"))
    assert machine("five").find_snapshot(CLUSTER, SNAPSHOT) is None
    objects.replace(name, data)
    assert shop.join(machine("four")).problems() == []


def test_a_part_whose_writer_was_killed_before_its_manifest_is_read_again(shop, machine, url, monkeypatch):  # noqa: F811
    shop.read(machine("one"), *OF_GROUPS, OF_TOPICS[1])
    create = Objects.create

    def slow(self, name, data):
        if name.endswith(".json"):
            raise CollectionError("the store did not answer in time")
        return create(self, name, data)

    with monkeypatch.context() as patch, pytest.raises(CollectionError, match="did not answer in time"):
        patch.setattr(Objects, "create", slow)
        shop.read(machine("two"), OF_TOPICS[0])
    assert [name for name in names(url) if f"/{OF_TOPICS[0].name}/" in name]
    assert missing(machine("three")) == [OF_TOPICS[0]]
    with pytest.raises(CollectionError, match=rf"snapshot {SNAPSHOT} lacks topics-01-of-02: clear the tasks"):
        shop.join(machine("three"))
    assert shop.read(machine("two"), OF_TOPICS[0]) > 0
    assert shop.join(machine("three")).problems() == []
    assert names(url) == []


def test_a_copy_is_no_part_when_the_store_has_it_no_more(shop, machine, url):  # noqa: F811
    root, objects, name = machine("one"), Objects(url=url), f"{FOLDER}/{OF_GROUPS[0].name}.json"
    shop.read(root, *parts_of(COUNT))
    manifest = objects.read(name)
    objects.remove([name])
    assert missing(root) == [OF_GROUPS[0]]
    objects.replace(name, manifest)
    assert shop.join(root).problems() == []


def test_a_join_that_another_one_overtakes_keeps_its_snapshot(shop, machine, monkeypatch):  # noqa: F811
    shop.read(machine("one"), *parts_of(COUNT))
    first = []

    def verified(folder, place=None):
        if not first:
            first.append(None)
            first.append(shop.join(machine("quick")).manifest)
            machine("slow")
        return Sealed.verified.__func__(SnapshotPart, folder, place)

    monkeypatch.setattr(SnapshotPart, "verified", verified)
    assert shop.join(machine("slow")).manifest == first[1]


def test_another_snapshot_at_the_same_time_and_parts_that_the_store_keeps_are_left_alone(shop, machine, url, monkeypatch, caplog):  # noqa: F811
    root = machine("one")
    for snapshot_id in (SNAPSHOT, OTHER):
        shop.read(root, *parts_of(COUNT), snapshot_id=snapshot_id)
    others = [name for name in names(url) if OTHER in name]
    shop.join(root)
    assert names(url) == others != []

    def refused(self, names):
        raise CollectionError("no right to do so")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(Objects, "remove", refused)
        found = shop.join(machine("two"), OTHER)
    assert "its parts are left in the store: no right to do so" in caplog.text
    assert names(url) == others
    assert shop.join(machine("three"), OTHER).manifest == found.manifest
    assert names(url) == []


def test_names_of_others_become_no_part_and_no_file(shop, machine, url, tmp_path):  # noqa: F811
    objects = Objects(url=url)
    shop.read(machine("one"), *parts_of(COUNT))
    for name in ("...json", "%2e%2e/%2e%2e/x", "groups-03-of-02.json", "groups-01-of-02/extra.parquet", "groups-01-of-02.failed.json"):
        objects.create_new(f"{FOLDER}/{name}", b"{}")
    own = objects.read(f"{FOLDER}/{OF_TOPICS[0].name}.json")
    forged = json.loads(own)
    forged["files"]["../../../../../outside"] = {"sha256": "0" * 64, "bytes": 1}
    objects.replace(f"{FOLDER}/{OF_TOPICS[0].name}.json", json.dumps(forged).encode())
    with pytest.raises(IntegrityError, match="which is no file of ours"):
        shop.join(machine("two"))
    objects.replace(f"{FOLDER}/{OF_TOPICS[0].name}.json", own)
    assert len(pq.read_table(shop.join(machine("two")).dataset("topics"))) == 6
    assert names(url) == []
    assert not [*tmp_path.rglob("outside"), *tmp_path.rglob("x")]


def test_only_parts_lie_in_work_whatever_a_cluster_is_called():
    folder = f"evidence/{CLUSTER}/.{SNAPSHOT}.parts"
    assert (files_of(f"{folder}/a"), manifests_of(folder), is_place(f"{folder}/a")) == (f"work/{folder}/a", f"work/{folder}", True)
    assert not any(is_place(name) for name in (folder, f"{folder}/.a", f"{folder}/a/b", f"evidence/.x/{SNAPSHOT}", f"audits/x/.{SNAPSHOT}"))
    snapshot = f"evidence/{CLUSTER}/{SNAPSHOT}"
    assert (files_of(snapshot), manifests_of(f"evidence/{CLUSTER}"), is_place(snapshot)) == (
        snapshot,
        f"manifests/evidence/{CLUSTER}",
        True,
    )


def test_copies_of_parts_go_from_the_mirror_and_nobody_is_told(shop, machine, monkeypatch):  # noqa: F811
    root = machine("one")
    shop.read(root, OF_GROUPS[0])
    folder = parts_folder(root, CLUSTER, SNAPSHOT) / OF_GROUPS[0].name
    used = folder.stat().st_mtime
    os.utime(folder, (used - 8000, used - 8000))
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR_GB", "0.000000001")
    limit_mirror(root.path, now=used)
    assert [path.name for path in folder.iterdir()] == [MANIFEST]
    shop.read(root, *OF_GROUPS[1:], *OF_TOPICS)
    for path in (*folder.parent.rglob("*"), folder.parent):
        os.utime(path, (used - 2 * OLDEST_SECONDS, used - 2 * OLDEST_SECONDS))
    told = []
    sweep(root, CLUSTER, told.append)
    assert (told, folder.parent.exists()) == ([], False)
    assert shop.join(root).problems() == []
