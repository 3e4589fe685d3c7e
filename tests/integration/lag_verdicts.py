"""The audit's results for the story in lag_scenarios: the wide rows of both whole snapshots, and the findings on the last."""

from dataclasses import dataclass
from datetime import datetime, timezone
from functools import reduce
from typing import Any

from lag_scenarios import Story
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.session import spark_session
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.rows.build import wide_rows

_CODES = ("CON-03", "CON-04", "CON-05", "CON-06", "CON-07", "TOP-05", "TOP-14", "REP-07", "TXN-01", "TXN-02")


@dataclass(frozen=True)
class Verdicts:
    """Rows of group_partition by resource, in the middle and at the end, and (code, resource) of findings at the end."""

    middle: dict[str, dict[str, Any]]
    end: dict[str, dict[str, Any]]
    findings: dict[tuple[str, str], dict[str, Any]]

    def failing(self, code: str) -> set[str]:
        """Resources that fail a control."""
        return {resource for (each, resource), finding in self.findings.items() if each == code and finding["status"] == "fail"}


def verdicts(story: Story) -> Verdicts:
    """Read the evidence once with Spark; the brokers may be gone."""
    spark = spark_session("kafka_audit lag truth")

    def evidence(snapshot: Snapshot) -> Evidence:
        return Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, story.policy.history.snapshots), small_cluster=True)

    def rows(of: Evidence, moment: str) -> DataFrame:
        return wide_rows("group_partition", of, story.policy).withColumn("moment", F.lit(moment))

    try:
        end = evidence(story.end)
        with end.tables.settings():
            both = rows(evidence(story.middle), "middle").unionByName(rows(end, "end"))
            found: dict[str, dict[str, dict[str, Any]]] = {"middle": {}, "end": {}}
            for row in both.collect():
                found[row["moment"]][row["resource"]] = row.asDict(recursive=True)
            findings = {(row["code"], row["resource"]): row.asDict(recursive=True) for row in _findings(end, story).collect()}
    finally:
        spark.stop()
    return Verdicts(**found, findings=findings)


def _findings(evidence: Evidence, story: Story) -> DataFrame:
    controls = [control for control in load_catalogue([shipped_controls()]).controls if control.code in _CODES]
    policy_columns = PolicyColumns(policy=story.policy, at=datetime.now(timezone.utc))
    judged = [
        judge(
            wide_rows(subject, evidence, story.policy),
            [control for control in controls if control.subject == subject],
            None,
            policy_columns,
        )
        for subject in sorted({control.subject for control in controls})
    ]
    return reduce(DataFrame.unionByName, judged)
