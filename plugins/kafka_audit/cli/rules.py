"""The commands on rules: ``kafka-audit controls``, ``kafka-audit policy`` and ``kafka-audit check-clients``."""

import os
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.audit.policy_fit import check_dates, check_policy
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cli.controls_page import as_markdown
from kafka_audit.cli.options import Controls, PolicyFolder, need_java, printable
from kafka_audit.clients.declared import Implementation, Kind
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.shipped import with_shipped

controls_app = typer.Typer(help="The control catalogue.", no_args_is_help=True)
policy_app = typer.Typer(help="The policy: tiers, SLAs, declared clients, waivers, frameworks.", no_args_is_help=True)


@controls_app.command(name="list")
def list_controls(controls: Controls = None) -> None:
    """List the controls: code, severity, subject, kind of evidence, title."""
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
    catalogue = load_catalogue([shipped_controls(), *(folder or [])])
    # Each folder alone too: one without a control file is most likely a mistyped one, and is refused.
    own = "".join(f", {len(load_catalogue([one]).controls)} of them from {one}" for one in folder or [])
    print(printable(f"{len(catalogue.controls)} controls are valid{own}; sha256 {catalogue.sha256}"))


@controls_app.command(name="test")
def test_controls(folder: Annotated[list[Path], typer.Argument(help="Folders with controls of your own.")]) -> None:
    """Run controls on their own examples, with Spark. Exit code 2: an example gets another verdict than it names."""
    done = subprocess.run([sys.executable, "-m", "spark_jobs.check_examples", *map(str, folder)], env=with_shipped(os.environ), check=False)
    raise typer.Exit(done.returncode)


@controls_app.command(name="docs")
def document_controls(
    write: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    controls: Controls = None,
    policy: PolicyFolder = None,
) -> None:
    """Print the catalogue as a Markdown page: every control with its rule, reasons, fix and the framework requirements it supports."""
    catalogue, rules = load_catalogue([shipped_controls(), *(controls or [])]), load_policy(policy)
    check_policy(rules, catalogue)
    page = as_markdown(catalogue, rules.frameworks)
    if write is None:
        print(page, end="")
        return
    try:
        write.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise ConfigurationError(
            f"{write}: cannot be written ({problem.strerror}); name a file in an existing folder that you may write to"
        ) from problem


@policy_app.command(name="check")
def check_policy_folder(
    folder: Annotated[
        Path | None, typer.Argument(envvar="KAFKA_AUDIT_POLICY", help="Folder of a policy; default: the shipped one.")
    ] = None,
    controls: Controls = None,
) -> None:
    """Check a policy against the catalogue and today's date; print every problem with file, field and fix (exit code 2)."""
    policy = load_policy(folder)
    check_policy(policy, load_catalogue([shipped_controls(), *(controls or [])]))
    check_dates(policy, datetime.now(timezone.utc))
    parts = ((len(policy.tiers), "tiers"), (len(policy.slas), "SLAs"), (len(policy.clients), "clients"), (len(policy.waivers), "waivers"))
    counted = ", ".join(f"{number} {name}" for number, name in (*parts, (len(policy.frameworks), "frameworks")))
    print(f"the policy is valid: {counted}; sha256 {policy.sha256}")


def check_client_files(
    path: Annotated[Path, typer.Argument(help="File with client settings, or a folder: its *.properties, *.conf, *.ini and clients.yaml.")],
    kind: Annotated[Kind | None, typer.Option(help="What the file configures, if its settings do not show it.")] = None,
    implementation: Annotated[Implementation | None, typer.Option(help="The client that reads the file; default: detected.")] = None,
    release: Annotated[str | None, typer.Option(help="The client's release, such as 3.9, which decides its defaults.")] = None,
    policy: PolicyFolder = None,
    controls: Controls = None,
) -> None:
    """Judge producers and consumers by their configuration files, before deployment. Exit code 3: a high or critical failure."""
    need_java()
    options = (
        ("kind", kind),
        ("implementation", implementation),
        ("release", release),
        ("policy", policy),
        *(("controls", folder) for folder in controls or []),
    )
    given = [f"--{name}={value}" for name, value in options if value is not None]
    command = [sys.executable, "-m", "spark_jobs.check_clients", *given, "--", str(path)]
    done = subprocess.run(command, env=with_shipped(os.environ), check=False)
    raise typer.Exit(done.returncode)
