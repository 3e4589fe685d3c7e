"""``kafka-audit doctor``: what an audit needs, whether it is there, and how to get it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.cli import doctor_cluster, doctor_installation
from kafka_audit.cli.doctor_installation import MISSING, NOT_KNOWN, Check
from kafka_audit.cli.options import Bootstrap, Connection, Controls, PolicyFolder, connection_keys, printable
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.errors import ConfigurationError, IncompleteError

RootUrl = Annotated[
    str,
    typer.Option(
        "--root",
        metavar="FOLDER|URL",
        envvar="KAFKA_AUDIT_ROOT",
        help="Folder, or URL of an object store, below which evidence, audits and reports are kept.",
    ),
]


def doctor(
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    root: RootUrl = "audit-root",
    policy: PolicyFolder = None,
    controls: Controls = None,
) -> None:
    """Check what an audit needs on this machine and, with --bootstrap or --connection, the cluster; reads only.

    One line for each check: ok; missing, which includes what is there and cannot be used, with the fix; not known; or not asked.

    Exit code 0: nothing is missing. 2: something is. 4: nothing is missing, but something could not be found out.
    """
    tell(_checks(bootstrap, connection, root, policy, controls or []))


def tell(checks: Iterable[Check]) -> None:
    """Print a line for each check when it is done, with the fix below it; then end with exit code 2 or 4 if not all are ok."""
    found: Counter[str] = Counter()
    for check in checks:
        found[check.state] += 1
        typer.echo(printable(f"{check.state:<9}  {check.name:<20}  {check.detail}"))
        for line in check.fix.splitlines():
            typer.echo(printable(f"{'':<33}{line}"))
    if found[MISSING]:
        raise typer.Exit(ConfigurationError.exit_code)
    if found[NOT_KNOWN]:
        raise typer.Exit(IncompleteError.exit_code)


def _checks(bootstrap: str | None, connection: Path | None, root: str, policy: Path | None, controls: list[Path]) -> Iterator[Check]:
    """Each check when it is its turn: a cluster may take its time to answer."""
    yield from doctor_installation.programs()
    yield from doctor_installation.packages()
    yield doctor_installation.clusters()
    yield from doctor_installation.settings()
    yield from doctor_installation.rules(policy, controls)
    yield doctor_installation.root_folder(root)
    if bootstrap is not None or connection is not None:
        where = str(connection or "--bootstrap")
        yield from doctor_cluster.cluster(lambda: ConnectionSettings.from_mapping(connection_keys(bootstrap, connection), where=where))
    else:
        by = "--bootstrap or --connection; kafka-audit connections asks those of Airflow's connections"
        yield Check("cluster", "not asked", f"to check whether it answers, and the rights on it, name it by {by}")
