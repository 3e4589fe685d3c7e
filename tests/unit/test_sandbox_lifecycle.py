"""A sandbox takes only its own folder, and a start that fails leaves nothing behind."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_audit.cli.sandbox import app
from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.jars.fetch import exclusive
from kafka_audit.sandbox import brokers, lifecycle
from kafka_audit.sandbox.state import Folder


def test_a_folder_with_other_files_is_never_taken(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.txt").touch()
    with pytest.raises(ConfigurationError, match="not a sandbox's"):
        Folder(tmp_path).claim()
    assert lifecycle.stop(directory=tmp_path) == 0
    assert (tmp_path / "data" / "mine.txt").exists()


def test_a_folder_name_with_a_comma_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="commas"):
        Folder(tmp_path / "a,b").claim()


def test_an_unreadable_state_file_counts_as_none(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "sandbox")
    folder.claim()
    (folder.path / "state.json").write_text('{"version": 1, "seed"', encoding="utf-8")
    assert lifecycle.status(directory=folder.path).condition == "down"
    assert lifecycle.stop(directory=folder.path) == 0


def test_two_commands_never_work_in_one_folder(tmp_path: Path) -> None:
    with (
        exclusive(tmp_path / "lock", wait=False),
        pytest.raises(ConfigurationError, match="Another process"),
        exclusive(tmp_path / "lock", wait=False),
    ):
        pass


@pytest.mark.parametrize("problem", [CollectionError("no storage"), KeyboardInterrupt()])
def test_a_start_that_fails_leaves_no_data_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(lifecycle, "broker_classpath", lambda _: "jars/*")
    monkeypatch.setattr(brokers, "format_storage", fail)
    folder = Folder(tmp_path / "sandbox")
    with pytest.raises(type(problem)):
        lifecycle.start("none", directory=folder.path)
    assert not folder.data.exists()
    assert lifecycle.status(directory=folder.path).condition == "down"


def test_commands_say_when_nothing_runs(tmp_path: Path) -> None:
    run, where = CliRunner(), ["--dir", str(tmp_path / "none")]
    stopped = run.invoke(app, ["stop", *where])
    assert (stopped.exit_code, stopped.stdout) == (0, "No sandbox was running\n")
    assert run.invoke(app, ["status", *where]).exit_code == 1
    seeded = run.invoke(app, ["seed", "faulty", *where])
    assert seeded.exit_code == 2
    assert "kafka-audit sandbox start --seed faulty" in seeded.output
