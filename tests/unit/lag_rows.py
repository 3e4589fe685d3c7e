"""Rows of group_slas and lag_series, as verify writes them, for the tests of the report."""

import pyarrow as pa

_POLICY = pa.struct(
    [
        *(("tier", pa.string()), ("sla", pa.string()), ("max_lag_records", pa.int64()), ("max_lag_ms", pa.int64())),
        *(("max_no_progress_ms", pa.int64()), ("breach_samples", pa.int32()), ("breach_of", pa.int32())),
        *(("target_percent", pa.float64()), ("window_days", pa.int32())),
    ]
)
GROUP_SLAS = pa.schema(
    [
        *(("resource", pa.string()), ("group_id", pa.string()), ("partition_count", pa.int32()), ("lag_known", pa.int64())),
        *(("unknown_partitions", pa.int32()), ("behind_partitions", pa.int32()), ("quiet", pa.bool_())),
        *(("policy", _POLICY), ("availability_percent", pa.float64())),
        *((f"minutes_{name}", pa.int64()) for name in ("in", "out", "not_assessed", "quiet")),
        *((f"budget_{name}_minutes", pa.float64()) for name in ("allowed", "used", "left")),
    ]
)
LAG_SERIES = pa.schema(
    [
        *(("group_id", pa.string()), ("bucket_ms", pa.int64()), ("lag", pa.int64()), ("lost", pa.int64())),
        *(("in_sla_share", pa.float64()), ("known_share", pa.float64())),
    ]
)


def group_sla(group_id: str, **changes: object) -> dict[str, object]:
    """One SLA of one group, met; ``changes`` are of the row or of its policy."""
    policy = {"sla": "interactive", "max_lag_records": 1000, "max_lag_ms": 300_000, "target_percent": 99.5, "window_days": 30}
    row: dict[str, object] = {
        **{"partition_count": 1, "lag_known": 0, "unknown_partitions": 0, "behind_partitions": 0, "quiet": False},
        **{"resource": group_id, "group_id": group_id, "availability_percent": 99.9},
        **{"minutes_in": 43_156, "minutes_out": 44, "minutes_not_assessed": 0, "minutes_quiet": 0},
        **{"budget_allowed_minutes": 216.0, "budget_used_minutes": 44.0, "budget_left_minutes": 172.0},
    }
    of_policy = {name: value for name, value in changes.items() if name in _POLICY.names}
    return {**row, **{name: value for name, value in changes.items() if name not in of_policy}, "policy": {**policy, **of_policy}}


def sla_table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=GROUP_SLAS)


def series_table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=LAG_SERIES)


def lag_bucket(group_id: str, hour: int, lag: int | None = 5, **changes: object) -> dict[str, object]:
    """One hour of a group's history, all of it known and inside the SLA."""
    row = {"group_id": group_id, "bucket_ms": 1_795_219_200_000 + hour * 3_600_000, "lag": lag, "lost": 0}
    return {**row, "in_sla_share": 1.0, "known_share": 1.0, **changes}
