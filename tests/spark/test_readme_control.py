"""Adding your own control, exactly as the README says."""

import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from snapshot_builder import Synthetic, audit_folder
from typer.testing import CliRunner

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.rows import SETTINGS
from kafka_audit.cli.main import app
from kafka_audit.policy.load import shipped_policy_folder
from spark_jobs import check_examples
from spark_jobs.verify import main

pytestmark = pytest.mark.spark

SECTION = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split("### Add your own control in five minutes")[1]
NAME = re.search(r"Write `my-controls/(\w+\.yaml)`", SECTION)
CONTROL = SECTION.split("```yaml\n")[1].split("```")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert NAME is not None
    own = tmp_path / "my-controls"
    own.mkdir()
    (own / NAME[1]).write_text(CONTROL, encoding="utf-8")
    return own


def test_it_loads_beside_the_shipped_ones(folder: Path) -> None:
    done = CliRunner().invoke(app, ["controls", "check", str(folder)])
    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"{len(load_catalogue().controls) + 1} controls are valid")
    assert "OWN-01" in CliRunner().invoke(app, ["controls", "list", "--controls", str(folder)]).output


def test_its_examples_get_the_verdicts_they_name(folder: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_examples.main([str(folder)]) == 0
    assert "3 examples of 1 controls" in capsys.readouterr().out
    own = next(folder.iterdir())
    own.write_text(CONTROL.replace("= 'producer'", "<> 'producer'"), encoding="utf-8")
    assert check_examples.main([str(folder)]) == 2
    assert "example 'as sent' says pass, the rule says fail" in capsys.readouterr().err


def test_an_audit_judges_by_it_whatever_its_folders_are_called(folder: Path, spark: SparkSession, tmp_path: Path) -> None:
    # Names of folders stand in a job's command line, which Spark could once write into SQL.
    hostile = "${env:KAFKA_AUDIT_CANARY} ' || (select a from (map 1 using 'touch ran' as (a string))) || '"
    folder = folder.rename(tmp_path / f"controls {hostile}")
    policy = tmp_path / f"policy {hostile}"
    shutil.copytree(shipped_policy_folder(), policy)
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    cluster.topic("kept", config={"compression.type": "producer"}).topic("recompressed", config={"compression.type": "gzip"})
    snapshot = cluster.write(tmp_path)
    audit = audit_folder(tmp_path, snapshot)
    arguments = ["--snapshot", str(snapshot.path), "--audit", str(audit.path), "--controls", str(folder), "--policy", str(policy)]
    assert main([*arguments, "--parts", SETTINGS]) == 0
    rows = pq.read_table(audit.settings / "findings.parquet", columns=["code", "resource", "status"]).to_pylist()
    found = {row["resource"]: row["status"] for row in rows if row["code"] == "OWN-01"}
    assert found == {"kept": "pass", "recompressed": "fail"}
    assert not Path("ran").exists()
    written = repr(pq.read_table(audit.settings / "findings.parquet").to_pylist())
    assert "canary" not in written
    assert "touch" not in written
