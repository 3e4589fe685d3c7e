"""``kafka-audit lag``."""

import sys
from collections.abc import Callable
from datetime import datetime, timezone
from functools import cache
from typing import Annotated

import typer

from kafka_audit.cli.lag_screen import LagScreen, screen_of, watch_on_screen
from kafka_audit.cli.options import Bootstrap, Cluster, Connection, Groups, PolicyFolder, Topics, connection_keys, say
from kafka_audit.cli.terminal import terminal_of
from kafka_audit.cluster.bootstrap import Cluster as ConnectedCluster
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.collection import Collection
from kafka_audit.collect.scope import Scope
from kafka_audit.lag.lag_table import Sort, as_json, as_text, heading, watch
from kafka_audit.lag.reading import Reading
from kafka_audit.policy import Policy, load_policy

DEADLINE_SECONDS = 60.0
Watch = Annotated[
    float | None, typer.Option("--watch", metavar="SECONDS", min=0.1, help="Read again every so many seconds, with rates, until Ctrl-C.")
]
SortBy = Annotated[
    Sort,
    typer.Option(help="Order of the rows: by name, or by a figure with the worst first. On a terminal problems come first in any case."),
]
Partitions = Annotated[
    bool, typer.Option("--partitions", help="On a terminal: a line for each partition instead of each group. A pipe gets them in any case.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON per reading instead of the table.")]


def lag(
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    cluster: Cluster = "kafka",
    topics: Topics = "*",
    groups: Groups = "*",
    policy: PolicyFolder = None,
    sort: SortBy = Sort.GROUP,
    watch_seconds: Watch = None,
    partitions: Partitions = False,
    json: Json = False,
) -> None:
    """Print every group's present lag: loss, margin, lag in records and seconds, SLA and state. Stores nothing.

    On a terminal: one line for each group, problems first, as wide as the window. Into a pipe: one line for each partition, with the
    columns of kafka-consumer-groups followed by LOST, MARGIN, LAG-SECONDS, SLA and STATE.
    """
    settings = ConnectionSettings.from_mapping(connection_keys(bootstrap, connection), where=str(connection or "--bootstrap"))
    scope, rules = Scope.from_text(topics=topics, groups=groups), load_policy(policy)
    sla_of = cache(rules.lag_sla)
    terminal = None if json else terminal_of(sys.stdout)

    def read() -> Reading:
        return take_reading(settings, scope, rules, lambda: datetime.now(timezone.utc))

    def render(reading: Reading, before: Reading | None) -> str:
        if json:
            return as_json(reading, before, sla_of, sort, cluster=cluster)
        text = as_text(reading, before, sla_of, sort)
        return text if watch_seconds is None else f"{heading(reading, cluster)}\n{text}"

    def show(reading: Reading, before: Reading | None) -> LagScreen:
        is_watched = watch_seconds is not None
        return screen_of(reading, before, sla_of, sort, cluster=cluster, folded=not partitions, is_watched=is_watched)

    if terminal is not None and watch_seconds is not None:
        watch_on_screen(read, show, terminal, every_seconds=watch_seconds)
    elif terminal is not None:
        terminal.print(show(read(), None))
    elif watch_seconds is not None:
        watch(read, render, every_seconds=watch_seconds, out=sys.stdout, say=say)
    else:
        typer.echo(render(read(), None))


def take_reading(settings: ConnectionSettings, scope: Scope, policy: Policy, now: Callable[[], datetime]) -> Reading:
    """Connect, read what lag needs and disconnect; CollectionError when the cluster cannot be read at all."""
    taken_at = now()
    with ConnectedCluster(settings, deadline_seconds=DEADLINE_SECONDS) as connected:
        collection = Collection(cluster=connected, light=True, scope=scope, policy=policy, now=now)
        datasets = {name: table.to_pylist() for name, table in collection.datasets()}
    return Reading(datasets=datasets, hosts=collection.hosts, cluster_id=collection.facts.cluster_id, taken_at=taken_at)
