"""The wheel as other people install it: built, installed into an environment of its own, and used from outside of the repository."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.airflow

LOOK = """
import importlib.util, json, sys
from airflow import plugins_manager
from airflow.dag_processing.dagbag import DagBag
from kafka_audit.catalogue.load import shipped_controls
from kafka_audit.policy import shipped_policy_folder
from kafka_audit.shipped import provide
from kafka_audit.submit import job_path

found = {
    "plain names": [name for name in ("spark_jobs", "expectations", "dags") if importlib.util.find_spec(name)],
    "plugins": [type(one).__module__ for one in plugins_manager._get_plugins()[0] if one.name == "kafka_audit"],
}
bag = DagBag(dag_folder=sys.argv[1])
found["dags"] = {dag_id: [dag.fileloc, len(dag.doc_md)] for dag_id, dag in bag.dags.items()}
found["errors"] = bag.import_errors
found["still unknown"] = [name for name in ("spark_jobs", "expectations", "dags") if name in sys.modules]
provide("expectations")
import expectations.gate
found["files"] = [str(shipped_controls()), str(shipped_policy_folder()), str(job_path("verify")), expectations.gate.__file__]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment ``venv`` that has the wheel; other packages are those of the tests' own environment."""
    folder = tmp_path_factory.mktemp("installed")
    uv = str(Path(sys.executable).with_name("uv"))
    build = [uv, "build", "--quiet", "--wheel", "--no-build-isolation", "--offline", "--python", sys.executable, "--out-dir", str(folder)]
    subprocess.run([*build, str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    python = str(folder / "venv" / "bin" / "python")
    subprocess.run([uv, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, str(wheel)], check=True)
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "others.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")), encoding="utf-8")
    return folder


def run(outside: Path, command: list[str], **changed: str) -> subprocess.CompletedProcess[str]:
    """Run a command of that environment, which knows nothing of the repository."""
    kept = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith(("KAFKA_AUDIT_", "AIRFLOW__"))
    }
    environment = {**kept, "AIRFLOW_HOME": str(outside / "airflow"), **changed}
    program = str(outside / "venv" / "bin" / command[0])
    return subprocess.run([program, *command[1:]], cwd=outside, env=environment, capture_output=True, text=True, check=False)


def test_airflow_finds_the_plugin_and_the_dags_of_a_file_of_three_lines(outside: Path) -> None:
    file = outside / "my_dags" / "kafka.py"
    file.parent.mkdir()
    file.write_text("from kafka_audit.airflow import audit_dags\n\naudit_dags()\n", encoding="utf-8")
    done = run(outside, ["python", "-c", LOOK, str(file.parent)], KAFKA_AUDIT_CLUSTERS="orders=kafka_orders", KAFKA_AUDIT_NOTIFY="mail")
    found = json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else pytest.fail(done.stderr)
    assert (found["plain names"], found["still unknown"], found["errors"]) == ([], [], {})
    assert found["plugins"] == ["kafka_audit.airflow.plugin"], "once, by its entry point"
    kinds = ("kafka_reliability_audit", "kafka_offsets_snapshot", "kafka_offsets_roll_up", "kafka_commit_history")
    assert set(found["dags"]) == {*(f"{kind}__orders" for kind in kinds), "kafka_reliability_watch"}
    assert {place for place, _ in found["dags"].values()} == {str(file)}
    assert all(length > 200 for _, length in found["dags"].values())
    assert all(Path(place).is_relative_to(outside / "venv") and Path(place).exists() for place in found["files"]), found["files"]


def test_the_commands_work_and_find_what_is_shipped(outside: Path) -> None:
    assert "doctor" in run(outside, ["kafka-audit", "--help"]).stdout
    listed = run(outside, ["kafka-audit", "controls", "list"])
    assert len(listed.stdout.splitlines()) == 1 + len(list((ROOT / "spark_jobs" / "controls").glob("*.yaml"))), listed.stderr
    looked = run(outside, ["kafka-audit", "doctor"])
    assert looked.returncode == 0, looked.stdout + looked.stderr
    assert "missing" not in looked.stdout


def test_only_the_process_of_a_job_imports_the_jobs_package(outside: Path) -> None:
    code = "from kafka_audit.submit import job_path; from kafka_audit.shipped import HOME; print(HOME, job_path('verify'))"
    home, job = run(outside, ["python", "-c", code]).stdout.split()
    alone = run(outside, ["python", job, "--help"])
    assert "No module named 'spark_jobs'" in alone.stderr
    started = run(outside, ["python", job, "--help"], PYTHONPATH=home)
    assert started.returncode == 0 and "--snapshot" in started.stdout, started.stderr


def test_a_package_of_another_with_the_same_name_is_left_alone_or_named(outside: Path) -> None:
    theirs = outside / "theirs" / "expectations"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text("", encoding="utf-8")
    ours = "from kafka_audit.shipped import provide; provide('expectations'); import expectations; print(expectations.__file__)"
    done = run(outside, ["python", "-c", ours], PYTHONPATH=str(theirs.parent))
    assert str(outside / "venv") in done.stdout, done.stderr
    taken = run(outside, ["python", "-c", f"import expectations; {ours}"], PYTHONPATH=str(theirs.parent))
    assert f"this process has imported another package expectations, from {theirs}" in taken.stderr
    shutil.rmtree(theirs.parent)
