"""Small clusters are judged from rows in the driver, large ones with parallel reads and joins; both give the same findings."""

from collections.abc import Collection
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from large_audit import LargeAudit, judged, plain
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from snapshot_builder import CLUSTER, READ_AT, Synthetic, audit_folder

from kafka_audit.store.history import History
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot
from kafka_audit.store.sealed import OFFSETS
from spark_jobs import verify
from spark_jobs.engine import remote_tables
from spark_jobs.engine.evidence import files_read
from spark_jobs.engine.remote_tables import RemoteTables
from spark_jobs.engine.small_plans import PLANNING, SKIPPED_RULES
from spark_jobs.engine.tables import SmallTables, Tables, at_most, table_of

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("large_clusters")
def test_both_give_the_same_outputs_on_the_same_evidence(spark: SparkSession, large_audit: LargeAudit) -> None:
    settings = {name: spark.conf.get(name, None) for name in PLANNING}
    small, large = judged(large_audit.audit, large_audit.arguments, as_large=False), large_audit.outputs
    assert small.keys() == large.keys()
    for name, table in large.items():
        assert small[name] == table, name
    assert {name: spark.conf.get(name, None) for name in settings} == settings


def test_spark_has_every_rule_that_small_clusters_skip_and_needs_none_of_them(spark: SparkSession) -> None:
    optimizer = spark._jsparkSession.sessionState().optimizer()
    batches = optimizer.defaultBatches()
    rules = [batches.apply(number).rules() for number in range(batches.size())]
    names = {batch.apply(number).ruleName() for batch in rules for number in range(batch.size())}
    needed = optimizer.nonExcludableRules()
    assert len(SKIPPED_RULES) == len(set(SKIPPED_RULES)) > 60
    assert [name for name in SKIPPED_RULES if name not in names or needed.contains(name)] == []


def test_a_table_that_is_broadcast_may_wait_for_the_cores_as_long_as_the_job_runs(spark: SparkSession) -> None:
    assert spark._jsparkSession.sessionState().conf().broadcastTimeout() == 2**63 - 1  # seconds; Spark's default is 300


@pytest.fixture
def history(tmp_path: Path) -> tuple[Snapshot, Audit]:
    for hours in (1, 2):
        Synthetic().brokers({1: "a"}).write(tmp_path, READ_AT - timedelta(hours=hours), OFFSETS)
    snapshot = Synthetic().brokers({1: "a"}).write(tmp_path)
    return snapshot, audit_folder(tmp_path, snapshot)


def test_the_size_of_a_cluster_is_the_rows_of_all_that_may_be_read(history: tuple[Snapshot, Audit], tmp_path: Path) -> None:
    snapshot, _ = history
    samples = EvidenceRoot(path=tmp_path).snapshot_dir(CLUSTER, snapshot.snapshot_id, OFFSETS).parent
    files = list(files_read(snapshot, History(), 30))
    assert {path.parent.parent for path in files} == {snapshot.path.parent, samples}
    assert len({path.parent for path in files}) == 3
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    assert at_most(rows, files)
    assert not at_most(rows - 1, files)
    assert {path.parent for path in files_read(snapshot, History(), 0)} >= {snapshot.path}


def test_counting_stops_where_a_cluster_is_large_and_leaves_broken_files_to_their_readers(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "three.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")

    def files():
        yield tmp_path / "broken.parquet"
        yield tmp_path / "three.parquet"
        raise AssertionError("no further file is looked at")

    assert not at_most(2, files())


def kinds(spark: SparkSession, there: Collection[str] = ()) -> tuple[Tables, ...]:
    """Every way to read and write; ``there``: names of files that executors can read, where the driver sends all others."""
    remote = RemoteTables(spark=spark, address_of=lambda path: path.as_uri() if path.name in there else None)
    return SmallTables(spark=spark), Tables(spark=spark), remote


def test_rows_after_an_empty_file_are_kept_in_all(spark: SparkSession, tmp_path: Path) -> None:
    schema = table_of(spark, [], "a bigint").schema
    files = [tmp_path / name for name in ("1.parquet", "2.parquet", "3.parquet")]
    for file, values in zip(files, ([], [1], [2]), strict=True):
        pq.write_table(pa.table({"a": pa.array(values, pa.int64())}), file)
    small, large, remote = (tables.read(schema, files) for tables in kinds(spark, ["2.parquet"]))
    kept = SmallTables(spark=spark).keep(large.where("a > 1"))
    assert sorted(small.collect()) == sorted(large.collect()) == sorted(remote.collect()) == [(1,), (2,)]
    assert kept.collect() == [(2,)]


def test_long_ids_that_parquet_stores_once_make_a_cluster_large(tmp_path: Path) -> None:
    pq.write_table(pa.table({"group_id": ["g" * 32_000] * 1_500}), tmp_path / "long.parquet")
    pq.write_table(pa.table({"group_id": ["g" * 32] * 1_500}), tmp_path / "short.parquet")
    assert (tmp_path / "long.parquet").stat().st_size < 100_000
    assert not at_most(50_000, [tmp_path / "long.parquet"])
    assert at_most(50_000, [tmp_path / "short.parquet"])


def test_a_column_that_a_file_does_not_have_is_null_in_all(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "old.parquet")
    pq.write_table(pa.table({"a": [2], "c": [[1.5]]}), tmp_path / "new.parquet")
    schema = spark.createDataFrame(table_of(spark, [], "a bigint, b string, c array<double>").toArrow()).schema
    files = [tmp_path / "old.parquet", tmp_path / "new.parquet"]
    small, large, remote = (tables.read(schema, files) for tables in kinds(spark))
    assert sorted(small.collect()) == sorted(large.collect()) == sorted(remote.collect()) == [(1, "x", None), (2, None, [1.5])]


def test_a_time_that_nanoseconds_cannot_hold_is_the_same_in_all(spark: SparkSession, tmp_path: Path) -> None:
    late = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc)
    rows = pa.table({"at": pa.array([late], pa.timestamp("us", tz="UTC"))})
    pq.write_table(rows, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    for tables in kinds(spark):
        assert tables.read_whole(tmp_path / "int96.parquet").selectExpr("unix_micros(at)").collect() == [(253402300799999999,)]


def test_a_large_file_is_sent_in_parts_and_every_kind_writes_the_same_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_tables, "SENT_BYTES", 1_000)
    monkeypatch.setattr(remote_tables, "ROWS_OF_A_GROUP", 1_000)
    typed = pa.schema([("at", pa.int64()), ("keyed", pa.map_(pa.string(), pa.list_(pa.int64())))])
    columns = [pa.array(range(2_500)), pa.array([[("k", [n, None])] for n in range(2_500)], typed.field("keyed").type)]
    pq.write_table(pa.table(columns, schema=typed), tmp_path / "large.parquet")
    _, large, remote = kinds(spark)
    read = remote.read_whole(tmp_path / "large.parquet")
    with remote.settings():
        assert read.rdd.getNumPartitions() == 3
    estimate = int(str(read._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    assert estimate > 5_000, "Spark must not take a table that is sent for one that fits into every executor"
    assert read.schema == large.read_whole(tmp_path / "large.parquet").schema
    for name, order, parts in (("one", ["at"], 1), ("two", ["at"], 2), ("as they lie", (), 1), ("none", ["at"], 1)):
        wanted = read.where("at < 0") if name == "none" else read
        files = []
        for kind in (large, remote):
            kind.write(wanted, tmp_path / kind.__class__.__name__ / name, order, parts)
            written = sorted((tmp_path / kind.__class__.__name__ / name).iterdir())
            # Where one file ends and the next begins follows from a sample that Spark draws anew for each query.
            rows = [row for path in written for row in pq.read_table(path).to_pylist()]
            files.append(([(path.name, plain(pq.read_schema(path))) for path in written], rows))
        assert files[0] == files[1], name


def test_a_short_table_has_its_types_without_rows_too(spark: SparkSession) -> None:
    ddl = "name string, at bigint, share double"
    assert table_of(spark, [("a", 1, 0.5), (None, None, None)], ddl).collect() == [("a", 1, 0.5), (None, None, None)]
    empty = table_of(spark, [], ddl)
    assert (empty.collect(), empty.dtypes) == ([], [("name", "string"), ("at", "bigint"), ("share", "double")])


def test_the_jvm_is_asked_once_what_a_name_is(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    F.upper(F.col("warm"))
    client = spark.sparkContext._gateway._gateway_client
    sent: list[str] = []
    send = client.send_command
    monkeypatch.setattr(client, "send_command", lambda command, *rest, **more: sent.append(command) or send(command, *rest, **more))
    assert str(F.upper(F.col("other"))) == "Column<'upper(other)'>"
    assert [command for command in sent if command.startswith("r\n")] == []
    assert len([command for command in sent if command.startswith("c\n")]) >= 2
    with pytest.raises(Exception, match="does not exist"):
        spark.sparkContext._jvm.org.apache.spark.sql.functions.no_such_function()


def test_a_part_that_fails_leaves_the_other_ones_result(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_jobs.engine.evidence.without_contradictions", lambda snapshot, _: snapshot)  # rows of one topic are doubled
    twice = Synthetic().brokers({1: "a"}).topic("t", replicas=[1]).topic("t", replicas=[1]).group("g", assigned=[])
    snapshot = twice.write(tmp_path)
    audit = audit_folder(tmp_path, snapshot)
    assert verify.main(["--snapshot", str(snapshot.path), "--audit", str(audit.path)]) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("kafka-audit: settings: ")
    assert "but the snapshot has 2" in said
    assert not audit.settings.exists()
    assert (audit.lag / "findings.parquet").is_dir()
