"""The commands `kafka-audit sandbox start|stop|status|seed`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer

from kafka_audit.errors import AuditError
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.state import Folder

app = typer.Typer(no_args_is_help=True, help="A real three-broker Kafka on this machine, with a seeded workload.")

Answer = TypeVar("Answer")
Seed = Literal["faulty", "healthy"]
_DEFAULT = "sandbox in the cache"
Directory = Annotated[Path | None, typer.Option("--dir", help="The sandbox's folder.", show_default=_DEFAULT)]
NewDirectory = Annotated[Path | None, typer.Option("--dir", help="The sandbox's folder, or a new or empty one.", show_default=_DEFAULT)]


@app.command()
def start(
    seed: Annotated[Literal[Seed, "none"], typer.Option(help="What to write to the brokers once they are up.")] = "faulty",
    directory: NewDirectory = None,
    replace: Annotated[bool, typer.Option("--replace", help="Stop a sandbox that runs in the folder first.")] = False,
) -> None:
    """Start three brokers and write a seed to them; the first time, this fetches Kafka's jars from Maven Central."""
    sandbox = _exit_on_error(lambda: lifecycle.start(seed, directory=directory, replace=replace, progress=typer.echo))
    typer.echo(f"Sandbox up, seed {sandbox.seed}, in {sandbox.directory}")
    typer.echo(f"bootstrap: {sandbox.bootstrap}")
    connection = Folder(sandbox.directory).audit_connection
    if connection.is_file():
        typer.echo(f"To audit it as a principal that may only read: --connection {connection}")


@app.command()
def stop(directory: Directory = None) -> None:
    """Stop the sandbox's processes and remove its data; the logs stay until the next start."""
    stopped = _exit_on_error(lambda: lifecycle.stop(directory=directory, progress=typer.echo))
    typer.echo("Sandbox stopped" if stopped else "No sandbox was running")


@app.command()
def status(directory: Directory = None) -> None:
    """Show which processes run. Exit code 0 if the sandbox is up, 1 if it is down or one of its processes died."""
    found = _exit_on_error(lambda: lifecycle.status(directory=directory))
    typer.echo(f"Sandbox {found.condition} in {found.directory}" + (f", seed {found.seed}" if found.seed else ""))
    if found.bootstrap:
        typer.echo(f"bootstrap: {found.bootstrap}")
    for role, pid in found.processes.items():
        typer.echo(f"  {role}: {'pid ' + str(pid) if pid else 'dead'}")
    if found.condition == "degraded":
        typer.echo("A process died: see its log, then run `kafka-audit sandbox start --replace` or `stop`.", err=True)
    raise typer.Exit(0 if found.condition == "up" else 1)


@app.command()
def seed(
    name: Annotated[Seed, typer.Argument(help="Which seed to write.")],
    bootstrap: Annotated[str | None, typer.Option(help="HOST:PORT of another Kafka to write to, instead of the sandbox.")] = None,
    directory: Directory = None,
) -> None:
    """Write a seed to a running sandbox without one, or to another Kafka; its consumers run until `sandbox stop`."""
    skipped = _exit_on_error(lambda: lifecycle.seed_running(name, bootstrap=bootstrap, directory=directory, progress=typer.echo))
    typer.echo(f"Seed {name} written")
    if skipped:
        typer.echo("Left out, because these need brokers that were started with this seed:")
        for verdict in skipped:
            typer.echo(f"  {verdict.control} {verdict.resource}")


def _exit_on_error(action: Callable[[], Answer]) -> Answer:
    """Run an action; if it raises an AuditError, print its message to standard error and exit with its exit code."""
    try:
        return action()
    except AuditError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(error.exit_code) from None
