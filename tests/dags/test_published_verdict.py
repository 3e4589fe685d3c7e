"""The verdict of an audit on its asset, and the gate that DAGs of other teams put in front of their tasks."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dag_run import WHEN, Run
from steps import Steps

from kafka_audit.audit.published import PublishedVerdict
from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.store.durable_files import read_json, sha256_of

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]
CLUSTER = "told"
ASSET = f"kafka-audit://audits/{CLUSTER}"


@pytest.fixture
def dag(load_dag, monkeypatch: pytest.MonkeyPatch):
    """The DAG of a cluster of this module's own: events of other tests' audits are of another asset."""
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", f"{CLUSTER}=kafka_default")
    return load_dag(f"kafka_reliability_audit__{CLUSTER}")


@pytest.fixture
def of_another_team(tmp_path: Path):
    """Writes and loads a DAG file of another team, with one task behind the gate; ``arguments`` are those of the gate, as Python text."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()

    def load(**arguments: str) -> Any:
        given = ", ".join(f"{name}={value}" for name, value in arguments.items())
        file = tmp_path / "theirs" / "other_team.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"""
from datetime import timedelta
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from kafka_audit.airflow import require_audit

with DAG("other_team", schedule=None):
    require_audit({CLUSTER!r}, {given}) >> EmptyOperator(task_id="theirs")
""")
        bag = DagBag(dag_folder=str(file.parent))
        assert bag.import_errors == {}
        sync_bag_to_db(bag, "dags-folder", None)
        return bag.dags["other_team"]

    return load


def test_another_teams_tasks_run_after_a_passed_audit_and_are_stopped_by_a_failed_one(
    dag, of_another_team, root: Path, steps: Steps, events
) -> None:
    gate = f"require_audit_{CLUSTER}"
    missing = Run(of_another_team())
    assert missing.states == {gate: "failed", "theirs": "upstream_failed"}
    assert f"no audit has been published on the asset {ASSET}" in str(missing.errors[gate])

    Run(dag)
    (audit,) = root.glob(f"audits/{CLUSTER}/*/run.json")
    ((_, uri, said),) = events()
    assert uri == ASSET
    assert PublishedVerdict.model_validate(said).model_dump(mode="json") == said
    snapshot = read_json(next(root.glob(f"evidence/{CLUSTER}/*/manifest.json")))
    expected = {
        "verdict": "PASSED",
        "exit_code": 0,
        "cluster": CLUSTER,
        "audit_id": audit.parent.name,
        "coverage": 0.975,
        "failed_by_severity": None,
        "manifest_sha256": sha256_of(audit.parent / "manifest.json"),
        "sequence": 1,
        "unlike_default": [],
    }
    assert {name: said[name] for name in expected} == expected
    assert PublishedVerdict.model_validate(said).evidence_at.isoformat() == snapshot["started_at"]
    passed = Run(of_another_team())
    assert (passed.state, set(passed.states.values())) == ("success", {"success"})
    assert passed.returned(gate) == said
    assert Run(of_another_team(max_age="timedelta(microseconds=1)")).states[gate] == "failed"

    steps.findings = ("FAIL", 3)
    red = Run(dag, when=WHEN.replace(hour=13))
    assert (red.failed, red.states["publish"]) == ({"gate"}, "success")
    assert [extra["verdict"] for _, _, extra in events()] == ["PASSED", "FAILED"]
    stopped = Run(of_another_team())
    message = str(stopped.errors[gate])
    for part in (events()[-1][2]["audit_id"], "it ended FAILED (exit code 3)", "the findings gate says FAIL", "plugin/audit-report"):
        assert part in message
    assert Run(of_another_team(at_least="'judged'")).state == "success"
    assert Run(of_another_team(on_stop="'skip'")).states == {gate: "skipped", "theirs": "skipped"}

    assert steps.calls.count("verify") == 2
    Run(dag, fail_on="critical", min_coverage=0.1, topics="a*", when=WHEN.replace(hour=14))
    assert events()[-1][2]["unlike_default"] == ["topics", "fail_on", "min_coverage"]
    assert "it ended FAILED" in str(Run(of_another_team()).errors[gate])


def test_void_and_broken_audits_are_published_and_a_refused_run_is_not(dag, root: Path, steps: Steps, events) -> None:
    steps.evidence = ("FAIL", 4)
    Run(dag)
    steps.raises["snapshot"] = CollectionError("no bootstrap server could be reached")
    Run(dag, when=WHEN.replace(hour=13))
    void, broken = (extra for _, _, extra in events())
    assert (void["verdict"], void["exit_code"]) == ("VOID", 4)
    assert (broken["verdict"], broken["evidence_at"], broken["coverage"], broken["manifest_sha256"]) == ("ERROR", None, None, None)
    assert any("no bootstrap server could be reached" in reason for reason in broken["reasons"])
    refused = Run(dag, fail_onn="low", when=WHEN.replace(hour=14))
    assert (refused.failed, refused.states["publish"]) == ({"plan", "gate"}, "skipped")
    assert len(events()) == 2


def test_a_verdict_that_could_not_be_published_turns_a_passed_audit_red(
    dag, root: Path, steps: Steps, events, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr("kafka_audit.airflow.publish.publish", full)
    run = Run(dag)
    assert run.failed == {"publish", "gate"}
    assert "The audit ended PASSED, but other DAGs were not told: the task publish ended failed" in run.gate
    assert events() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cluster": "A B"}, "cluster name 'A B'"),
        ({"cluster": "c", "at_least": "ok"}, "at_least: 'ok' is not a level: write one of passed, incomplete, judged"),
        ({"cluster": "c", "on_stop": "warn"}, "on_stop: 'warn' is not usable"),
        ({"cluster": "c", "max_age": timedelta(0)}, "max_age: 0:00:00 lets no audit through"),
    ],
)
def test_a_gate_that_could_not_work_is_refused_when_the_dag_is_loaded(arguments: dict[str, Any], message: str) -> None:
    from kafka_audit.airflow import require_audit

    with pytest.raises(ConfigurationError, match=message):
        require_audit(**arguments)


def test_importing_the_gate_loads_neither_the_audits_steps_nor_anything_heavy() -> None:
    import os
    import subprocess
    import sys

    script = """
import sys
import airflow.sdk
before = set(sys.modules)
from kafka_audit.airflow import audit_asset, require_audit
from kafka_audit.airflow import require_audit as again
assert again is require_audit and callable(require_audit)
heavy = ("great_expectations", "pandas", "pyspark", "kafka", "pyarrow", "fastapi", "sqlglot", "numpy", "kafka_audit.airflow.tasks")
print([name for name in heavy if name in set(sys.modules) - before])
"""
    found = subprocess.run([sys.executable, "-c", script], env=dict(os.environ), capture_output=True, text=True, check=False)
    assert found.stdout.strip().splitlines()[-1:] == ["[]"], found.stdout + found.stderr
