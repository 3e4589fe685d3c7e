"""``kafka-audit fleet``: the newest sealed audit of every cluster, as one matrix of controls by clusters."""

from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.audit.clusters import dag_clusters
from kafka_audit.cli import options
from kafka_audit.errors import ConfigurationError
from kafka_audit.report.fleet import FORMATS, read_fleet, read_formats, write_fleet
from kafka_audit.safe_text import visible
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import root_name
from kafka_audit.store.signing import read_public_key


def fleet(
    root: options.Root = Path("audit-root"),
    to: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files.")] = Path("fleet-report"),
    formats: Annotated[str, typer.Option(help=f"Comma-separated formats: {', '.join(FORMATS)}.")] = ",".join(FORMATS),
    key: Annotated[
        list[Path] | None, typer.Option(help="Public key; requires signatures made with its private key. May be repeated.")
    ] = None,
) -> None:
    """Write one matrix of controls by clusters, from the newest sealed audit of each; hashes are checked first, nothing is judged again.

    Clusters without an audit that can be used are in it, with the reason; so are those that KAFKA_AUDIT_CLUSTERS lists.
    """
    chosen = read_formats(formats)
    keys = [read_public_key(one) for one in key or ()]
    place = EvidenceRoot(path=root.resolve())
    expected = [one.name for one in dag_clusters() if one.listed]
    if not place.path.is_dir() and not expected:
        raise ConfigurationError(f"there is no folder {place.path}: name the root folder of the audits with --root")
    if remote := place.remote:
        remote.bring_clusters()
    found = read_fleet(place, expected, keys)
    if not found.clusters:
        raise ConfigurationError(f"{root_name(place.path)} has no audit of any cluster: name the root of the audits with --root")
    for file in write_fleet(found, place, chosen, to):
        typer.echo(options.printable(str(file)))
    for cluster in found.clusters:
        why = f": {cluster.why[0]}" if cluster.why else ""
        typer.echo(visible(f"{cluster.name}: {cluster.verdict}{why}"))
