"""The ``kafka-audit`` command. Exit codes: 0 passed, 1 failure, 2 invalid input, 3 gate failed, 4 incomplete, 5 integrity."""

import gc
import hashlib
import os
import signal
import sys
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from kafka_audit import __version__
from kafka_audit.cli.integrity import keys_app, verify
from kafka_audit.cli.options import (
    Bootstrap,
    Cluster,
    Connection,
    Controls,
    Groups,
    PolicyFolder,
    Root,
    Topics,
    connection_keys,
    printable,
    say,
)
from kafka_audit.cli.retention import retention
from kafka_audit.cli.sandbox import app as sandbox_app
from kafka_audit.errors import AuditError, ConfigurationError
from kafka_audit.findings import Severity
from kafka_audit.lag.command import lag
from kafka_audit.store.durable_files import keep_new_files_private

app = typer.Typer(help="Reliability audit for Apache Kafka: evidence, verdicts and reports.", no_args_is_help=True, add_completion=False)
controls_app = typer.Typer(help="The control catalogue.", no_args_is_help=True)
policy_app = typer.Typer(help="The policy: tiers, SLAs, declared clients, waivers, frameworks.", no_args_is_help=True)
app.add_typer(sandbox_app, name="sandbox")
app.add_typer(controls_app, name="controls")
app.add_typer(policy_app, name="policy")
app.add_typer(keys_app, name="keys")
app.command()(lag)
app.command()(retention)
app.command()(verify)
# A log file or a pipe has no width of its own; the table of findings needs about this much.
console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)


def need_java() -> None:
    """ConfigurationError with the way to install it unless Java is new enough for Spark and the brokers."""
    from kafka_audit.prerequisites import missing_prerequisites

    if problems := missing_prerequisites():
        raise ConfigurationError("\n".join(problems))


def check_rules(policy: Path | None, controls: list[Path]) -> None:
    """ConfigurationError unless the policy and the controls fit; the run's first task says the same, after Airflow has started."""
    from kafka_audit.audit.policy_fit import check_policy
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls
    from kafka_audit.policy import load_policy

    check_policy(load_policy(policy), load_catalogue([shipped_controls(), *controls]))


@app.command()
def audit(
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    cluster: Cluster = "kafka",
    root: Root = Path("audit-root"),
    policy: PolicyFolder = None,
    controls: Controls = None,
    topics: Topics = "*",
    groups: Groups = "*",
    fail_on: Annotated[Severity, typer.Option(help="Failing findings of this severity or worse fail the gate.")] = Severity.HIGH,
    min_coverage: Annotated[float, typer.Option(min=0, max=1, help="Least share of applicable verdicts that must be assessed.")] = 0.9,
) -> None:
    """Audit a cluster: snapshot, verification, gate and report, run as one Airflow DAG run. Reads only."""
    from kafka_audit.cli.summary import audit_and_summarise
    from kafka_audit.store.signing import signing_key

    need_java()
    check_rules(policy, controls or [])
    signing_key()
    params = {"topics": topics, "groups": groups, "fail_on": fail_on.value, "min_coverage": min_coverage}
    outcome = audit_and_summarise(
        connection=connection_keys(bootstrap, connection),
        cluster=cluster,
        root=root.resolve(),
        policy=policy,
        controls=controls or [],
        params=params,
        say=say,
        console=console,
    )
    raise typer.Exit(outcome.exit_code)


@app.command()
def snapshot(
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    cluster: Cluster = "kafka",
    root: Root = Path("audit-root"),
    topics: Topics = "*",
    groups: Groups = "*",
    policy: PolicyFolder = None,
    offsets_only: Annotated[bool, typer.Option("--offsets-only", help="Only groups, commits and log ends: light, for a timer.")] = False,
) -> None:
    """Take one snapshot of a cluster and print its folder. Reads only; needs neither Airflow nor Spark."""
    # pyarrow loads numpy where it is installed, a tenth of a second of CPU time, and needs none of it here; None = it is not installed.
    sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]
    from kafka_audit.cluster.connection import ConnectionSettings
    from kafka_audit.collect.scope import Scope
    from kafka_audit.collect.snapshot import take_snapshot
    from kafka_audit.policy import load_policy
    from kafka_audit.store.layout import OFFSETS, SNAPSHOT, EvidenceRoot, new_id

    now = datetime.now(timezone.utc)
    settings = ConnectionSettings.from_mapping(connection_keys(bootstrap, connection), where=str(connection or "--bootstrap"))
    seed = hashlib.sha256(f"{now.isoformat()}{os.getpid()}".encode()).hexdigest()
    result = take_snapshot(
        kind=OFFSETS if offsets_only else SNAPSHOT,
        settings=settings,
        root=EvidenceRoot(path=root.resolve()),
        cluster=cluster,
        snapshot_id=new_id(now, seed),
        scope=Scope.from_text(topics=topics, groups=groups),
        policy=load_policy(policy),
        now=lambda: datetime.now(timezone.utc),
        progress=say,
    )
    print(result.path)


@controls_app.command(name="list")
def list_controls(controls: Controls = None) -> None:
    """List the controls: code, severity, subject, kind of evidence, title."""
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls

    rows = [("CODE", "SEVERITY", "SUBJECT", "EVIDENCE", "ID", "TITLE")]
    for control in load_catalogue([shipped_controls(), *(controls or [])]).controls:
        rows.append((control.code, control.severity.value, control.subject, control.evidence.value, control.id, control.title))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    for row in rows:
        print(printable("  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])))


@controls_app.command(name="check")
def check_controls(
    folder: Annotated[list[Path] | None, typer.Argument(help="Folders with controls of your own, checked with the shipped ones.")] = None,
) -> None:
    """Load the shipped controls and yours, and report every problem with file, field and fix (exit code 2)."""
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls

    catalogue = load_catalogue([shipped_controls(), *(folder or [])])
    print(f"{len(catalogue.controls)} controls are valid; sha256 {catalogue.sha256}")


@controls_app.command(name="test")
def test_controls(folder: Annotated[list[Path], typer.Argument(help="Folders with controls of your own.")]) -> None:
    """Let Spark judge the controls of a folder by their own examples (exit code 2 when one gets another verdict than it names)."""
    import subprocess

    done = subprocess.run([sys.executable, "-m", "spark_jobs.check_examples", *map(str, folder)], check=False)
    raise typer.Exit(done.returncode)


@controls_app.command(name="docs")
def document_controls(
    write: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    controls: Controls = None,
    policy: PolicyFolder = None,
) -> None:
    """The catalogue as one Markdown page: every control with its rule, reasons, fix and the framework requirements it supports."""
    from kafka_audit.audit.policy_fit import check_policy
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls
    from kafka_audit.cli.controls_page import as_markdown
    from kafka_audit.policy import load_policy

    catalogue, rules = load_catalogue([shipped_controls(), *(controls or [])]), load_policy(policy)
    check_policy(rules, catalogue)
    page = as_markdown(catalogue, rules.frameworks)
    if write is None:
        print(page, end="")
    else:
        write.write_text(page, encoding="utf-8")


@policy_app.command(name="check")
def check_policy_folder(
    folder: Annotated[
        Path | None, typer.Argument(envvar="KAFKA_AUDIT_POLICY", help="Folder of a policy; default: the shipped one.")
    ] = None,
    controls: Controls = None,
) -> None:
    """Load a policy and hold it against the catalogue and today's date; every problem is named with file, field and fix (exit code 2)."""
    from kafka_audit.audit.policy_fit import check_dates, check_policy
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls
    from kafka_audit.policy import load_policy

    policy = load_policy(folder)
    check_policy(policy, load_catalogue([shipped_controls(), *(controls or [])]))
    check_dates(policy, datetime.now(timezone.utc))
    parts = ((len(policy.tiers), "tiers"), (len(policy.slas), "SLAs"), (len(policy.clients), "clients"), (len(policy.waivers), "waivers"))
    counted = ", ".join(f"{number} {name}" for number, name in (*parts, (len(policy.frameworks), "frameworks")))
    print(f"the policy is valid: {counted}; sha256 {policy.sha256}")


@app.command(name="check-clients")
def check_client_files(
    path: Annotated[Path, typer.Argument(help="File with client settings, or a folder: its *.properties, *.conf, *.ini and clients.yaml.")],
    kind: Annotated[str | None, typer.Option(help="producer or consumer, where the settings do not tell.")] = None,
    implementation: Annotated[
        str | None,
        typer.Option(help="java, spring-kafka, kafka-connect, librdkafka, kafka-python or other; default: told by the settings."),
    ] = None,
    policy: PolicyFolder = None,
    controls: Controls = None,
) -> None:
    """Judge producers and consumers by their configuration files, before they are deployed. Exit code 3: a grave failure."""
    import subprocess

    need_java()
    options = (("kind", kind), ("implementation", implementation), ("policy", policy), *(("controls", folder) for folder in controls or []))
    given = [f"--{name}={value}" for name, value in options if value is not None]
    done = subprocess.run([sys.executable, "-m", "spark_jobs.check_clients", *given, "--", str(path)], check=False)
    raise typer.Exit(done.returncode)


@app.command(name="history")
def group_history(
    group: Annotated[str, typer.Argument(help="Group id, exactly as Kafka has it.")],
    cluster: Cluster = "kafka",
    root: Root = Path("audit-root"),
    quiet: Annotated[float, typer.Option(min=0, help="Seconds without a commit that count as a pause.")] = 300,
) -> None:
    """What a group did, from the commit history: generations, members, first commits, rewinds, pauses, removed offsets."""
    from kafka_audit.group_timeline import text, timeline
    from kafka_audit.safe_text import visible
    from kafka_audit.store.layout import EvidenceRoot

    for entry in timeline(EvidenceRoot(path=root.resolve()).commit_history(cluster), group, quiet=timedelta(seconds=quiet)):
        print(visible(text(entry)))


@app.command()
def demo(
    seed: Annotated[str, typer.Option(help="faulty or healthy")] = "faulty",
    root: Root = Path("audit-root"),
) -> None:
    """Start a three-broker Kafka with a seeded workload, audit it through Airflow, show the findings, stop it again."""
    from kafka_audit.cli.demo import run_demo

    need_java()
    raise typer.Exit(run_demo(seed=seed, root=root.resolve(), say=say, console=console))


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def _interrupted(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(call: Callable[[], None] = app) -> None:
    """Run the command; every expected error becomes one message on standard error and its exit code."""
    # A supervisor's TERM takes the same way out as Ctrl-C, so that brokers and Spark are stopped.
    signal.signal(signal.SIGTERM, _interrupted)
    keep_new_files_private()
    # By default Python looks for cycles after every 700 new objects. A snapshot makes millions that stay: a third of its CPU time.
    gc.set_threshold(50_000)
    try:
        call()
    except AuditError as problem:
        print(f"kafka-audit: {printable(str(problem))}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        print("kafka-audit: interrupted; everything it started has been stopped", file=sys.stderr)
        sys.exit(130)
