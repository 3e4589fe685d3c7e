"""Hadoop's jars for tests of other Spark masters: fetched from Maven Central once, and used only with the sha256 that is recorded.

After a change of ``hadoop/ivy.xml`` run ``python tests/spark/hadoop_jars.py``, which fetches them again and records their sha256.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark
import pytest

from kafka_audit.jars.fetch import IVY_SETTINGS, cache_directory, exclusive, java
from kafka_audit.jars.jar_list import differences, listed_jars, write_list

ASKED = "KAFKA_AUDIT_TEST_SPARK_MASTERS"
ON_REQUEST = pytest.mark.skipif(not os.environ.get(ASKED), reason="fetches 800 MB of Hadoop's jars: make test-spark-masters runs this test")
"""Tests that need the jars of this module."""

_IVY = Path(__file__).with_name("hadoop") / "ivy.xml"
_LIST = _IVY.with_name("jars.sha256")
_SPARKS = Path(pyspark.__file__).parent / "jars"


def hadoop_jars(configuration: str, into: Path) -> Path:
    """A folder below ``into`` with the jars of one configuration of ivy.xml, which every user may read who may read ``into``."""
    expected = {jar.file: jar.sha256 for jar in listed_jars(_LIST) if jar.configuration == configuration}
    folder = cache_directory() / "tools" / f"hadoop-{configuration}-{hashlib.sha256(_IVY.read_bytes()).hexdigest()[:12]}"
    with exclusive(folder.with_suffix(".lock"), wait=True):
        if differences(folder, expected):
            shutil.rmtree(folder, ignore_errors=True)
            _fetch(configuration, cache_directory() / "ivy", f"{folder}/[artifact]-[revision](-[classifier]).[ext]")
            assert differences(folder, expected) == []
    return readable(Path(shutil.copytree(folder, into / configuration, copy_function=_linked)))


def readable(folder: Path) -> Path:
    """The same folder, which every user may read: jobs that ran in this process keep new files private."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return folder


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def _fetch(configuration: str, cache: Path, pattern: str) -> None:
    (ivy,) = _SPARKS.glob("ivy-*.jar")
    command = [java(), "-jar", str(ivy), "-settings", str(IVY_SETTINGS), "-ivy", str(_IVY), "-cache", str(cache), "-confs", configuration]
    done = subprocess.run([*command, "-types", "jar", "bundle", "-retrieve", pattern], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"Ivy could not fetch Hadoop's jars: {done.stdout[-2000:]}"


def _record() -> None:
    with tempfile.TemporaryDirectory(prefix="kafka-audit-hadoop-") as name:
        folders = [Path(name, configuration) for configuration in ("s3a", "yarn")]
        for folder in folders:
            pattern = f"{folder}/[organisation]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]"
            _fetch(folder.name, Path(name, "ivy"), pattern)
        sys.stdout.write(f"{write_list(folders, _LIST)} jars are recorded in {_LIST}\n")


if __name__ == "__main__":
    _record()
