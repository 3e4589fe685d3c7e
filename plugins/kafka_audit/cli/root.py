"""``kafka-audit root``: whether an object store can hold a root."""

from datetime import datetime, timezone
from typing import Annotated

import typer

from kafka_audit.cli.options import printable
from kafka_audit.errors import ConfigurationError
from kafka_audit.store.mirrors import remote_at, root_folder
from kafka_audit.store.root_check import DENIED, check_root

app = typer.Typer(help="Try out whether an object store can hold the evidence.", no_args_is_help=True)


@app.callback()
def _root() -> None:
    """Try out whether an object store can hold the evidence."""


@app.command()
def check(
    url: Annotated[str, typer.Argument(metavar="URL", help="The root: s3://, gs:// or abfss:// with a bucket and, if wanted, a folder.")],
) -> None:
    """Try out whether a store is reachable, refuses a second object of a name, keeps versions, and which rights are wider than needed.

    Exit code 2: a root cannot lie there. 1: the store cannot be reached. What cannot be asked is printed as not known.
    """
    remote = remote_at(root_folder(url, "URL")) if "://" in url else None
    if remote is None:
        raise ConfigurationError(f"{url} is a local folder: only a URL of an object store is checked; a folder needs no check")
    denied = []
    for answer in check_root(remote.objects, datetime.now(timezone.utc)):
        typer.echo(printable(f"{answer.state:<10} {answer.text}"))
        if answer.state == DENIED:
            denied.append(answer.text)
    if denied:
        raise ConfigurationError(f"{remote.url} cannot hold a root: {'; '.join(denied)}")
