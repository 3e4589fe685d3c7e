"""An audit of groups in every state, and everything that judging it as that of a large cluster writes."""

import json
import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from lag_histories import HISTORIES, SLAS
from lag_histories import snapshot as snapshot_of
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from snapshot_builder import READ_AT, audit_folder

from kafka_audit.policy import shipped_policy_folder
from kafka_audit.store.layout import Audit
from kafka_audit.store.sealed import OFFSETS
from spark_jobs import verify
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.session import with_settings
from spark_jobs.engine.small_plans import PLANNING
from spark_jobs.engine.tables import Tables

_NOT_COMPILED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Compiling every expression would take a fifth of the time. The applications on clusters compile theirs, and the outputs are compared."""


@dataclass(frozen=True, kw_only=True)
class LargeAudit:
    """``arguments``: the job's. ``outputs``: what it wrote into the audit's folder, which is empty again."""

    audit: Audit
    arguments: list[str]
    outputs: dict[str, Any]


def judged(audit: Audit, arguments: list[str], *, as_large: bool) -> dict[str, Any]:
    """What the job writes, judging the cluster as a large one or as it is; the audit's folder is emptied after that."""
    used: list[bool] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify, "Evidence", lambda **given: used.append(given["small_cluster"]) or Evidence(**given))
        if as_large:
            patch.setattr(verify, "SMALL_ROWS", 0)
            patch.setattr(Tables, "settings", lambda tables: with_settings(tables.spark, _NOT_COMPILED))
        assert verify.main(arguments) == 0
    assert used == [not as_large]
    found = outputs(audit.path)
    assert len(found) > 10
    shutil.rmtree(audit.settings)
    shutil.rmtree(audit.lag)
    return found


def judged_as_large(spark: SparkSession, root: Path) -> LargeAudit:
    """Judge the whole catalogue with a session that is set for large clusters. The job leaves its settings as they were."""
    audit, arguments = evidence_of_groups(root)
    settings = {name: spark.conf.get(name, None) for name in PLANNING}
    written = judged(audit, arguments, as_large=True)
    assert {name: spark.conf.get(name, None) for name in settings} == settings
    return LargeAudit(audit=audit, arguments=arguments, outputs=written)


def outputs(folder: Path) -> dict[str, Any]:
    """Every table of an audit with its columns, and every record, by its path."""
    tables = {path: pq.read_table(path) for path in folder.glob("*/*.parquet")}
    found: dict[str, Any] = {str(path.relative_to(folder)): (plain(table.schema), table.to_pylist()) for path, table in tables.items()}
    return {**found, **{str(path.relative_to(folder)): json.loads(path.read_text()) for path in folder.glob("*/*.json")}}


def plain(schema: pa.Schema) -> str:
    """Names and types; whether a column may be NULL is left out, because Spark reads every column of Parquet as one that may."""
    return from_arrow_schema(schema).toNullable().simpleString()


def evidence_of_groups(root: Path) -> tuple[Audit, list[str]]:
    """An audit to judge, of groups in every state over seven snapshots, and the job's arguments."""
    for age in range(6, 0, -1):
        snapshot_of(HISTORIES, age).write(root, READ_AT - timedelta(minutes=5 * age), OFFSETS if age % 2 else "snapshot")
    now = snapshot_of(HISTORIES, 0).topic("single", replicas=[1], isr=[]).error("members", "TIMEOUT", group_id=next(iter(HISTORIES)))
    # Two answers, and a refusal: two errors of one dataset, for which a task without the session's settings would raise DUPLICATED_MAP_KEY.
    now.add("topic_configs", topic="single", name="retention.ms", value="1", source="DEFAULT_CONFIG", is_sensitive=False, synonyms=[])
    snapshot = now.error("topic_configs", "TIMEOUT", topic="single").error("quorum", "TIMEOUT").write(root)
    policy = root / "policy"
    shutil.copytree(shipped_policy_folder(), policy)
    (policy / "slas.yaml").write_text(yaml.safe_dump({"version": 1, "groups": [SLAS]}))
    audit = audit_folder(root, snapshot)
    arguments = ["--snapshot", str(snapshot.path), "--audit", str(audit.path), "--policy", str(policy)]
    return audit, arguments
