"""Options that several commands have, and what every command does with names and with the connection."""

import sys
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kafka_audit.audit import formats as report_formats
from kafka_audit.cluster.connection_file import read_keys
from kafka_audit.errors import ConfigurationError
from kafka_audit.prerequisites import missing_prerequisites
from kafka_audit.safe_text import visible
from kafka_audit.store.mirrors import folder_at, remote_at, root_folder

Bootstrap = Annotated[str | None, typer.Option(help="HOST:PORT[,HOST:PORT...] of a cluster without authentication; without a port: 9092.")]
Connection = Annotated[
    Path | None, typer.Option(help="File with librdkafka-style connection keys (.properties, .json or .yaml), for TLS and SASL.")
]


def _root(named: str | Path) -> Path:
    """A root as the commands use it: of a URL the folder of its copies."""
    found = root_folder(named, "--root (KAFKA_AUDIT_ROOT)")
    return found if "://" in str(named) else Path(named)


Root = Annotated[
    Path,
    typer.Option(
        parser=_root,
        metavar="FOLDER|URL",
        envvar="KAFKA_AUDIT_ROOT",
        help="Folder, or URL of an object store, below which evidence, audits and reports are kept.",
    ),
]


def sealed_folder(named: str | Path) -> Path:
    """The folder of a sealed audit, snapshot or review that a path or a URL names; of a URL its manifest is copied here."""
    folder = folder_at(named)
    if remote := remote_at(folder):
        remote.manifest(folder)
    return folder


Cluster = Annotated[
    str, typer.Option(envvar="KAFKA_AUDIT_CLUSTER", help="Your name for the cluster: the folder its evidence is filed under.")
]
Topics = Annotated[str, typer.Option(help="Comma-separated globs: the topics in scope.")]
Groups = Annotated[str, typer.Option(help="Comma-separated globs: the groups in scope.")]
PolicyFolder = Annotated[
    Path | None,
    typer.Option("--policy", envvar="KAFKA_AUDIT_POLICY", help="Folder with tiers.yaml and slas.yaml; default: the shipped policy."),
]
Controls = Annotated[
    list[Path] | None,
    typer.Option(
        "--controls",
        envvar="KAFKA_AUDIT_CONTROLS",
        help="Folder with your own controls; may be repeated. In the variable, separate folders with a colon.",
    ),
]
Formats = Annotated[str, typer.Option(help=f"Comma-separated formats of the report: {', '.join(report_formats.REPORT_FILES)}.")]
DEFAULT_FORMATS = ",".join(report_formats.DEFAULT_FORMATS)


def say(text: str) -> None:
    """One line of progress on standard error; names from the cluster cannot style or move the terminal."""
    stamp = datetime.now().strftime("%H:%M:%S")
    typer.echo(f"{stamp}  {printable(text)}", file=sys.stderr)


def need_java() -> None:
    """ConfigurationError with the way to install it unless Java is new enough for Spark and the brokers."""
    if problems := missing_prerequisites():
        raise ConfigurationError("\n".join(problems))


def printable(text: str) -> str:
    """The text with every control and bidirectional character shown as an escape: hostile names stay inert in a terminal."""
    return "\n".join(visible(line) for line in text.split("\n"))


def chosen_formats(text: str) -> tuple[str, ...]:
    """The formats in ``--formats``; ConfigurationError (exit 2) names what is none, and those that there are."""
    try:
        return report_formats.read_formats(text)
    except ValueError as problem:
        raise ConfigurationError(f"--formats: {problem}") from problem


def connection_keys(bootstrap: str | None, connection: Path | None) -> dict[str, Any]:
    """The librdkafka-style keys of ``--bootstrap`` or ``--connection``; ConfigurationError unless exactly one is given."""
    if (bootstrap is None) == (connection is None):
        raise ConfigurationError("name the cluster by exactly one of --bootstrap HOST:PORT and --connection FILE")
    if connection is None:
        return {"bootstrap.servers": bootstrap}
    # Relative to where the person stands, as librdkafka's own tools read them; Airflow's tasks run elsewhere.
    keys = read_keys(connection)
    return {key: str(Path(str(value)).resolve()) if key.endswith(".location") else value for key, value in keys.items()}
