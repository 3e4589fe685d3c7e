"""The environment of an Airflow that exists only for one audit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_audit.airflow.environment import audit_environment

IMPORTS = "import jsonschema, sys; print([name for name in ('rfc3987_syntax', 'lark') if sys.modules.get(name)])"


def test_its_processes_leave_out_a_package_whose_import_takes_seconds_and_keep_the_callers_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/caller")
    environment = audit_environment(root=tmp_path / "root", connection=None)
    assert environment["PYTHONPATH"].split(os.pathsep)[1:] == ["/of/the/caller"]
    done = subprocess.run([sys.executable, "-c", IMPORTS], env=environment, capture_output=True, text=True, timeout=600, check=True)
    assert done.stdout.strip() == "[]"
    monkeypatch.delenv("PYTHONPATH")
    assert os.pathsep not in audit_environment(root=tmp_path / "root", connection=None)["PYTHONPATH"]
