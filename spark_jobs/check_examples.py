"""Judges controls by their own examples, with the engine that judges clusters: `python -m spark_jobs.check_examples FOLDER...`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_audit.catalogue.control import PARAMETERS, Control
from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.errors import AuditError, ConfigurationError
from spark_jobs.engine.session import spark_session
from spark_jobs.engine.tables import rows_of
from spark_jobs.judge.controls import judge

FIRST_AUDIT = "first_audit"
Key = tuple[str, str]


def rows_ddl(subject: str, controls: Sequence[Control]) -> str:
    """The DDL of a subject's wide rows with the parameters of these controls, and whether the row is of a first audit."""
    fields = ",".join(f"{name}:{one.type}" for control in controls for name, one in control.parameters.items())
    return SUBJECTS[subject].ddl + (f", `{PARAMETERS}` struct<{fields}>" if fields else "") + f", `{FIRST_AUDIT}` boolean"


def judged_examples(spark: SparkSession, catalogue: Catalogue) -> dict[Key, dict[str, Any]]:
    """(control id, example name) -> its finding; one query for each subject."""
    found: dict[Key, dict[str, Any]] = {}
    for subject in SUBJECTS:
        controls = catalogue.of_subject(subject)
        values = [
            {**control.example_row(example), "resource": json.dumps([control.id, example.name]), FIRST_AUDIT: example.first_audit}
            for control in controls
            for example in control.examples
        ]
        if not values:
            continue
        rows = rows_of(spark, values, rows_ddl(subject, controls))
        for finding in judge(rows, controls, first_audit=F.col(FIRST_AUDIT)).collect():
            control_id, example = json.loads(finding["resource"])
            if control_id == finding["control_id"]:
                found[control_id, example] = finding.asDict()
    return found


def differences(catalogue: Catalogue, findings: dict[Key, dict[str, Any]]) -> list[str]:
    """The examples that got another verdict, reason or value of a command than they name, as sentences."""
    wrong = []
    for control in catalogue.controls:
        for example in control.examples:
            finding = findings[control.id, example.name]
            if finding["status"] != example.status.value or (example.reason or "") not in (finding["reason"] or ""):
                got = f"{finding['status']} ({finding['reason']})" if finding["reason"] else finding["status"]
                wrong.append(f"{control.id}.yaml: example {example.name!r} says {example.status.value}, the rule says {got}")
            filled = {name: value for name, value in json.loads(finding["remediation"] or "{}").items() if value is not None}
            if example.values is not None and filled != example.values:
                wrong.append(f"{control.id}.yaml: example {example.name!r} names the values {example.values}, computed are {filled}")
    return wrong


def main(folders: Sequence[str]) -> int:
    """Judge the controls of the folders; 0 when every example gets the verdict it names, else the error's exit code."""
    try:
        catalogue = load_catalogue([Path(folder) for folder in folders])
        wrong = differences(catalogue, judged_examples(spark_session("kafka_audit check_examples"), catalogue))
        if wrong:
            raise ConfigurationError("these examples contradict their rules:\n  " + "\n  ".join(wrong))
    except AuditError as problem:
        print(f"kafka-audit: {problem}", file=sys.stderr)  # noqa: T201 - a command's output
        return problem.exit_code
    except PySparkException as problem:
        print(f"kafka-audit: Spark does not accept a rule: {str(problem)[:1000]}", file=sys.stderr)  # noqa: T201 - as above
        return ConfigurationError.exit_code
    examples = sum(len(control.examples) for control in catalogue.controls)
    print(f"{examples} examples of {len(catalogue.controls)} controls get the verdicts they name")  # noqa: T201 - as above
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
