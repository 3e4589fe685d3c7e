"""A sandbox whose brokers crashed is cleaned up by the next start, and nothing of a sandbox is left after it was stopped."""

from pathlib import Path

import psutil
import pytest

from kafka_audit.errors import ConfigurationError
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.state import Folder

pytestmark = pytest.mark.kafka


def test_a_crashed_sandbox_is_cleaned_up_and_a_running_one_is_seeded(spare_cluster: Sandbox, tmp_path: Path) -> None:
    folder = Folder(spare_cluster.directory)
    assert " " in str(folder.path)
    first = folder.processes()
    assert len(first) == 3
    with pytest.raises(ConfigurationError, match="is up in"):
        lifecycle.start("none", directory=folder.path)
    first[0].kill()
    psutil.wait_procs(first[:1], timeout=600)
    assert lifecycle.status(directory=folder.path).condition == "degraded"

    with lifecycle.start("none", directory=folder.path) as sandbox:
        assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in first)
        skipped = lifecycle.seed_running("faulty", directory=folder.path)
        assert {verdict.control for verdict in skipped} >= {"BRK-01", "QRM-01", "REP-08", "AUD-01"}
        assert "TOP-01" not in {verdict.control for verdict in skipped}
        with pytest.raises(ConfigurationError, match="topics the seed would create: access-log"):
            lifecycle.seed_running("faulty", bootstrap=sandbox.bootstrap, directory=tmp_path / "other")
        second = folder.processes()
        assert len(second) == 4
        (folder.path / "state.json").unlink()  # as if the machine had lost it: processes are known by their arguments too
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in second)
    assert not folder.data.exists()
    assert folder.log("broker-1").stat().st_size > 0
