"""``kafka-audit lag``."""

import sys
from datetime import datetime, timezone
from functools import cache
from typing import TYPE_CHECKING, Annotated

import typer

from kafka_audit.cli.options import Bootstrap, Cluster, Connection, Groups, PolicyFolder, Topics, connection_keys, say
from kafka_audit.lag.sort import Sort

if TYPE_CHECKING:
    from kafka_audit.lag.reading import Reading

Watch = Annotated[
    float | None, typer.Option("--watch", metavar="SECONDS", min=0.1, help="Read again every so many seconds, with rates, until Ctrl-C.")
]
SortBy = Annotated[Sort, typer.Option(help="Order of the rows: by name, or by a figure with the worst first.")]
Json = Annotated[bool, typer.Option("--json", help="One line of JSON for each reading in place of the table.")]


def lag(  # noqa: PLR0917  (typer makes options of them)
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    cluster: Cluster = "kafka",
    topics: Topics = "*",
    groups: Groups = "*",
    policy: PolicyFolder = None,
    sort: SortBy = Sort.GROUP,
    watch_seconds: Watch = None,
    json: Json = False,
) -> None:
    """Print where every group stands now: kafka-consumer-groups' columns, loss, margin, lag in seconds, SLA and state. Stores nothing."""
    from kafka_audit.cluster.connection import ConnectionSettings  # noqa: PLC0415 - kafka-python would slow every other command down
    from kafka_audit.collect.scope import Scope  # noqa: PLC0415 - as above
    from kafka_audit.lag.lag_table import as_json, as_text, heading  # noqa: PLC0415 - as above
    from kafka_audit.lag.reading import take_reading  # noqa: PLC0415 - as above
    from kafka_audit.lag.watch import watch  # noqa: PLC0415 - as above
    from kafka_audit.policy import load_policy  # noqa: PLC0415 - as above

    settings = ConnectionSettings.from_mapping(connection_keys(bootstrap, connection), where=str(connection or "--bootstrap"))
    scope, rules = Scope.from_text(topics=topics, groups=groups), load_policy(policy)
    sla_of = cache(rules.lag_sla)

    def read() -> "Reading":
        return take_reading(settings, scope, rules, lambda: datetime.now(timezone.utc))

    def render(reading: "Reading", before: "Reading | None", lines: int | None) -> str:
        if json:
            return as_json(reading, before, sla_of, sort, cluster=cluster)
        if watch_seconds is None:
            return as_text(reading, before, sla_of, sort)
        return f"{heading(reading, cluster)}\n{as_text(reading, before, sla_of, sort, lines=None if lines is None else lines - 1)}"

    if watch_seconds is None:
        typer.echo(render(read(), None, None))
    else:
        watch(read, render, every_seconds=watch_seconds, redraw=sys.stdout.isatty() and not json, out=sys.stdout, say=say)
