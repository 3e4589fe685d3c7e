"""The sweep reports and leaves what it may not read or cannot restore, and continues with the rest."""

import errno
import os
from pathlib import Path

import pytest
from test_sweep import SEALED, UNFINISHED, names

from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sweep import sweep
from kafka_audit.store.unfinished import hidden_name, old_name


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    """Evidence with one sealed snapshot."""
    found = EvidenceRoot(path=tmp_path / "root")
    with found.snapshot_writer("prod", SEALED) as snapshot:
        snapshot.seal({"cluster_id": "abc"})
    return found


def test_another_users_hidden_folder_is_told_and_left_and_stops_nothing(root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    place = root.snapshot_dir("prod", SEALED).parent
    theirs, ours = (hidden_name(place / UNFINISHED) for _ in range(2))
    theirs.mkdir()
    ours.mkdir()
    refuse(monkeypatch, theirs)
    said: list[str] = []
    sweep(root, "prod", said.append)
    assert names(place) == [theirs.name, SEALED]
    assert f"{theirs}: left alone, it cannot be swept (Permission denied)" in said
    assert f"{ours}: removed, a writer that was killed had left it" in said


@pytest.mark.parametrize("place", ["offsets/prod", f"audits/prod/{UNFINISHED}"])
def test_a_folder_that_may_not_be_listed_stops_nothing(root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    theirs = root.path / place
    theirs.mkdir(parents=True)
    left = root.snapshot_dir("prod", SEALED).with_name(hidden_name(Path(UNFINISHED)).name)
    left.mkdir()
    refuse(monkeypatch, theirs)
    said: list[str] = []
    sweep(root, "prod", said.append)
    assert f"{theirs}: not swept, it cannot be listed (Permission denied)" in said
    assert not left.exists()


def refuse(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """What the system answers about another user's private folder; the tests may run as root, whom it refuses nothing."""
    real_open, real_list, real_stat = os.open, os.listdir, os.stat

    def check(path: object) -> None:
        if isinstance(path, str | Path) and (Path(path) == folder or folder in Path(path).parents):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    def opened(path: Path, *how: int, **more: object) -> int:
        check(path)
        return real_open(path, *how, **more)

    def listed(path: Path = Path()) -> list[str]:
        check(path)
        return real_list(path)

    def looked(path: Path, **how: bool) -> os.stat_result:
        if Path(path) != folder:
            check(path)
        return real_stat(path, **how)

    for name, call in {"open": opened, "listdir": listed, "stat": looked}.items():
        monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize("there", ["nothing", "a file"])
def test_a_whole_folder_that_stepped_aside_is_not_given_up_for_one_without_a_manifest(root: EvidenceRoot, there: str) -> None:
    day = root.lag_days("prod") / "2026-11-20"
    old = old_name(hidden_name(day), day)
    old.mkdir(parents=True)
    (old / "manifest.json").write_text("old")
    day.mkdir()
    if there == "a file":
        (day / "groups.parquet").touch()
    said: list[str] = []
    sweep(root, "prod", said.append)
    if there == "nothing":
        assert (day / "manifest.json").read_text() == "old"
        assert names(day.parent) == ["2026-11-20"]
    else:
        assert (old / "manifest.json").read_text() == "old"
        assert any(f"{old}: left alone" in line for line in said)
    (day / "manifest.json").write_text("new")
    sweep(root, "prod")
    assert names(day.parent) == ["2026-11-20"]
    assert (day / "manifest.json").read_text() == "new"
