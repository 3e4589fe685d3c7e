"""``kafka-audit audit``, and what a person at a terminal sees of an audit when it has ended."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kafka_audit.airflow.run_dag import AuditRun, run_audit_through_airflow
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.audit.review_settings import ON_FAIL_VARIABLE
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cli import options
from kafka_audit.cli.audit_progress import shown_progress
from kafka_audit.cli.changes_since import SEVERITY_STYLES, print_changes
from kafka_audit.findings import Severity, Status
from kafka_audit.policy import load_policy
from kafka_audit.safe_text import percent, visible
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.signing_key import signing_key

_NAMED = 3


def page() -> Console:
    """Where a command prints its result. A log file or a pipe has no width of its own; the table of findings needs about 160 columns."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def audit(
    bootstrap: options.Bootstrap = None,
    connection: options.Connection = None,
    cluster: options.Cluster = "kafka",
    root: options.Root = Path("audit-root"),
    policy: options.PolicyFolder = None,
    controls: options.Controls = None,
    topics: options.Topics = "*",
    groups: options.Groups = "*",
    fail_on: Annotated[Severity, typer.Option(help="Failing findings of this severity or worse fail the gate.")] = Severity.HIGH,
    fail_on_new: Annotated[
        bool,
        typer.Option(
            "--fail-on-new",
            help="Only new failures fail the gate. Those of the newest earlier audit are old, unless it was itself blocked for new ones.",
        ),
    ] = False,
    min_coverage: Annotated[float, typer.Option(min=0, max=1, help="Smallest share of applicable verdicts that must be assessed.")] = 0.9,
    formats: options.Formats = options.DEFAULT_FORMATS,
) -> None:
    """Audit a cluster: snapshot, verification, gate and report, run as one Airflow DAG run. Reads only.

    The report is written as html and json in any case.
    """
    options.chosen_formats(formats)
    options.need_java()
    # The run's first task says the same, but only after Airflow has started.
    check_policy(load_policy(policy), load_catalogue([shipped_controls(), *(controls or [])]))
    signing_key()
    if wanted := os.environ.get(ON_FAIL_VARIABLE):
        options.say(f"{ON_FAIL_VARIABLE}={wanted} has no effect here: only runs in an Airflow with its UI wait for a person's review")
    params = {
        **{"topics": topics, "groups": groups, "fail_on": fail_on.value, "fail_on_new": fail_on_new},
        **{"min_coverage": min_coverage, "formats": formats},
    }
    connected = options.connection_keys(bootstrap, connection)
    with shown_progress() as progress:
        outcome = run_audit_through_airflow(
            connection=connected,
            cluster=cluster,
            root=root.resolve(),
            policy_dir=policy,
            controls_dirs=controls or [],
            params=params,
            progress=progress,
        )
    print_summary(outcome, page())
    raise typer.Exit(outcome.exit_code)


def print_summary(outcome: AuditRun, console: Console) -> None:
    """Print verdict, reasons, failing controls (worst first), coverage, what is new, seconds per step and the report's path."""
    console.print()
    colour = "bold green" if outcome.exit_code == 0 else "bold red"
    console.print(Text(f"{outcome.verdict}", style=colour), Text(f"(exit code {outcome.exit_code})", style="dim"))
    for reason in outcome.reasons:
        console.print(Text(f"  - {visible(reason)}"))
    for notice in outcome.notices:
        console.print(Text("Not complete:", style="bold yellow"), Text(visible(notice)))
    if outcome.report is not None:
        report = read_json(outcome.report.with_name("report.json"))
        _print_findings(report, console)
        print_changes(report["comparison"], console)
    if outcome.step_seconds:
        steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in outcome.step_seconds.items())
        console.print(Text(f"Seconds: {steps}; in all {outcome.total_seconds:.0f}", style="dim"))
    if outcome.report is not None:
        console.print(Text(f"Report: {outcome.report}", style="bold"))
    seal = sealed_as(outcome.audit) if outcome.audit is not None else None
    if seal is not None:
        console.print(Text(f"Sealed: {seal}"))


def _print_findings(report: Mapping[str, Any], console: Console) -> None:
    failing = [one for one in report["findings"] if one["status"] == Status.FAIL.value]
    named: dict[str, list[str]] = {}
    for finding in failing:
        named.setdefault(str(finding["control_id"]), []).append(visible(str(finding["resource"])))
    controls = [control for control in report["controls"] if control["counts"] and control["counts"]["failed"]]
    controls.sort(key=lambda control: (Severity(_worst(control)).rank, control["code"]))
    if controls:
        table = Table(box=None, pad_edge=False, show_edge=False)
        for heading in ("SEVERITY", "CONTROL", "FAILS", "WHAT IS NOT TRUE", "WHERE"):
            table.add_column(heading, overflow="fold")
        for control in controls:
            resources = named.get(str(control["control_id"]), [])
            more = control["counts"]["failed"] - len(resources[:_NAMED])
            where = ", ".join(resources[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            counts = control["counts"]
            fails = f"{counts['failed']} ({counts['waived']} waived)" if counts["waived"] else str(counts["failed"])
            table.add_row(
                Text(_worst(control), style=SEVERITY_STYLES[_worst(control)]), control["code"], fails, Text(control["title"]), Text(where)
            )
        console.print(table)
    coverage, totals = report["coverage"], report["totals"]
    share = percent(coverage["assessed"], coverage["applicable"]) if coverage["applicable"] else "not known: nothing was applicable"
    counted = {name: totals[name] for name in ("passed", "failed", "errored", "not_assessed", "not_applicable")}
    console.print(Text(f"Coverage {share} ({coverage['assessed']} of {coverage['applicable']} applicable results assessed)"))
    console.print(Text(", ".join(f"{name.replace('_', ' ')} {count}" for name, count in counted.items()), style="dim"))


def _worst(control: Mapping[str, Any]) -> str:
    """The worst severity that a tier gave one of the control's failures."""
    return str(control["worst_failure"] or control["severity"])
