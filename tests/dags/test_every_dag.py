"""Rules for every DAG of this project, and how long loading one may take."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.airflow


def test_every_dag_file_loads(dagbag) -> None:
    assert dagbag.import_errors == {}
    # Nobody is to be told, so kafka_reliability_watch.py makes no DAG; test_tell_tasks.py has the rules for it.
    assert len(dagbag.dags) == len(list((ROOT / "dags").glob("*.py"))) - 1


def test_every_dag_is_documented_owned_tagged_limited_and_never_catches_up(dagbag) -> None:
    for dag in dagbag.dags.values():
        assert dag.doc_md and len(dag.doc_md) > 200, dag.dag_id
        assert dag.owner not in ("", "airflow"), dag.dag_id
        assert dag.tags, dag.dag_id
        assert dag.catchup is False, dag.dag_id
        assert dag.max_active_runs == 1, dag.dag_id
        assert timedelta() < dag.dagrun_timeout <= timedelta(hours=6), dag.dag_id
        assert all(task.execution_timeout for task in dag.tasks), dag.dag_id


def test_every_param_explains_itself_in_the_trigger_form(dagbag) -> None:
    for dag in dagbag.dags.values():
        for name in dag.params:
            param = dag.params.get_param(name)
            assert param.schema.get("title"), name
            assert param.schema.get("section"), name
            assert len(param.schema.get("description_md", "")) > 20, name
            param.resolve()  # the default satisfies its own schema


def test_every_dag_survives_serialisation(dagbag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in dagbag.dags.values():
        stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))
        again = DagSerialization.from_dict(stored)
        assert set(again.task_dict) == set(dag.task_dict)
        for task in dag.tasks:
            assert again.task_dict[task.task_id].downstream_task_ids == task.downstream_task_ids


def test_loading_the_dags_and_the_plugin_imports_nothing_heavy() -> None:
    """Every task process loads its DAG file, and every Airflow process the plugin."""
    script = """
import runpy, sys
from pathlib import Path
import airflow.sdk, airflow.plugins_manager
before = set(sys.modules)
for file in Path("dags").glob("*.py"):
    runpy.run_path(str(file))
import kafka_audit.airflow.plugin
heavy = ("great_expectations", "pandas", "pyspark", "kafka", "confluent_kafka", "pyarrow", "fastapi", "sqlglot", "numpy")
print([name for name in heavy if name in set(sys.modules) - before])
"""
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert found.stdout.strip().splitlines()[-1:] == ["[]"], found.stdout + found.stderr
