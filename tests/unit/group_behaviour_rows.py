"""Rows of group_behaviour and their record, as verify writes them, for the tests of the report."""

from pathlib import Path

import pyarrow as pa
from report_audit import FakeAudit, spark_folder

from kafka_audit.report.commit_history import COLUMNS
from kafka_audit.store.durable_files import write_json

_TEXTS = {
    *("group_id", "group_type", "assignor", "auto_commit", "auto_commit_confidence", "auto_commit_reason", "last_rewind", "last_removed"),
    *("removed_reason", "incomplete_until", "lost_until", "held_back_since"),
}
SCHEMA = pa.schema([(name, pa.string() if name in _TEXTS else pa.bool_() if name == "removed" else pa.int64()) for name in COLUMNS])
FOLDER, SHA256 = "behaviour/20261120T230000Z", "be" * 32
RECORD = {
    **{"folder": FOLDER, "manifest_sha256": SHA256, "reason": None, "changed_since": None, "hours": 23.5, "gaps": [], "gap_count": 0},
    **{"start": "2026-11-19T23:00:00+00:00", "end": "2026-11-20T23:00:00+00:00", "observed_from": "2026-11-19T23:30:00+00:00"},
    "totals": {"expected": 1100, "rows": 1000, "lost": 0, "skipped": 100},
}


def group_behaviour(group_id: str, **changes: object) -> dict[str, object]:
    """A group of three members that commits every five seconds; ``changes`` replace fields."""
    row: dict[str, object] = {
        **{"group_id": group_id, "group_type": "classic", "removed": False, "member_count": 3, "static_members": 0, "assignor": "range"},
        **{"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000, "generations": 2, "rebalances": 1, "longest_rebalance_ms": 3000},
        **{"partitions": 6, "commits": 17_280, "unchanged": 0, "rewinds": 0, "jumps": 0, "recreations": 0, "transactional": 0},
        **{"auto_commit": "consistent", "auto_commit_interval_ms": 5000, "auto_commit_confidence": "medium"},
        **{"auto_commit_reason": "98 % of 900 intervals are 5.0 s or a few times that", "interval_low_ms": 4990, "interval_ms": 5000},
        **{"interval_high_ms": 5010, "longest_gap_ms": 5100, "gaps_over_session": 0, "largest_rewind": None, "last_rewind": None},
        **{"last_removed": None, "removed_reason": None, "expired": 0, "deleted": 0, "topic_deleted": 0, "removed_unknown": 0},
        **{"incomplete_until": None, "lost_until": None, "held_back_since": None},
    }
    return {**row, **changes}


def with_history(fake: FakeAudit, rows: list[dict[str, object]], **record: object) -> None:
    """Add a used commit history to an audit whose verify has run."""
    without_history(fake, **{**RECORD, **record})
    spark_folder(fake.audit.lag / "group_behaviour.parquet", rows, SCHEMA)


def without_history(fake: FakeAudit, **record: object) -> Path:
    path: Path = fake.audit.lag / "commit_history.json"
    write_json(path, {"folder": None, "reason": None, "changed_since": None, **record})
    return path
