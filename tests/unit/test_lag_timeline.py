"""`kafka-audit history GROUP` shows the lag history of a group, also of one that was deleted, and without a commit history."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from kafka_audit.cli.lag_timeline import lag_timeline
from kafka_audit.cli.main import app, main
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.store.durable_files import replaced_folder
from kafka_audit.store.lag_days import GROUP_PARTITIONS, manifest_of
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from kafka_audit.store.samples import read_samples
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT, seal

AT = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
HOUR_MS = 3_600_000


def take(root: EvidenceRoot, minute: int, commits: dict[str, int], end: int | None, *, start: int = 0, kind: str = OFFSETS) -> Snapshot:
    """A snapshot in which groups have committed these offsets on orders-0."""
    at = AT + timedelta(minutes=minute)
    place = {"topic": "orders", "partition": 0, "read_at": at}
    rows = {
        "committed_offsets": [{"group_id": group, **place, "committed": committed} for group, committed in commits.items()],
        "offsets": [{**place, "log_start": None if end is None else start, "log_end": end}],
    }
    with root.snapshot_writer("kafka", new_id(at, "x"), kind) as writer:
        for name, found in rows.items():
            schema = DATASETS[name].schema
            writer.write(name, pa.Table.from_pylist([{column: row.get(column) for column in schema.names} for row in found], schema=schema))
        fields = {"cluster_id": "own", "started_at": at.isoformat(), "finished_at": at.isoformat()}
        return Snapshot.open(writer.seal(fields))


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    """A group that falls behind, loses records and is deleted; its first day is rolled up, and the snapshots of that day are gone."""
    found = EvidenceRoot(path=tmp_path)
    day = AT.date()
    sources = [take(found, minute, {"gone": 100}, 100) for minute in (0, 5)]
    start = int(datetime(day.year, day.month, day.day, tzinfo=timezone.utc).timestamp() * 1000)
    samples = read_samples(found, "kafka", first_ms=start, last_ms=start + 24 * HOUR_MS, interval_ms=300_000, cluster_id=None)
    with replaced_folder(found.lag_days("kafka") / day.isoformat()) as folder:
        rows = [
            {
                "group_id": "gone",
                "topic": "orders",
                "partition": 0,
                "taken_ms": one.taken_ms,
                "committed": 100,
                "log_start": 0,
                "log_end": 100,
            }
            for one in sources
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / GROUP_PARTITIONS)
        seal(folder, manifest_of("kafka", day, samples, 300_000, None))
    for one in sources:
        for file in one.path.iterdir():
            file.unlink()
        one.path.rmdir()
    take(found, 24 * 60, {"gone": 100, "other": 7}, 900)
    take(found, 24 * 60 + 5, {"gone": 120}, 950, start=150, kind=SNAPSHOT)
    take(found, 24 * 60 + 10, {"other": 8}, 950)
    return found


def history(root: EvidenceRoot, group: str = "gone") -> list[str]:
    done = CliRunner().invoke(app, ["history", group, "--root", str(root.path)])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


def test_a_deleted_group_has_its_lag_history_without_a_commit_history(root: EvidenceRoot) -> None:
    none, *lines = history(root)
    assert none.startswith("no timeline of commits: ")
    assert "let read_commits (DAG kafka_commit_history) run first" in none
    assert lines == [
        "2026-11-20 12:00:00.000Z  orders-0: first of 4 samples: committed 100, log 0 to 100, 0 unread",
        "2026-11-21 12:00:00.000Z  orders-0: sample with the most unread: committed 100, log 0 to 900, 800 unread",
        "2026-11-21 12:05:00.000Z  orders-0: last sample: committed 120, log 150 to 950, 800 unread, up to 30 deleted unread",
        "2026-11-21 12:10:00.000Z  the newest sample of the cluster shows no commit of the group",
    ]


def test_a_group_that_still_commits_is_not_said_to_be_gone(root: EvidenceRoot) -> None:
    assert history(root, "other")[1:] == [
        "2026-11-21 12:00:00.000Z  orders-0: first of 2 samples: committed 7, log 0 to 900, 893 unread",
        "2026-11-21 12:10:00.000Z  orders-0: last sample: committed 8, log 0 to 950, 942 unread",
    ]


def test_a_log_that_could_not_be_read_is_not_a_lag_of_0(root: EvidenceRoot) -> None:
    take(root, 24 * 60 + 15, {"dark": 5}, None)
    assert history(root, "dark")[1:] == ["2026-11-21 12:15:00.000Z  orders-0: first of 1 samples: committed 5, the log could not be read"]


@pytest.mark.parametrize(
    "harm", [lambda file: file.write_bytes(b"PAR1"), Path.unlink, lambda file: file.write_bytes(file.read_bytes() + b"x")]
)
def test_a_changed_snapshot_is_left_out_and_named(root: EvidenceRoot, harm: Callable[[Path], object]) -> None:
    changed = root.snapshot("kafka", root.sealed_ids("kafka", OFFSETS)[0], OFFSETS)
    harm(changed.dataset("committed_offsets"))
    entries, problems = lag_timeline(root, "kafka", "gone")
    assert "first of 3 samples" in entries[0].what
    assert [changed.snapshot_id in problem for problem in problems] == [True]


def test_a_group_that_nothing_shows_ends_with_exit_code_2_and_both_reasons(root: EvidenceRoot, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(lambda: app(["history", "nobody", "--root", str(root.path)], standalone_mode=False))
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "holds no decoded commits" in said
    assert "shows a commit of the group 'nobody'" in said
