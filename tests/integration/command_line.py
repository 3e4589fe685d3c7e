"""``kafka-audit`` as a user runs it, and the audits that it leaves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from kafka_audit.airflow.environment import airflow_home, audit_environment
from kafka_audit.store.layout import Audit

COMMAND = [sys.executable, "-m", "kafka_audit.cli"]
_CREATE = """
import os
from importlib.metadata import version
from pathlib import Path
from airflow.utils import db
db.upgradedb()
Path(os.environ["AIRFLOW_HOME"], f"migrated-{version('apache-airflow')}").touch()
"""


def kafka_audit(*arguments: str, code: int) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user does; the exit code is part of every test."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path}
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=2400, check=False, env=environment)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def only_audit(root: Path, cluster: str) -> Audit:
    (folder,) = [path.parent for path in (root / "audits" / cluster).glob("*/manifest.json")]
    return Audit(path=folder)


class AirflowDatabase:
    """An empty database of Airflow's, which takes seconds to create: made once in a folder, and copied for each audit folder."""

    def __init__(self, folder: Path) -> None:
        self._home = airflow_home(folder / "root")
        if list(self._home.glob("migrated-*")):
            return
        self._home.mkdir(parents=True, exist_ok=True)
        environment = audit_environment(root=folder / "root", connection=None)
        subprocess.run([sys.executable, "-c", _CREATE], env=environment, check=True, capture_output=True, timeout=600)

    def give(self, root: Path) -> None:
        """Put a copy where an audit with this root looks for its database."""
        home = airflow_home(root)
        home.mkdir(parents=True, exist_ok=True)
        for file in (self._home / "airflow.db", *self._home.glob("migrated-*")):
            shutil.copy(file, home)
