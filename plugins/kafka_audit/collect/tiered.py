"""How far tiered partitions are uploaded: the offsets that only ListOffsets with special timestamps tells."""

from collections.abc import Callable, Mapping
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.failures import Failure, unsupported
from kafka_audit.cluster.offsets import EARLIEST_LOCAL, LATEST_TIERED, LATEST_TIERED_VERSION, Offset, list_offsets
from kafka_audit.cluster.routing import Leaders
from kafka_audit.collect.datasets import TIERED_OFFSETS
from kafka_audit.collect.tables import ErrorLog, table

SLACK_MS = 3_600_000
"""So long after it became due an upload may take."""
_NOTHING = -1
_KEYS = ("remote.storage.enable", "segment.ms", "local.retention.ms", "retention.ms")


def tiered_offsets(
    cluster: Cluster,
    leaders: Leaders,
    configs: pa.Table,
    ends: pa.Table,
    *,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row for each partition of a tiered topic; ``configs`` and ``ends`` are the datasets topic_configs and offsets.

    ``local_start`` is the first offset on the leader's own disk, ``latest_tiered`` the last one in the remote store, -1 for none.
    ``due_offset`` is the first one of which the upload is not yet due: the first record that is not older than ``due_timestamp_ms``, and
    the log end if all are older. A record is due an hour after local.retention.ms, to which brokers may delay an upload (KIP-1241), and
    only once its segment is closed: when a record arrives segment.ms after its first one. Both are null without a limit; of an empty log
    nothing is due.
    """
    settings = _settings(configs)
    if not settings:
        return table(TIERED_OFFSETS.schema, ())
    names = ("topic", "partition", "log_start", "log_end", "max_timestamp_ms")
    rows = zip(*(ends.column(name).to_pylist() for name in names), strict=True)
    logs = {(topic, index): (start, end, newest) for topic, index, start, end, newest in rows if topic in settings}
    if not cluster.supports("ListOffsets", LATEST_TIERED_VERSION):
        errors.add(TIERED_OFFSETS, unsupported("ListOffsets of the last tiered offset", "3.8"))
        return table(TIERED_OFFSETS.schema, ())
    read_at = now()
    wanted = {key: at for key, (_, _, newest) in logs.items() if (at := _due(settings[key[0]], newest, read_at)) is not None}
    readings = (
        list_offsets(cluster, leaders, dict.fromkeys(logs, EARLIEST_LOCAL)),
        list_offsets(cluster, leaders, dict.fromkeys(logs, LATEST_TIERED)),
        list_offsets(cluster, leaders, wanted),
    )
    found: list[tuple[object, ...]] = []
    for key, (start, end, _) in sorted(logs.items()):
        local, last, due = answers = [one.get(key) for one in readings]
        failure = next((one for one in answers if isinstance(one, Failure)), None)
        if failure is not None:
            errors.add(TIERED_OFFSETS, failure)
            found.append((*key, None, None, None, None, failure.error, read_at))
            continue
        until = None if due is None else end if _offset(due) is None else _offset(due)
        if start is not None and start == end:
            until = end
        uploaded = _NOTHING if _offset(last) is None else _offset(last)
        found.append((*key, _offset(local), uploaded, wanted.get(key), until, None, read_at))
    return table(TIERED_OFFSETS.schema, found)


def _offset(reading: Offset | Failure | None) -> int | None:
    return reading.offset if isinstance(reading, Offset) else None


def _settings(configs: pa.Table) -> dict[str, dict[str, int]]:
    """The numbers of tiered topics, by name."""
    found: dict[str, dict[str, str]] = {}
    for topic, name, value in zip(*(configs.column(name).to_pylist() for name in ("topic", "name", "value")), strict=True):
        if name in _KEYS and value is not None:
            found.setdefault(topic, {})[name] = value
    tiered = {topic: one for topic, one in found.items() if one.pop("remote.storage.enable", None) == "true"}
    return {topic: {name: int(value) for name, value in one.items()} for topic, one in tiered.items()}


def _due(settings: Mapping[str, int], newest: int | None, read_at: datetime) -> int | None:
    """The time in epoch milliseconds before which records have to be uploaded; None where there is no such time."""
    local = settings.get("local.retention.ms", -1)
    local = settings.get("retention.ms", -1) if local == -2 else local  # -2: as long as retention.ms
    if local < 0 or newest is None or newest < 0 or "segment.ms" not in settings:
        return None
    return max(0, min(newest - settings["segment.ms"], round(read_at.timestamp() * 1000) - local - SLACK_MS))
