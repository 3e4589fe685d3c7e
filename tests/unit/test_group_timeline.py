"""A group's timeline from decoded Parquet files, also with hostile names."""

import shutil
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed_batch import seal
from typer.testing import CliRunner

from kafka_audit.cli.main import app, main
from kafka_audit.cli.timeline import timeline
from kafka_audit.errors import ConfigurationError
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import FileHashes

START = datetime(2026, 11, 20, 20, tzinfo=timezone.utc)
HOSTILE = "=cmd|' /C calc'!A0\n\u202e<script>"


def commit(offset: int, minute: float, committed: int | None, *, group: str = "billing", topic_id: str = "a") -> dict[str, Any]:
    time = START + timedelta(minutes=minute)
    value = {"committed": committed, "metadata": "", "topic_id": topic_id} if committed is not None else {}
    place = {"log_offset": offset, "append_time": time, "group_id": group, "topic": "orders", "partition": 0}
    return {**dict.fromkeys(("committed", "metadata", "topic_id")), **place, "tombstone": committed is None, **value}


def generation(offset: int, minute: float, number: int, members: int, group: str = "billing") -> dict[str, Any]:
    member = {"member_id": "m", "instance_id": None, "session_timeout_ms": 45000}
    value = {"generation": number, "protocol": "range" if members else None, "members": [member] * members}
    about = {"record_name": "group_metadata", "tombstone": False, "member_id": None, "group_metadata": value}
    return {"log_offset": offset, "append_time": START + timedelta(minutes=minute), "group_id": group, **about}


def write(folder: Path, batch: str, commits: list[dict[str, Any]], records: list[dict[str, Any]]) -> None:
    from kafka_audit.cli.timeline import _COMMIT_COLUMNS, _GROUP_COLUMNS

    member = pa.struct([("member_id", pa.string()), ("instance_id", pa.string()), ("session_timeout_ms", pa.int32())])
    group = pa.struct([("generation", pa.int32()), ("protocol", pa.string()), ("members", pa.list_(member))])
    kinds: dict[str, pa.DataType] = {
        **{"log_offset": pa.int64(), "append_time": pa.timestamp("us", "UTC"), "tombstone": pa.bool_(), "partition": pa.int32()},
        **{"committed": pa.int64(), "group_metadata": group},
    }
    for name, rows, columns in (("offset_commits", commits, _COMMIT_COLUMNS), ("group_records", records, _GROUP_COLUMNS)):
        schema = pa.schema([(column, kinds.get(column, pa.string())) for column in columns])
        target = folder / "decoded" / batch / f"{name}.parquet"
        target.mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), target / "part-00000.parquet")
    seal(folder / "decoded" / batch)


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    found = EvidenceRoot(path=tmp_path)
    folder = found.commit_history("kafka")
    write(folder, "00000002", [commit(20, 30, 130), commit(21, 31, None)], [generation(22, 32, 2, 0)])
    first = [commit(1, 0, 100), commit(2, 1, 150), commit(3, 2, 120), commit(4, 3, 5, topic_id="b"), commit(5, 3, 1, group=HOSTILE)]
    write(folder, "00000001", first, [generation(0, 0, 1, 3), generation(6, 4, 7, 1, HOSTILE)])
    return found


def test_what_changed_is_told_in_the_order_of_the_log(root: EvidenceRoot) -> None:
    found = timeline(root.commit_history("kafka"), "billing", quiet=timedelta(minutes=10))
    assert [entry.what for entry in found] == [
        "generation 1, 3 members (0 static), assignor range, session timeout 45000 ms",
        "orders-0: first commit, 100",
        "orders-0: went back from 150 to 120, 30 records",
        "orders-0: 5 on another topic of the same name (it was 120 on the old one)",
        "orders-0: 130 on another topic of the same name (it was 5 on the old one)",
        "orders-0: committed 130 after a pause of 27 min 0 s, 125 records on",
        "orders-0: offset 130 removed (expired or deleted), after 5 commits",
        "generation 2, no members",
    ]


def test_hostile_names_are_inert_and_the_group_is_found_by_its_exact_id(root: EvidenceRoot) -> None:
    done = CliRunner().invoke(app, ["history", HOSTILE, "--root", str(root.path)])
    assert done.exit_code == 0
    assert done.output.splitlines()[0].startswith("2026-11-20 20:03:00.000Z  orders-0: first commit, 1")
    assert "stands at 1 since then, 1 commits read" in done.output


def test_a_group_that_was_not_read_is_said_to_be_so(root: EvidenceRoot, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nothing of the group"):
        timeline(root.commit_history("kafka"), "billin", quiet=timedelta(minutes=10))
    with pytest.raises(ConfigurationError, match="no decoded commits"):
        timeline(tmp_path / "none", "billing", quiet=timedelta(minutes=10))


def other_figures(part: Path) -> None:
    rows = pq.read_table(part)
    pq.write_table(rows.set_column(rows.schema.get_field_index("committed"), "committed", pa.array([999] * len(rows), pa.int64())), part)


@pytest.mark.parametrize(
    ("harm", "named"),
    [
        (other_figures, "part-00000.parquet"),
        (lambda part: part.write_bytes(part.read_bytes()[:-9]), "part-00000.parquet"),
        *[
            (lambda part, name=name: pq.write_table(pa.table({name: ["billing"]}), part), "part-00000.parquet")
            for name in ("a", "group_id")
        ],
        (Path.unlink, "part-00000.parquet"),
        (lambda part: shutil.copy(part, part.with_name("part-99999.parquet")), "part-99999.parquet"),
    ],
    ids=["changed", "cut off", "of other columns", "without its columns", "removed", "added"],
)
def test_a_batch_that_is_not_what_its_manifest_says_ends_with_exit_code_5_and_one_line_that_names_the_file(
    root: EvidenceRoot, capsys: pytest.CaptureFixture[str], harm: Callable[[Path], object], named: str
) -> None:
    harm(root.commit_history("kafka") / "decoded" / "00000001" / "offset_commits.parquet" / "part-00000.parquet")
    with pytest.raises(SystemExit) as ended:
        main(lambda: app(["history", "billing", "--root", str(root.path)], standalone_mode=False))
    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (5, "")
    (line,) = shown.err.splitlines()
    assert "00000001" in line and f"offset_commits.parquet/{named}" in line


def test_only_batches_with_rows_of_the_group_are_hashed_and_each_file_once(root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    real = FileHashes.of
    monkeypatch.setattr(FileHashes, "of", lambda hashes, path: (hashed.append(Path(path)), real(hashes, path))[1])
    timeline(root.commit_history("kafka"), HOSTILE, quiet=timedelta(minutes=10))
    assert sorted(hashed) == sorted(root.commit_history("kafka").glob("decoded/00000001/*/*.parquet"))
