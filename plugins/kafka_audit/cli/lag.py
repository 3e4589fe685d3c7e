"""``kafka-audit lag``."""

import sys
from collections.abc import Callable
from datetime import datetime, timezone
from functools import cache
from typing import Annotated

import typer

from kafka_audit.cli.options import Bootstrap, Cluster, Connection, Groups, PolicyFolder, Topics, connection_keys, say
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
SortBy = Annotated[Sort, typer.Option(help="Order of the rows: by name, or by a figure with the worst first.")]
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
    json: Json = False,
) -> None:
    """Print every group's present lag: kafka-consumer-groups' columns, loss, margin, lag in seconds, SLA and state. Stores nothing."""
    settings = ConnectionSettings.from_mapping(connection_keys(bootstrap, connection), where=str(connection or "--bootstrap"))
    scope, rules = Scope.from_text(topics=topics, groups=groups), load_policy(policy)
    sla_of = cache(rules.lag_sla)

    def read() -> Reading:
        return take_reading(settings, scope, rules, lambda: datetime.now(timezone.utc))

    def render(reading: Reading, before: Reading | None, lines: int | None) -> str:
        if json:
            return as_json(reading, before, sla_of, sort, cluster=cluster)
        if watch_seconds is None:
            return as_text(reading, before, sla_of, sort)
        return f"{heading(reading, cluster)}\n{as_text(reading, before, sla_of, sort, lines=None if lines is None else lines - 1)}"

    if watch_seconds is None:
        typer.echo(render(read(), None, None))
    else:
        watch(read, render, every_seconds=watch_seconds, redraw=sys.stdout.isatty() and not json, out=sys.stdout, say=say)


def take_reading(settings: ConnectionSettings, scope: Scope, policy: Policy, now: Callable[[], datetime]) -> Reading:
    """Connect, read what lag needs and disconnect; CollectionError when the cluster cannot be read at all."""
    taken_at = now()
    with ConnectedCluster(settings, deadline_seconds=DEADLINE_SECONDS) as connected:
        collection = Collection(cluster=connected, light=True, scope=scope, policy=policy, now=now)
        datasets = {name: table.to_pylist() for name, table in collection.datasets()}
    return Reading(datasets=datasets, hosts=collection.hosts, cluster_id=collection.cluster_id, taken_at=taken_at)
