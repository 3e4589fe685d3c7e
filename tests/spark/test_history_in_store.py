"""A commit history of a root in an object store: machines with mirrors of their own read into one history, each record once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from coordinator_records import recorded
from landed_history import RECORDED, rows_below
from object_store import ObjectStore
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from test_behaviour_tables import snapshot

from kafka_audit.cli.timeline import timeline
from kafka_audit.errors import CollectionError, IntegrityError, NothingToReadError
from kafka_audit.store.behaviour_tables import find_behaviour
from kafka_audit.store.commit_batches import batches_in, reached
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import bring
from kafka_audit.store.objects import Objects
from spark_jobs import read_commits
from spark_jobs.commit_history.read.source import TOPIC, Bounds

pytestmark = pytest.mark.spark

DAY = timedelta(hours=24)


@dataclass(kw_only=True)
class Machines:
    """Machines that run the job on the recorded records, as if brokers had them up to a part of each partition."""

    spark: SparkSession
    url: str
    folder: Path
    patch: pytest.MonkeyPatch
    before_reading: Callable[[], object] | None = None
    """What happens elsewhere when a run begins to read for the first time."""

    def as_(self, name: str) -> Path:
        """Go on as the machine of that name; the folder of the commit history there."""
        self.patch.setenv("KAFKA_AUDIT_MIRROR", str(self.folder / name))
        return EvidenceRoot.at(self.url).commit_history("kafka")

    def run(self, name: str, *, part: float = 1.0, now: datetime = RECORDED, most: int = read_commits.MOST_OFFSETS) -> dict[str, Any]:
        """A run of the job on a machine; its last_run.json."""
        return self.run_in(self.as_(name), part=part, now=now, most=most)

    def run_in(
        self, history: Path, *, part: float = 1.0, now: datetime = RECORDED, most: int = read_commits.MOST_OFFSETS
    ) -> dict[str, Any]:
        ranges = recorded(self.spark).groupBy("partition").agg(F.min("offset"), F.max("offset")).collect()
        first = {row[0]: row[1] for row in ranges}
        end = {row[0]: row[1] + round((row[2] + 1 - row[1]) * part) for row in ranges}

        def bounds(_: SparkSession, client: Mapping[str, str], topic: str) -> Bounds:
            if topic != TOPIC:
                raise NothingToReadError("there is no __transaction_state yet")
            return Bounds(cluster_id="own", topic_id="topic", log_start=first, last_stable=end, log_end=end)

        def records(spark: SparkSession, client: Mapping[str, str], topic: str, start: dict[int, int], end: dict[int, int]) -> DataFrame:
            happens, self.before_reading = self.before_reading, None
            if happens:
                happens()
            between = [f"(partition = {number} and offset >= {start[number]} and offset < {end[number]})" for number in end]
            return recorded(spark).where(" or ".join(between))

        self.patch.setattr(read_commits, "bounds", bounds)
        self.patch.setattr(read_commits, "records", records)
        read_commits.bring_up_to_date(self.spark, history, {}, now, most=most, described=DAY)
        return read_json(history / "last_run.json")


@pytest.fixture
def machines(spark: SparkSession, object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    return Machines(spark=spark, url=object_store.new_root(), folder=tmp_path, patch=monkeypatch)


def raw_rows(batch: Path) -> list[tuple[int, int]]:
    """Partition and offset of every record of a raw batch, which is copied from the store."""
    bring(batch)
    parts = [pq.read_table(part, columns=["partition", "offset"]).to_pylist() for part in batch.glob("records.parquet/*.parquet")]
    return [(row["partition"], row["offset"]) for part in parts for row in part]


def test_two_machines_one_after_the_other_make_the_history_that_a_local_root_has(machines: Machines) -> None:
    local = machines.folder / "local" / "history" / "kafka" / "commits"
    for number, part in ((1, 0.5), (2, 1.0)):
        now = RECORDED + timedelta(hours=number - 1)
        told = machines.run(f"machine {number}", part=part, now=now)
        assert told == machines.run_in(local, part=part, now=now)
        assert told["batches"] == [f"0000000{number}"] and told["totals"]["rows"] > 1000
    second = machines.as_("machine 2")
    for folder in ("raw/00000002", "decoded/00000002", "behaviour/20261120T231000Z"):
        assert rows_below(second / folder) == rows_below(local / folder) != {}
    reader = machines.as_("reader")
    entries = timeline(reader, "s-java-auto5", quiet=timedelta(minutes=5))
    assert entries == timeline(local, "s-java-auto5", quiet=timedelta(minutes=5)) != []
    used = find_behaviour(snapshot(reader.parents[2]))
    kept = read_json(local / "behaviour" / "20261120T231000Z" / "manifest.json")
    assert used.record()["folder"] == "behaviour/20261120T231000Z"
    assert [used.manifest[name] for name in ("rows", "totals", "readings")] == [kept[name] for name in ("rows", "totals", "readings")]


def test_the_store_decides_between_two_runs_and_what_was_cut_off_is_made_again(machines: Machines) -> None:
    create = Objects.create

    def cut_off(self: Objects, name: str, data: bytes) -> bool:
        if name.startswith("manifests/"):
            raise CollectionError("the power was cut")
        return create(self, name, data)

    with machines.patch.context() as patch:
        patch.setattr(Objects, "create", cut_off)
        with pytest.raises(CollectionError, match="the power was cut"):
            machines.run("broken", part=0.3)
    assert [*Objects(url=machines.url).names("history/kafka/commits/raw/00000001")]
    assert batches_in(machines.as_("reader") / "raw") == []

    def quicker() -> None:
        machines.run("quick", part=0.5)
        machines.as_("slow")

    machines.before_reading = quicker
    told = machines.run("slow", most=3000)
    reader = machines.as_("reader")
    assert told["batches"][0] == "00000002" and len(told["batches"]) > 1
    rows = [row for batch in batches_in(reader / "raw") for row in raw_rows(reader / "raw" / batch)]
    assert len(rows) == len(set(rows)) == 4169
    assert batches_in(reader / "decoded") == batches_in(reader / "raw")
    assert reached(reader) == reached(machines.as_("slow"))


def test_a_run_on_an_empty_machine_copies_what_its_window_needs_and_nobody_reads_what_was_changed(machines: Machines) -> None:
    for number, part in ((1, 0.4), (2, 0.7), (3, 1.0)):
        machines.run(f"machine {number}", part=part, now=RECORDED + timedelta(hours=30 * number))
    copied = {part.parents[1].name for part in machines.as_("machine 3").glob("*/0*/*.parquet/*.parquet")}
    assert copied == {"00000002", "00000003"}
    objects = Objects(url=machines.url)
    named = next(one.name for one in objects.names("history/kafka/commits/decoded/00000001/offset_commits.parquet"))
    objects.replace(named, b"PAR1 and something else")
    with pytest.raises(IntegrityError, match=f"{named}: has another sha256 than the manifest says"):
        timeline(machines.as_("reader"), "s-java-auto5", quiet=timedelta(minutes=5))


def test_the_job_takes_the_url_of_a_history(machines: Machines) -> None:
    folder = machines.as_("by its URL")
    assert read_commits.history_folder(f"{machines.url}/history/kafka/commits") == folder
    assert read_commits.history_folder(str(machines.folder / "local")) == machines.folder / "local"


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("s3://bucket/root", "--history: write a folder, or the URL of a root and history/CLUSTER/commits after it"),
        ("s3:/bucket/root/history/kafka/commits", "--history: begins with s3: and is neither a folder nor a URL"),
        ("s3://key:secret@bucket/root/history/kafka/commits", "--history: the URL of a root holds a bucket and a folder only"),
        ("s3://bucket/root/history/../commits", "cluster name '..' is not usable as a folder name"),
    ],
)
def test_a_url_that_is_no_history_is_refused_before_anything_is_read(
    place: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / "mirror"))
    assert read_commits.main(["--history", place, "--bootstrap", "127.0.0.1:1"]) == 2
    told = capsys.readouterr().err
    assert why in told and "secret" not in told
    assert [one.name for one in tmp_path.iterdir() if one.name != "mirror"] == []
