"""Open transactions of partitions: known to their coordinator, hanging, or impossible to classify."""

import pytest
from snapshot_builder import HOUR_MS, READ_MS, Synthetic

pytestmark = pytest.mark.spark


def cluster() -> Synthetic:
    timeouts = {1: {"transaction.max.timeout.ms": "900000"}, 2: {"transaction.max.timeout.ms": "600000"}}
    return Synthetic().brokers({1: "a", 2: "b"}, timeouts)


def opened(one: Synthetic, topic: str, producer_id: int, start: int, *, silent_ms: int, partition: int = 0) -> None:
    one.add(
        "producers",
        topic=topic,
        partition=partition,
        producer_id=producer_id,
        producer_epoch=0,
        last_sequence=0,
        last_timestamp_ms=READ_MS - silent_ms,
        coordinator_epoch=0,
        current_txn_start_offset=start,
    )


def known(one: Synthetic, producer_id: int, *places: tuple[str, int], **columns: object) -> None:
    listed = [{"topic": topic, "partition": number} for topic, number in places]
    one.add("transactions", transactional_id=f"t-{producer_id}", producer_id=producer_id, coordinator_id=1, partitions=listed, **columns)


@pytest.fixture(scope="module")
def partitions(rows_of):
    one = cluster()
    for name in ("living", "forgotten", "moved-on", "closed", "refused", "old-clock", "young"):
        one.topic(name)
    one.topic("offline", leader=-1).topic("__consumer_offsets", internal=True)
    one.offsets("closed", log_start=0, log_end=10, last_stable=10)
    opened(one, "living", 1, 5, silent_ms=HOUR_MS)
    known(one, 1, ("living", 0), state="Ongoing")
    opened(one, "forgotten", 2, 7, silent_ms=HOUR_MS)
    opened(one, "forgotten", 3, 9, silent_ms=2 * HOUR_MS)
    opened(one, "forgotten", 1, 8, silent_ms=1)
    opened(one, "moved-on", 4, 1, silent_ms=HOUR_MS)
    known(one, 4, ("living", 0), ("closed", 0), state="Ongoing")
    opened(one, "closed", 5, -1, silent_ms=HOUR_MS)
    opened(one, "old-clock", 6, 0, silent_ms=READ_MS + 1)
    one.offsets("young", log_start=0, log_end=10, last_stable=10)
    opened(one, "young", 7, 10, silent_ms=HOUR_MS)
    opened(one, "young", 8, 9, silent_ms=HOUR_MS)
    one.error("producers", "TOPIC_AUTHORIZATION_FAILED", topic="refused")
    return rows_of(one, "partition")


NONE = {"open_transactions": 0, "oldest_transaction_ms": None, "forgotten_transactions": []}
UNKNOWN = {"open_transactions": None, "forgotten_transactions": None}
CASES = {
    "known to its coordinator": ("living", {"open_transactions": 1, "oldest_transaction_ms": HOUR_MS, "forgotten_transactions": []}),
    "known to no coordinator, the longest silent first": (
        "forgotten",
        {
            "open_transactions": 3,
            "oldest_transaction_ms": 2 * HOUR_MS,
            "forgotten_transactions": [
                {"producer_id": 3, "start_offset": 9, "silent_ms": 2 * HOUR_MS},
                {"producer_id": 2, "start_offset": 7, "silent_ms": HOUR_MS},
                {"producer_id": 1, "start_offset": 8, "silent_ms": 1},
            ],
        },
    ),
    "its producer has a transaction, in other partitions": (
        "moved-on",
        {"open_transactions": 1, "forgotten_transactions": [{"producer_id": 4, "start_offset": 1, "silent_ms": HOUR_MS}]},
    ),
    "a producer without an open transaction": ("closed", NONE),
    "begun after the log end was read, whatever the times of its records": (
        "young",
        {"open_transactions": 2, "forgotten_transactions": [{"producer_id": 8, "start_offset": 9, "silent_ms": HOUR_MS}]},
    ),
    "a record without a time": (
        "old-clock",
        {"oldest_transaction_ms": None, "forgotten_transactions": [{"producer_id": 6, "start_offset": 0, "silent_ms": None}]},
    ),
    "producers that may not be read": ("refused", UNKNOWN),
    "no leader to ask": ("offline", UNKNOWN),
    "internal topics are not asked": ("__consumer_offsets", UNKNOWN),
}


@pytest.mark.parametrize("case", CASES)
def test_a_partition(case: str, partitions) -> None:
    topic, expected = CASES[case]
    assert {name: partitions[f"{topic}-0"][name] for name in expected} == expected


def test_the_greatest_limit_of_the_brokers_counts(partitions) -> None:
    assert partitions["living-0"]["transaction_max_timeout_ms"] == 900_000


@pytest.mark.parametrize(
    ("dataset", "error", "where", "reason"),
    [
        ("transactions", "REQUEST_TIMED_OUT", {"broker_id": 2}, "REQUEST_TIMED_OUT"),
        ("transactions", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", {}, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        ("acls", "CLUSTER_AUTHORIZATION_FAILED", {}, "no coordinator lists any transactional id"),
    ],
)
def test_what_coordinators_did_not_tell_forgets_no_transaction(dataset: str, error: str, where: dict, reason: str, rows_of) -> None:
    one = cluster().topic("t").error(dataset, error, **where)
    if dataset == "transactions":
        known(one, 9)
    opened(one, "t", 1, 5, silent_ms=HOUR_MS)
    row = rows_of(one, "partition", columns=("open_transactions", "forgotten_transactions", "errors"))["t-0"]
    assert (row["open_transactions"], row["forgotten_transactions"]) == (1, None)
    assert reason in row["errors"]["transactions"]


def test_where_nothing_can_be_hidden_an_empty_list_of_transactions_is_an_answer(rows_of) -> None:
    one = cluster().topic("t").error("acls", "SECURITY_DISABLED")
    opened(one, "t", 1, 5, silent_ms=HOUR_MS)
    row = rows_of(one, "partition", columns=("forgotten_transactions", "errors"))["t-0"]
    assert row["forgotten_transactions"] == [{"producer_id": 1, "start_offset": 5, "silent_ms": HOUR_MS}]
    assert "transactions" not in row["errors"]
