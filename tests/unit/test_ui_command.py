"""``kafka-audit ui`` without Airflow: the sandbox that it uses, the sample history, and what it tells."""

import json
import os
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import psutil
import pytest
from sample_template import CLUSTER, sample_template

from kafka_audit.cli import sample_history, ui
from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.sample.story import CLICKS, CLUSTERS, LAST
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.processes import ProcessRecord
from kafka_audit.sandbox.state import Folder, State
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import AUDIT


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> EvidenceRoot:
    made = EvidenceRoot(path=tmp_path_factory.mktemp("demo") / "root")
    sample_template(made)
    return made


def demo(seed: str, *, started: bool = True) -> ui.Demo:
    return ui.Demo(sandbox=Sandbox(directory=Path("/nowhere"), bootstrap="127.0.0.1:1", seed=seed), started=started)


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r"^\S+  ", "", line) for line in capsys.readouterr().err.splitlines()]


def test_the_dags_audit_the_sandbox_under_the_name_of_the_demo_and_by_its_policy() -> None:
    assert (demo("faulty").cluster, demo("healthy").cluster) == ("demo-faulty", "demo-healthy")
    for seed in ("faulty", "healthy"):
        policy = demo(seed).policy
        assert policy is not None and (policy / "tiers.yaml").is_file()
    assert demo("none").policy is None


def test_a_sandbox_that_is_up_is_used_and_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CACHE", str(tmp_path / "cache"))
    folder = Folder()
    folder.claim()
    this = psutil.Process()
    process = ProcessRecord(role="broker-1", pid=os.getpid(), started=this.create_time(), argument=this.cmdline()[0])
    folder.save(State(seed="healthy", seeded="healthy", cluster_id="c", bootstrap="127.0.0.1:9", brokers=(), processes=(process,)))
    with ui.sandbox_up(tmp_path / "root") as found:
        assert (found.started, found.cluster, found.sandbox.audit_connection) == (
            False,
            "demo-healthy",
            {"bootstrap.servers": "127.0.0.1:9"},
        )
    assert folder.load() is not None and not (tmp_path / "root").exists()
    assert told(capsys) == ["The sandbox is up at 127.0.0.1:9 (seed healthy)"]


def test_a_port_that_is_in_use_is_refused_before_anything_is_started() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigurationError, match=rf"--port: 127.0.0.1:{taken.getsockname()[1]} cannot be used"):
            ui.check_free(taken.getsockname()[1])


def test_the_sample_clusters_are_shared_between_two_processes() -> None:
    assert ui.shares(CLUSTERS) == [["sample-orders"], ["sample-payments", "sample-clicks"]]
    assert ui.shares([CLICKS]) == [["sample-clicks"]]


def test_only_sample_clusters_without_a_history_are_written(root: EvidenceRoot, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Sequence[str]] = []
    (root.path / "audits" / "sample-orders").mkdir()
    try:
        ui.sample_histories(root.path, "demo-healthy", asked.extend)
        assert [command[command.index("--now") + 2 :] for command in asked] == [["sample-payments"], ["sample-clicks"]]
        assert all(command[command.index("--cluster") + 1] == CLUSTER for command in asked)
        assert "sample history: writing three weeks of made-up audits (half a minute)" in told(capsys)
    finally:
        (root.path / "audits" / "sample-orders").rmdir()


def test_histories_that_are_there_are_left_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for one in CLUSTERS:
        (tmp_path / "audits" / one.name).mkdir(parents=True)
    asked: list[Sequence[str]] = []
    ui.sample_histories(tmp_path, CLUSTER, asked.extend)
    assert asked == []
    assert told(capsys)[0].startswith("The sample history is there")


def test_without_an_audit_to_make_samples_from_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked: list[Sequence[str]] = []
    ui.sample_histories(tmp_path, "demo-healthy", asked.extend)
    assert asked == []
    assert told(capsys) == ["No sample history: it is made from an audit of demo-faulty, and there is none. Run `make demo` first"]


def test_a_history_that_cannot_be_written_costs_only_itself(root: EvidenceRoot, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(commands: Sequence[Sequence[str]]) -> None:
        raise CollectionError("no space left")

    ui.sample_histories(root.path, CLUSTER, fail)
    assert told(capsys)[-1] == "No sample history: no space left"


def test_what_the_processes_print_is_told_and_the_first_failure_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    good = [sys.executable, "-c", "print('7 audits')"]
    bad = [sys.executable, "-c", "import sys; sys.exit('it is broken')"]
    with pytest.raises(CollectionError, match=r"^it is broken$"):
        ui._run_all([good, bad])
    assert told(capsys) == ["7 audits"]


def test_the_process_writes_the_samples_that_it_is_asked_for(
    root: EvidenceRoot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sample_history, "CLUSTERS", (replace(CLICKS, first=LAST),))
    [audit_id] = root.sealed_ids(CLUSTER, AUDIT)
    now = datetime(2026, 11, 26, tzinfo=timezone.utc).isoformat()
    sample_history.main(["--root", str(root.path), "--cluster", CLUSTER, "--audit", audit_id, "--now", now, "sample-clicks"])
    assert re.fullmatch(r"sample-clicks: 1 audits written in \d+ s\n", capsys.readouterr().out)
    [made] = root.sealed_ids("sample-clicks", AUDIT)
    assert json.loads((root.audit("sample-clicks", made).path / "run.json").read_text())["sample"] is True


def test_a_template_that_was_changed_ends_the_process_with_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = EvidenceRoot(path=tmp_path / "root")
    template = sample_template(root)
    template.audit.run_file.write_text("{}")
    arguments = ["--root", str(root.path), "--cluster", CLUSTER, "--audit", template.audit.path.name, "--now", "2026-11-26T00:00:00+00:00"]
    with pytest.raises(SystemExit) as ended:
        sample_history.main([*arguments, "sample-clicks"])
    assert ended.value.code == 5
    assert "does not match its manifest" in capsys.readouterr().err


def test_at_the_end_it_says_where_to_look_and_what_is_made_up(tmp_path: Path) -> None:
    (tmp_path / "audits" / "sample-orders").mkdir(parents=True)
    text = ui.what_to_see(tmp_path, demo("faulty"), 8080)
    assert "http://127.0.0.1:8080   user admin, password admin; Ctrl-C stops it" in text
    assert "Browse > Kafka reliability opens a new tab: demo-faulty is a real cluster" in text
    assert "sample-orders: sample data, made up" in text
    assert "sample data" not in ui.what_to_see(tmp_path / "other", demo("faulty"), 8080)
