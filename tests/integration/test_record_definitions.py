"""The definitions of records that are kept here are those of the Kafka release that the sandbox runs."""

import zipfile
from importlib.resources import files
from pathlib import Path

import pytest

from kafka_audit.jars.fetch import broker_classpath
from spark_jobs.commit_history.decode.definitions import group_coordinator, transaction_coordinator

pytestmark = pytest.mark.kafka
LEGACY = {"LegacyOffsetCommitKey.json", "LegacyOffsetCommitValue.json"}
"""Decoded like offset commits, which differ by the version of the value alone."""


def test_the_definitions_are_kafkas_byte_for_byte_and_none_is_missing() -> None:
    theirs = {}
    jars = Path(broker_classpath(print).removesuffix("*"))
    for kind in ("group", "transaction"):
        (jar,) = jars.glob(f"kafka-{kind}-coordinator-[0-9]*.jar")
        with zipfile.ZipFile(jar) as archive:
            names = [name for name in archive.namelist() if name.startswith("common/message/")]
            theirs |= {name.rpartition("/")[2]: archive.read(name) for name in names if name.endswith(("Key.json", "Value.json"))}
    ours = {
        file.name: file.read_bytes()
        for package in (group_coordinator, transaction_coordinator)
        for file in files(package).iterdir()
        if file.is_file()
    }
    assert {name: text for name, text in ours.items() if name.endswith(".json")} == {n: t for n, t in theirs.items() if n not in LEGACY}
