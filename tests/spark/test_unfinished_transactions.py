"""Transactions that their coordinators should have ended, from this snapshot and earlier ones."""

from typing import Any

import pytest
from snapshot_builder import READ_MS, Synthetic

pytestmark = pytest.mark.spark

COLUMNS = ("transaction_count", "unfinished_transaction_count", "unfinished_transactions")
MINUTE_MS = 60_000


def transactions(**found: tuple[str, int, int | None]) -> Synthetic:
    """Transactions by their id: state, age in seconds and timeout in seconds."""
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("t")
    for name, (state, age, timeout) in found.items():
        start = READ_MS - age * 1000
        limit = None if timeout is None else timeout * 1000
        cluster.add("transactions", transactional_id=name, producer_id=7, state=state, start_time_ms=start, timeout_ms=limit, partitions=[])
    return cluster


def unfinished(rows: dict[str, dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(rows["cluster"][column] for column in COLUMNS)


def test_a_transaction_is_overdue_a_minute_after_its_timeout_in_any_state_that_is_open(rows_of) -> None:
    cluster = transactions(
        young=("Ongoing", 900, 900),
        late=("Ongoing", 961, 900),
        prepared=("PrepareAbort", 1000, 60),
        just_prepared=("PrepareCommit", 100, 60),
        ended=("CompleteCommit", 100_000, 60),
        undescribed=("Ongoing", 100_000, None),
    )
    named = ["late: Ongoing since 961 s (timeout 900 s)", "prepared: PrepareAbort since 1000 s (timeout 60 s)"]
    assert unfinished(rows_of(cluster, "cluster", columns=COLUMNS)) == (6, 2, named)


def test_a_prepared_transaction_that_a_minute_older_snapshot_shows_too_is_not_being_completed(rows_of) -> None:
    now = transactions(stuck=("PrepareCommit", 300, 900), next=("PrepareCommit", 10, 900), quick=("PrepareCommit", 50, 900))
    hour = 3_600
    earlier = {
        1 / 30: transactions(stuck=("PrepareCommit", 300, 900), next=("PrepareCommit", hour, 900)),
        1 / 120: transactions(quick=("PrepareCommit", 50, 900)),
    }
    assert unfinished(rows_of(now, "cluster", earlier=earlier, columns=COLUMNS)) == (
        3,
        1,
        ["stuck: PrepareCommit since 300 s (timeout 900 s)"],
    )


def test_no_transactional_id_is_none_unless_a_transaction_is_open(rows_of) -> None:
    cluster = transactions()
    assert unfinished(rows_of(cluster, "cluster", columns=COLUMNS)) == (0, 0, [])
    unread = transactions().error("producers", "TOPIC_AUTHORIZATION_FAILED", topic="t", partition=0)
    assert unfinished(rows_of(unread, "cluster", columns=COLUMNS)) == (None, None, None), (
        "ids that may not be described are left out without an error"
    )
    cluster.add("producers", topic="t", partition=0, producer_id=7, current_txn_start_offset=3, last_timestamp_ms=READ_MS)
    assert unfinished(rows_of(cluster, "cluster", columns=COLUMNS)) == (None, None, None)


def test_transactions_that_could_not_be_listed_are_not_known(rows_of) -> None:
    assert unfinished(rows_of(transactions().error("transactions", "TIMEOUT"), "cluster", columns=COLUMNS)) == (None, None, None)
