"""The demo: a seeded cluster of three real brokers, audited through Airflow, its findings held against the seed."""

import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from rich.console import Console
from rich.text import Text

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import ConfigurationError, GateFailedError
from kafka_audit.evidence import Audit, EvidenceRoot, new_id
from kafka_audit.sandbox import changes, lifecycle
from kafka_audit.sandbox.definition import SEEDS, load
from kafka_audit.sandbox.seeded_findings import Comparison, compare_failures, compare_not_assessed
from kafka_audit.snapshot import take_snapshot
from kafka_audit.terminal_summary import audit_and_summarise

POLICIES = Path(__file__).with_name("policy")


def run_demo(*, seed: str, root: Path, say: Callable[[str], None], console: Console) -> int:
    """Start the sandbox, audit it, compare, stop it. Returns 0 when the audit found exactly what was seeded, else 1.

    A faulty seed must end red (gate failed), a healthy one green. Ctrl-C and errors stop everything that was started.
    """
    known = sorted(path.stem for path in SEEDS.glob("*.yaml"))
    if seed not in known:
        raise ConfigurationError(f"there is no seed {seed!r}: write SEED={' or SEED='.join(known)}")
    say(f"Starting three Kafka brokers and writing the seed '{seed}'")
    # Beside the root, as Airflow's home is: a sandbox that the user runs for something else is left alone.
    sandbox = lifecycle.start(seed, directory=root.parent / ".demo-kafka", replace=True, progress=say)
    try:
        _make_history(sandbox, seed, root, say)
        say(f"Auditing {sandbox.bootstrap} through Airflow")
        outcome = audit_and_summarise(
            connection=sandbox.audit_connection,
            cluster=f"demo-{seed}",
            root=root,
            policy=POLICIES / seed,
            params={},
            say=say,
            console=console,
        )
    finally:
        say("Stopping the brokers and their clients")
        sandbox.stop(say)
    if outcome.report_path is None:
        return outcome.exit_code or 1
    audit = Audit(path=outcome.report_path.parent.parent)
    failures, unknown = compare_failures(audit, seed), compare_not_assessed(audit, seed)
    print_comparison(failures, "seeded faults", console)
    print_comparison(unknown, "results that cannot be assessed", console)
    wanted = GateFailedError.exit_code if seed != "healthy" else 0
    as_seeded = failures.exact and unknown.exact and outcome.exit_code == wanted
    if as_seeded and wanted:
        console.print(Text("The cluster is faulty on purpose, so the audit ended red, as it should.", style="green"))
    elif not as_seeded:
        console.print(Text(f"This is not what the seed asks for: expected exit code {wanted}, got {outcome.exit_code}", style="bold red"))
    return 0 if as_seeded else 1


def _make_history(sandbox: lifecycle.Sandbox, seed: str, root: Path, say: Callable[[str], None]) -> None:
    """Take the seed's earlier snapshots, at least a second apart, and change the cluster after the last of them."""
    definition = load(seed)
    for number in range(definition.earlier_snapshots):
        started = time.monotonic()
        now = datetime.now(timezone.utc)
        say(f"Taking earlier snapshot {number + 1} of {definition.earlier_snapshots}")
        take_snapshot(
            settings=ConnectionSettings.from_mapping(sandbox.audit_connection, where=str(sandbox.directory)),
            root=EvidenceRoot(path=root),
            cluster=f"demo-{seed}",
            snapshot_id=new_id(now, f"{now.isoformat()} {number}"),
            now=lambda: datetime.now(timezone.utc),
        )
        if number == definition.earlier_snapshots - 1:
            changes.apply(definition, sandbox.bootstrap)
        time.sleep(max(0.0, 1.1 - (time.monotonic() - started)))  # ids are told apart, and ordered, by the second


def print_comparison(comparison: Comparison, what: str, console: Console) -> None:
    """One line when all agree, else every difference."""
    exactly = ", none missed, none extra" if comparison.exact else ""
    console.print(Text(f"Held against the seed: {comparison.agreed} {what} found{exactly}"))
    for kind, pairs in (("missed", comparison.missed), ("extra", comparison.extra)):
        for code, resource in pairs:
            console.print(Text(f"  {kind}: {code} {resource!a}", style="red"))
