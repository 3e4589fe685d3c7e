"""``kafka-audit demo``: audits a seeded cluster of three real brokers through Airflow and compares the findings with the seed."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from kafka_audit.airflow.run_dag import run_audit_through_airflow
from kafka_audit.cli.audit import page, print_summary
from kafka_audit.cli.audit_progress import shown_progress
from kafka_audit.cli.options import Root, need_java, say
from kafka_audit.errors import ConfigurationError, GateFailedError
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.definition import SEEDS
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.seeded_findings import Comparison, compare_failures, compare_not_assessed
from kafka_audit.sandbox.watch import stopped_when_killed
from kafka_audit.store.layout import Audit
from kafka_audit.store.mirrors import need_local

POLICIES = SEEDS.with_name("policy")


def demo(
    seed: Annotated[str, typer.Option(help="faulty or healthy")] = "faulty",
    root: Root = Path("audit-root"),
) -> None:
    """Start a three-broker Kafka with a seeded workload, audit it through Airflow, show the findings, stop it again."""
    need_java()
    need_local(root.resolve(), "--root: the demo")
    raise typer.Exit(run_demo(seed, root.resolve()))


def run_demo(seed: str, root: Path) -> int:
    """Start the sandbox, audit it, compare, stop it. Returns 0 if the audit found exactly the seeded faults, else 1.

    The gate must fail for a faulty seed and pass for a healthy one. Ctrl-C and errors stop everything that was started.
    """
    console = page()
    known = sorted(path.stem for path in SEEDS.glob("*.yaml"))
    if seed not in known:
        raise ConfigurationError(f"there is no seed {seed!r}: write --seed {' or --seed '.join(known)} (make demo: SEED=...)")
    say(f"Starting three Kafka brokers and writing the seed '{seed}'")
    # A folder beside the root, like Airflow's home: the user's own sandbox, in the default folder, is left alone.
    directory = root.parent / ".demo-kafka"
    with stopped_when_killed(directory):
        sandbox = lifecycle.start(seed, directory=directory, replace=True, progress=say)
        try:
            make_past(sandbox, seed, root=root, cluster=f"demo-{seed}", progress=say)
            say(f"Auditing {sandbox.bootstrap} through Airflow")
            with shown_progress() as progress:
                outcome = run_audit_through_airflow(
                    connection=sandbox.audit_connection, cluster=f"demo-{seed}", root=root, policy_dir=POLICIES / seed, progress=progress
                )
            print_summary(outcome, console)
        finally:
            say("Stopping the brokers and their clients")
            sandbox.stop(say)
    if outcome.report is None:
        return outcome.exit_code or 1
    audit = Audit(path=outcome.report.parent.parent)
    failures, unknown = compare_failures(audit, seed), compare_not_assessed(audit, seed)
    _print_comparison(failures, "seeded faults", console)
    _print_comparison(unknown, "results that cannot be assessed", console)
    wanted = GateFailedError.exit_code if seed != "healthy" else 0
    as_seeded = failures.exact and unknown.exact and outcome.exit_code == wanted
    if as_seeded and wanted:
        console.print(Text("The cluster is faulty on purpose, so the audit ended red, as it should.", style="green"))
    elif not as_seeded:
        console.print(Text(f"The seed expects another result: expected exit code {wanted}, got {outcome.exit_code}", style="bold red"))
    return 0 if as_seeded else 1


def _print_comparison(comparison: Comparison, what: str, console: Console) -> None:
    """Print one line if the findings match the seed, else every difference."""
    exactly = ", none missed, none extra" if comparison.exact else ""
    console.print(Text(f"Compared with the seed: {comparison.agreed} {what} found{exactly}"))
    for kind, pairs in (("missed", comparison.missed), ("extra", comparison.extra)):
        for code, resource in pairs:
            console.print(Text(f"  {kind}: {code} {resource!a}", style="red"))
