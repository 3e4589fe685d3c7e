"""The snapshot of one day: the template's datasets at the day's times, marked as a sample."""

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.findings import Status
from kafka_audit.sample.day import Day
from kafka_audit.sample.groups import RETAINED
from kafka_audit.sample.template import Template
from kafka_audit.store.layout import EvidenceRoot, Snapshot

_LATER_THAN_ANY_SPAN_MS = 1_000_000_000_000
"""Columns of milliseconds hold times, which are larger, and spans, which are smaller."""
_EMPTY = ("first_unread", "sla_offsets", "tiered_offsets")
"""Datasets about single records, which no sample has."""
_OF_REPLICAS = ("REP-01", "REP-02", "REP-03", "REP-04")
_REPLICAS = 3

Row = dict[str, Any]


def write_snapshot(template: Template, root: EvidenceRoot, day: Day, partitions: pa.Table, findings: Collection[Row]) -> Snapshot:
    """Write and seal the day's snapshot; ``partitions``: the day's group_partitions, ``findings``: the day's findings of both parts."""
    failing = {(row["code"], row["resource"]) for row in findings if row["status"] == Status.FAIL.value}
    manifest = template.snapshot.manifest
    errors = _without_items(template.datasets["errors"])
    special = {
        "cluster": lambda table: _named(table, day),
        "committed_offsets": lambda table: _commits(table, partitions),
        "errors": lambda table: errors,
        "offsets": lambda table: _log_ends(table, partitions, day),
        "partitions": lambda table: _replicas(table, failing, template.datasets["brokers"]["broker_id"].to_pylist()),
    }
    with root.snapshot_writer(day.cluster.name, day.snapshot_id) as writer:
        for name, table in template.datasets.items():
            kept = table.slice(0, 0) if name in _EMPTY else special.get(name, lambda table: table)(table)
            writer.write(name, _moved(kept, day.taken - template.began))
        writer.seal(
            {
                **{name: manifest[name] for name in ("scope", "versions", "capabilities") if name in manifest},
                **{"cluster_id": cluster_id_of(day), "sample": True, "errors": dict(Counter(errors["dataset"].to_pylist()))},
                "started_at": day.taken.isoformat(),
                "finished_at": (day.taken + timedelta(seconds=template.seconds)).isoformat(),
            }
        )
    return root.snapshot(day.cluster.name, day.snapshot_id)


def cluster_id_of(day: Day) -> str:
    """The id of the Kafka cluster that a sample cluster says to be; no real one looks like this."""
    return f"{day.cluster.name}-made-up"


def _moved(table: pa.Table, by: timedelta) -> pa.Table:
    """The table with all its times moved: columns of timestamps, and those of milliseconds that hold a time."""
    for number, field in enumerate(table.schema):
        column = table.column(number)
        if pa.types.is_timestamp(field.type):
            table = table.set_column(number, field, pc.add(column, pa.scalar(by, pa.duration("us"))).cast(field.type))
        elif field.name.endswith("_ms") and pa.types.is_int64(field.type):
            is_time = pc.greater(column, _LATER_THAN_ANY_SPAN_MS)
            moved = pc.add(column, pa.scalar(round(by.total_seconds() * 1000), pa.int64()))
            table = table.set_column(number, field, pc.if_else(is_time, moved, column))
    return table


def _named(table: pa.Table, day: Day) -> pa.Table:
    rows = [{**row, "cluster_id": cluster_id_of(day)} for row in table.to_pylist()]
    return pa.Table.from_pylist(rows, schema=table.schema)


def _without_items(errors: pa.Table) -> pa.Table:
    """The errors about a whole dataset: in the story every single item is answered."""
    items = [name for name in ("topic", "group_id", "broker_id") if name in errors.schema.names]
    for name in items:
        errors = errors.filter(pc.is_null(errors[name]))
    return errors


def _commits(table: pa.Table, partitions: pa.Table) -> pa.Table:
    found = {(row["group_id"], row["topic"], row["partition"]): row["committed"] for row in partitions.to_pylist()}
    rows = table.to_pylist()
    for row in rows:
        row["committed"] = found.get((row["group_id"], row["topic"], row["partition"]), row["committed"])
    return pa.Table.from_pylist(rows, schema=table.schema)


def _log_ends(table: pa.Table, partitions: pa.Table, day: Day) -> pa.Table:
    """As the groups' table says; a partition that no group reads has as many records as the others, if it has any."""
    starts = {(row["topic"], row["partition"]): row["log_start"] for row in partitions.to_pylist()}
    rows = table.to_pylist()
    for row in rows:
        place = row["topic"], row["partition"]
        if place not in starts and not row["log_end"]:
            continue
        row["log_start"] = starts.get(place, max(0, day.written - RETAINED))
        row["log_end"] = row["last_stable"] = day.written
        row.update(dict.fromkeys(("max_timestamp_offset", "headroom_offset", "headroom_timestamp_ms")))
    return pa.Table.from_pylist(rows, schema=table.schema)


def _replicas(table: pa.Table, failing: Collection[tuple[str, str]], brokers: list[int]) -> pa.Table:
    """Partitions whose controls of replicas pass: led by the first of three replicas, all of them in sync."""
    rows = table.to_pylist()
    for row in rows:
        if ("TOP-01", row["topic"]) not in failing:
            more = [broker for broker in brokers if broker not in row["replicas"]]
            row["replicas"] = [*row["replicas"], *more[: max(0, _REPLICAS - len(row["replicas"]))]]
        if not any((code, f"{row['topic']}-{row['partition']}") in failing for code in _OF_REPLICAS):
            healthy: Mapping[str, Any] = {"leader": row["replicas"][0], "isr": row["replicas"], "offline_replicas": [], "error": None}
            row.update(healthy)
    return pa.Table.from_pylist(rows, schema=table.schema)
