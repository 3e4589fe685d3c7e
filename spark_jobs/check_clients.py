"""Judges client files before anything of them is deployed: `python -m spark_jobs.check_clients PATH`."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

from pyspark.errors import PySparkException

from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.catalogue.load import Catalogue, load_catalogue, shipped_controls
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.clients.declared import Implementation, Kind, declared_row, settings_row
from kafka_audit.clients.files import FoundClient, Reading, read_clients
from kafka_audit.errors import AuditError, CollectionError, GateFailedError, IncompleteError
from kafka_audit.findings import Severity, Status
from kafka_audit.policy import load_policy
from kafka_audit.safe_text import visible
from spark_jobs.engine.session import spark_session
from spark_jobs.engine.tables import rows_of
from spark_jobs.judge.controls import judge
from spark_jobs.judge.policy_columns import PolicyColumns

Finding = dict[str, Any]
_GRAVE = frozenset({Severity.CRITICAL.value, Severity.HIGH.value})
_LEAST_ASSESSED = 0.5
"""Least share of applicable verdicts that must be assessed: what only a running cluster or an owner can tell stays open in a file."""


def judged(clients: Sequence[FoundClient], catalogue: Catalogue, policy_folder: Path | None, at: datetime) -> list[Finding]:
    """The findings on these clients, by client and control code. Tiers are the policy's default one: a file names no cluster."""
    policy = load_policy(policy_folder)
    check_policy(policy, catalogue)
    policy_columns = PolicyColumns(policy=policy, at=at)
    spark = spark_session("kafka_audit check_clients")
    found: list[Finding] = []
    for subject in ("producer", "consumer"):
        values = [_row(client) for client in clients if client.kind == subject]
        controls = catalogue.of_subject(subject)
        if values and controls:
            rows = rows_of(spark, values, SUBJECTS[subject].ddl)
            found += [finding.asDict() for finding in judge(rows, controls, None, policy_columns).collect()]
    return sorted(found, key=lambda one: (one["resource"], one["subject"], one["code"]))


def _row(client: FoundClient) -> dict[str, Any]:
    if client.declaration is not None:
        row = declared_row(client.declaration)
    else:
        attested = {"producer": "attested_error_handling", "consumer": "attested_processing"}[client.kind]
        row = {**settings_row(client, source=client.source), attested: False}
    return {**row, "resource": client.name, "group_id": client.group, "errors": {}}


def report(reading: Reading, findings: Sequence[Finding]) -> list[str]:
    """The findings as lines to print; text from the files cannot move the terminal."""
    lines = []
    for client in reading.clients:
        lines.append(visible(f"{client.name}: {client.kind}, {client.implementation}"))
        own = [one for one in findings if (one["resource"], one["subject"]) == (client.name, client.kind)]
        for one in own:
            if one["status"] == Status.NOT_APPLICABLE.value:
                continue
            mark = "waived" if one["waiver"] else one["status"]
            lines.append(f"  {mark:<13} {one['severity']:<9} {one['code']}  {one['title']}")
            if one["status"] != Status.PASS.value:
                lines.append(visible(f"  {'':<31}{one['observed']}"))
            if one["reason"]:
                lines.append(visible(f"  {'':<31}{one['reason']}"))
    lines += [visible(f"no client settings: {one}") for one in reading.without]
    counts = Counter(one["status"] for one in findings)
    counted = ", ".join(f"{counts[status.value]} {status.value.replace('_', ' ')}" for status in Status if counts[status.value])
    return [*lines, f"{len(reading.clients)} clients: {counted or 'no findings'}"]


def refuse(findings: Sequence[Finding]) -> None:
    """GateFailedError (exit 3) for a high or critical failure without a waiver; IncompleteError (exit 4) when too little was assessed."""
    failed = [one for one in findings if one["status"] == Status.FAIL.value and one["severity"] in _GRAVE and not one["waiver"]]
    if failed:
        raise GateFailedError(f"{len(failed)} failures of high or critical severity; correct the settings, or have them waived")
    applicable = [one for one in findings if one["status"] != Status.NOT_APPLICABLE.value]
    open_ones = [one for one in applicable if one["status"] in (Status.NOT_ASSESSED.value, Status.ERROR.value)]
    critical = sorted({one["resource"] for one in open_ones if one["severity"] == Severity.CRITICAL.value})
    if critical:
        named = ", ".join(critical[:5])
        raise IncompleteError(
            f"a critical control could not be assessed on {named}: set its values, or name the client's release (--release)"
        )
    if not applicable or len(applicable) - len(open_ones) < _LEAST_ASSESSED * len(applicable):
        raise IncompleteError("too little could be assessed for a verdict: name the clients' files, or declare them in a clients.yaml")


def main(argv: Sequence[str] | None = None) -> int:
    """Read, judge and print; returns the exit code of kafka_audit.errors, 0 when nothing grave failed."""
    arguments = _arguments(argv)
    try:
        reading = read_clients(arguments.path, kind=arguments.kind, implementation=arguments.implementation, release=arguments.release)
        if not reading.clients:
            listed = "".join(f"\n  {one}" for one in reading.without)
            raise IncompleteError(f"{arguments.path}: no client settings found; name a file, or say what it is with --kind{listed}")
        catalogue = load_catalogue([shipped_controls(), *arguments.controls])
        findings = judged(reading.clients, catalogue, arguments.policy, datetime.now(timezone.utc))
        print("\n".join(report(reading, findings)), flush=True)  # noqa: T201 - a command's output
        refuse(findings)
    except AuditError as problem:
        text = "\n".join(visible(line) for line in str(problem).split("\n"))
        print(f"kafka-audit: {text}", file=sys.stderr)  # noqa: T201 - as above
        return problem.exit_code
    except PySparkException as problem:
        print(f"kafka-audit: Spark failed: {str(problem)[:1000]}", file=sys.stderr)  # noqa: T201 - as above
        return CollectionError.exit_code
    return 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="check_clients", description="Judge client files by the controls on producers and consumers.")
    parser.add_argument("path", type=Path, help="a file of client settings, or a folder with some")
    parser.add_argument("--kind", choices=get_args(Kind), help="what the files configure, where their settings do not tell")
    parser.add_argument("--implementation", choices=get_args(Implementation), help="the client that reads them")
    parser.add_argument("--release", help="the release of that client, which decides its defaults")
    parser.add_argument("--policy", type=Path, help="folder of a policy (default: the shipped one)")
    parser.add_argument("--controls", type=Path, action="append", default=[], help="folder of further controls; may be repeated")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
