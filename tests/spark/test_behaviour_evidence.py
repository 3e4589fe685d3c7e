"""An audit with a commit history: the behaviour tables decide verdicts, are named in the audit, and must be unchanged if it is repeated."""

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from coordinator_records import recorded
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from sealed_batch import seal
from snapshot_builder import CLUSTER, Synthetic, audit_folder

from kafka_audit.errors import IntegrityError
from kafka_audit.report.commit_history import read_commit_history
from kafka_audit.store.durable_files import read_json, sha256_of, write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, seal_audit
from kafka_audit.store.sealed import Sealed
from spark_jobs.commit_history.describe.behaviour_tables import Window, describe
from spark_jobs.commit_history.history import History
from spark_jobs.commit_history.read.raw_writer import coverage, totals
from spark_jobs.engine.tables import write_parquet
from spark_jobs.verify import main

pytestmark = pytest.mark.spark

END = datetime(2026, 11, 20, 22, 10, tzinfo=timezone.utc)
"""After the newest of the recorded records."""
TAKEN = END + timedelta(minutes=5)
LEFT = {"s-java-auto5": 2528, "s-java-auto5-idle": None, "s-java-rewind": 2528, "s-java-manual-poll": 2527}
"""Groups whose members left at 21:58:42, and where they stood on orders-0."""
Findings = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def commits(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A commit history of the recorded topic, as read_commits leaves it: one batch and the behaviour tables up to END."""
    history = History(path=tmp_path_factory.mktemp("commits") / "commits")
    rows = recorded(spark)
    raw = history.path / "raw" / "00000001"
    write_parquet(rows.coalesce(1), raw / "records.parquet")
    ranges = rows.groupBy("partition").agg(F.min("offset"), F.max("offset"), F.count("*")).collect()
    start, last, read = ({row[0]: row[column] for row in ranges} for column in (1, 2, 3))
    found = coverage(start, {partition: at + 1 for partition, at in last.items()}, start, read)
    seal(raw, partitions=found, totals=totals(found), read_at=END.isoformat())
    write_json(history.path / "source.json", {"cluster_id": "cluster-id", "topic_id": "topic"})
    history.decode(spark)
    window = Window(end=END, length=timedelta(hours=24), retention_ms=1_800_000, partitions=50)
    assert describe(spark, history.path, window) is not None
    return history.path


def taken(root: Path) -> tuple[Snapshot, Audit]:
    """One snapshot of the groups whose members have left, five minutes after the history ends, on brokers that keep offsets 30 minutes."""
    short = {"offsets.retention.minutes": "30"}
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}, dict.fromkeys((1, 2, 3), short)).topic("orders", partitions=3)
    cluster.offsets("orders", log_start=0, log_end=3000, last_stable=3000)
    for group, committed in LEFT.items():
        cluster.group(group, state="Empty", assigned=[])
        if committed is not None:
            cluster.commit(group, "orders", committed)
    snapshot = cluster.write(root, TAKEN)
    # A broken snapshot of an earlier day: this is not the cluster's first audit, and there is nothing to compare with.
    broken = snapshot.path.with_name("20240101T000000Z-0123456789abcdef")
    broken.mkdir()
    (broken / "manifest.json").write_text("{}")
    return snapshot, audit_folder(root, snapshot)


@pytest.fixture
def audited(tmp_path: Path, spark: SparkSession, only_subjects: Callable[..., None]) -> Callable[[Path | None], tuple[Snapshot, Audit]]:
    only_subjects("group_sla", "group_partition", "group", "consumer")

    def run(commits: Path | None) -> tuple[Snapshot, Audit]:
        if commits is not None:
            shutil.copytree(commits, EvidenceRoot(path=tmp_path).commit_history(CLUSTER))
        snapshot, audit = taken(tmp_path)
        assert judge_lag(snapshot, audit) == 0
        return snapshot, audit

    return run


def judge_lag(snapshot: Snapshot, audit: Audit) -> int:
    return main(["--snapshot", str(snapshot.path), "--audit", str(audit.path), "--parts", "lag"])


def findings(audit: Audit) -> Findings:
    rows = pq.read_table(audit.lag / "findings.parquet").to_pylist()
    return {(row["code"], row["resource"].removeprefix("group ")): row for row in rows}


def test_without_a_history_the_reasons_say_so(audited: Callable[[Path | None], tuple[Snapshot, Audit]]) -> None:
    _, audit = audited(None)
    none = "no commit history was read for this cluster"
    assert none in read_json(audit.lag / "commit_history.json")["reason"]
    assert not (audit.lag / "group_behaviour.parquet").exists()
    found = findings(audit)
    for code, resource in (
        *(("CON-05", "s-java-auto5:orders-0"), ("CON-09", "s-java-auto5:orders-0"), ("CON-06", "s-java-auto5:orders-0")),
        ("GRP-02", "s-java-auto5"),
    ):
        assert (found[code, resource]["status"], none in found[code, resource]["reason"]) == ("not_assessed", True), code
    for code in ("CON-10", "CON-12"):  # only an owner can say it
        assert (found[code, "s-java-auto5"]["status"], "PRD-05" in found[code, "s-java-auto5"]["reason"]) == ("not_applicable", True), code


def test_with_a_history_the_same_snapshot_is_judged(
    audited: Callable[[Path | None], tuple[Snapshot, Audit]],
    commits: Path,
    capfd: pytest.CaptureFixture[str],
    only_subjects: Callable[..., None],
) -> None:
    snapshot, audit = audited(commits)
    found = findings(audit)

    def shown(code: str, resource: str) -> tuple[str, str]:
        return found[code, resource]["status"], found[code, resource]["evidence_class"]

    assert shown("CON-09", "s-java-auto5:orders-0") == ("fail", "observed")  # 16 of 30 minutes
    assert shown("CON-05", "s-java-auto5:orders-0") == ("pass", "observed")
    assert shown("GRP-02", "s-java-auto5") == ("not_assessed", "observed")
    assert "only 1.9 of 12 h of its records were read without a hole" in found["GRP-02", "s-java-auto5"]["reason"]
    assert shown("CON-10", "s-java-auto5-idle") == ("not_assessed", "inferred")
    assert "consistent with auto-commit, which a timer written by hand is too" in found["CON-10", "s-java-auto5-idle"]["reason"]
    assert found["CON-12", "s-java-auto5"]["status"] == "not_applicable"  # only an owner can say which heartbeats go with its session
    assert found["CON-05", "s-java-rewind:orders-0"]["status"] == "not_assessed"  # it went back, and stands where it stood

    record = read_json(audit.lag / "commit_history.json")
    used = EvidenceRoot(path=snapshot.path.parents[2]).commit_history(CLUSTER) / record["folder"]
    assert (record["folder"], record["reason"]) == ("behaviour/20261120T221000Z", None)
    assert record["manifest_sha256"] == sha256_of(used / "manifest.json")
    manifest = read_json(used / "manifest.json")
    (source,) = manifest["sources"]
    batch = used.parents[1] / "decoded" / source["batch"]
    assert source["manifest_sha256"] == sha256_of(batch / "manifest.json")
    assert record["totals"]["rows"] == 4169
    seal_audit(EvidenceRoot(path=snapshot.path.parents[2]), CLUSTER, audit.path.name, {})
    sealed = Sealed.verified(audit.path).manifest["files"]
    copy = f"inputs/history/{CLUSTER}/commits/{record['folder']}"
    assert {"lag/commit_history.json", f"{copy}/manifest.json", f"{copy}/groups.parquet/part-00000.parquet"} <= set(sealed)
    assert sealed[f"{copy}/manifest.json"]["sha256"] == record["manifest_sha256"]
    told = {one.group_id: one for one in read_commit_history(audit.lag).groups}
    group = told["s-java-auto5"]
    assert (group.auto_commit, group.member_count, told["s-java-rewind"].rewinds) == ("consistent", 0, 1)

    part = next((used / "groups.parquet").glob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + b"x")
    before = (audit.lag / "findings.parquet" / "part-00000.parquet").read_bytes()
    assert judge_lag(snapshot, audit) == 5
    assert used.name in capfd.readouterr().err
    assert (audit.lag / "findings.parquet" / "part-00000.parquet").read_bytes() == before

    shutil.rmtree(used)
    only_subjects("group_sla", "group_partition")  # the record says nothing of the others
    assert judge_lag(snapshot, audit) == 0
    again = read_json(audit.lag / "commit_history.json")
    assert (again["folder"], again["changed_since"]) == (
        None,
        "an earlier run of this audit used behaviour/20261120T221000Z, which has been deleted since",
    )


@pytest.mark.parametrize("harm", [lambda whole: whole + b"x", lambda whole: whole[:4] + bytes([whole[4] ^ 1]) + whole[5:]])
def test_a_changed_batch_is_not_described(harm: Callable[[bytes], bytes], spark: SparkSession, commits: Path, tmp_path: Path) -> None:
    history = tmp_path / "commits"
    shutil.copytree(commits, history)
    part = next((history / "decoded" / "00000001" / "offset_commits.parquet").glob("*.parquet"))
    part.write_bytes(harm(part.read_bytes()))
    with pytest.raises(IntegrityError, match="00000001"):
        describe(spark, history, Window(end=END + timedelta(minutes=15), length=timedelta(hours=24)))


def test_a_batch_that_lost_its_records_is_refused_and_not_taken_for_an_old_one(spark: SparkSession, commits: Path, tmp_path: Path) -> None:
    history = tmp_path / "commits"
    shutil.copytree(commits, history)
    for part in history.glob("decoded/00000001/*/*.parquet"):
        part.unlink()
    with pytest.raises(IntegrityError, match=r"00000001: group_records\.parquet/part-00000\.parquet: is missing"):
        describe(spark, history, Window(end=END + timedelta(minutes=15), length=timedelta(hours=24)))
    assert [folder.name for folder in history.glob("behaviour/*")] == ["20261120T221000Z"]
