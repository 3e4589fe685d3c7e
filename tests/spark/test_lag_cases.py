"""Cases in which users of other tools reported a wrong lag, each as evidence and the expected row."""

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

FULL = {"log_start": 0, "log_end": 1000, "last_stable": 1000}
HOSTILE = "=cmd|' /C calc'!A0\n<script>\u202e\"\\"


@pytest.fixture(scope="module")
def cluster() -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for topic in ("orders", "idle", "lossy", "short", "open", "unread", "left", "tiny", "big", "hidden-by-error"):
        one.topic(topic)
    one.topic("table", config={"cleanup.policy": "compact,delete"}).topic("forever", config={"retention.ms": "-1"}).topic(
        "dark", without_config=True
    )
    one.offsets("orders", **FULL).offsets("table", **FULL).offsets("forever", **FULL).offsets("dark", **FULL).offsets("left", **FULL)
    one.offsets("idle", log_start=100, log_end=100, last_stable=100).offsets("lossy", log_start=100, log_end=500, last_stable=500)
    one.offsets("short", log_start=0, log_end=200).offsets("open", log_start=0, log_end=1000, last_stable=900)
    one.offsets("unread", error="LEADER_NOT_AVAILABLE").offsets(
        "big", log_start=0, log_end=2**62, headroom_offset=5, headroom_timestamp_ms=7
    )
    one.error("topic_configs", "TOPIC_AUTHORIZATION_FAILED", topic="dark").error(
        "offsets", "LEADER_NOT_AVAILABLE", topic="unread", partition=0
    )
    one.group("g", assigned=[("orders", 0), ("unread", 0), ("tiny", 0)], subscribed=["orders", "tiny", "unread"])
    for topic, committed in {"orders": 700, "idle": 40, "lossy": 40, "short": 500, "open": 900, "table": 1000, "forever": 1000}.items():
        one.commit("g", topic, committed)
    one.commit("g", "dark", 1).commit("g", "unread", 10).commit("g", "deleted", 10).commit("g", "big", 0)
    one.commit("g", "hidden-by-error", None, error="TOPIC_AUTHORIZATION_FAILED")
    one.group("never", assigned=[("orders", 0)]).commit("never", "orders", None)
    one.group("fetched-all", assigned=[("orders", 0), ("unseen", 0)])
    one.group("minus-one", assigned=[("orders", 0)]).commit("minus-one", "orders", -1)
    one.group("empty", state="Empty").commit("empty", "orders", 0)
    one.group("queue", kind="share", assigned=[("orders", 0)]).commit("queue", "orders", 950)
    one.group("unread-queue", kind="share", assigned=[("orders", 0)]).commit("unread-queue", "orders", None)
    one.group("new", kind="consumer", state="Stable", assigned=[("orders", 0)]).commit("new", "orders", 1000)
    one.group("undescribed", error="GROUP_ID_NOT_FOUND").commit("undescribed", "orders", 1000)
    one.group("half").commit("half", "orders", 1000).add("members", group_id="half", member_id="m", client_id="c")
    one.group("refused", assigned=[("orders", 0)]).error("committed_offsets", "GROUP_AUTHORIZATION_FAILED", group_id="refused")
    _add_subscriptions(one)
    _add_grown_topics(one)
    one.group("moved", assigned=[("orders", 0)], subscribed=["orders"]).commit("moved", "orders", 1000).commit("moved", "left", 0)
    one.group("perhaps", kind="consumer", assigned=[("orders", 0)])
    one.commit("perhaps", "orders", 1000).commit("perhaps", "left", 0).commit("perhaps", "table", 1000)
    return one.group(HOSTILE, assigned=[("orders", 0)]).commit(HOSTILE, "orders", 999)


def _add_grown_topics(one: Synthetic) -> None:
    one.topic("grown", partitions=3).topic("half-dark", partitions=2)
    for partition, end in enumerate((10, 10, 0)):
        one.offsets("grown", partition, log_start=0, log_end=end, last_stable=end)
    one.offsets("half-dark", 0, log_start=0, log_end=10, last_stable=10).offsets("half-dark", 1, error="LEADER_NOT_AVAILABLE")
    one.group("nightly", state="Empty").commit("nightly", "grown", 10)
    one.group("nightly-whole", state="Empty").commit("nightly-whole", "grown", 10).commit("nightly-whole", "grown", 10, partition=1)
    one.group("nightly-dark", state="Empty").commit("nightly-dark", "half-dark", 10)
    one.group("nightly-both", state="Empty").commit("nightly-both", "half-dark", 10).commit("nightly-both", "grown", 10)
    unstable = {"partition": 1, "error": "UNSTABLE_OFFSET_COMMIT"}
    one.group("nightly-unstable", state="Empty").commit("nightly-unstable", "grown", 10).commit(
        "nightly-unstable", "grown", None, **unstable
    )
    one.group("nightly-lost", state="Empty").commit("nightly-lost", "grown", None, **unstable)


def _add_subscriptions(one: Synthetic) -> None:
    one.topic("wide", partitions=3).add(
        "replica_sizes", broker_id=1, path="/data", topic="secret", partition=0, size_bytes=1, is_future=False
    )
    members = {
        "sub-whole": [(["wide"], ["wide-0", "wide-1"]), (["wide", "orders"], ["wide-2", "orders-0"])],
        "sub-gap": [(["wide"], ["wide-0"]), (["wide"], ["wide-2"])],
        "sub-regex": [(None, ["orders-0"])],
        "sub-regex-gap": [(None, ["wide-0"]), (["orders"], ["orders-0"])],
        "sub-absent": [(["orders", "never-made"], ["orders-0"])],
        "sub-hidden": [(["orders", "secret"], ["orders-0"])],
    }
    for group_id, listed in members.items():
        one.group(group_id, kind="consumer")
        for number, (subscribed, assigned) in enumerate(listed):
            places = [{"topic": name.rpartition("-")[0], "partition": int(name.rpartition("-")[2])} for name in assigned]
            one.add("members", group_id=group_id, member_id=str(number), client_id="c", assignment=places, subscribed_topics=subscribed)
    one.group("sub-empty", state="Empty")


@pytest.fixture(scope="module")
def positions(rows_of, cluster):
    return rows_of(cluster, "group_partition")


@pytest.fixture(scope="module")
def groups(rows_of, cluster):
    return rows_of(cluster, "group")


@pytest.fixture(scope="module")
def slas(rows_of, cluster):
    return rows_of(cluster, "group_sla")


CASES = {
    "behind": ("g:orders-0", {"lag": 300, "lost": 0, "beyond_end": 0, "unread_bytes": 300, "assigned": True, "has_commit": True}),
    "commit below start on an idle topic is a loss and no lag": ("g:idle-0", {"lost": 60, "lag": 0, "beyond_end": 0}),
    "loss and remaining lag are two figures": ("g:lossy-0", {"lost": 60, "lag": 400}),
    "beyond the end is its own figure and no negative lag": ("g:short-0", {"beyond_end": 300, "lag": 0, "lost": 0}),
    "an open transaction shows both ends": ("g:open-0", {"lag": 100, "last_stable": 900, "log_end": 1000}),
    "compacted is labelled": ("g:table-0", {"compacted": True, "deletes": True, "lag": 0}),
    "not compacted": (
        "g:orders-0",
        {"compacted": False, "deletes": True, "tiered": False, "abandoned": False, "retention_ms": 604800000, "retention_bytes": -1},
    ),
    "unlimited retention": ("g:forever-0", {"retention_ms": -1}),
    "refused configuration is unknown, not the default": (
        "g:dark-0",
        {"retention_ms": None, "compacted": None, "deletes": None, "tiered": None, "lag": 999},
    ),
    "an unread end offset gives no lag": (
        "g:unread-0",
        {"lag": None, "lost": None, "beyond_end": None, "has_commit": True, "topic_exists": True},
    ),
    "a deleted topic is no lag of 0": ("g:deleted-0", {"topic_exists": False, "lag": None, "has_commit": True, "assigned": False}),
    "offsets near the largest": ("g:big-0", {"lag": 2**62, "headroom_offset": 5, "headroom_timestamp_ms": 7}),
    "a refused commit is unknown": ("g:hidden-by-error-0", {"has_commit": None, "lag": None}),
    "assigned but never committed": ("never:orders-0", {"has_commit": False, "committed": None, "lag": None, "assigned": True}),
    "fetch-all answered without the partition": ("fetched-all:orders-0", {"has_commit": False, "lag": None}),
    "fetch-all hides topics that may not be described": ("fetched-all:unseen-0", {"has_commit": None, "topic_exists": False, "lag": None}),
    "minus one is no commit": ("minus-one:orders-0", {"has_commit": False, "lag": None, "lost": None}),
    "an empty group is judged by its offsets": ("empty:orders-0", {"lag": 1000, "assigned": False, "state": "Empty"}),
    "a share group's start offset is its position": ("queue:orders-0", {"lag": 50, "has_commit": True, "group_type": "share"}),
    "a share group may not have read yet": ("unread-queue:orders-0", {"lag": None, "has_commit": False, "assigned": True}),
    "a KIP-848 group keeps type and state from ListGroups": ("new:orders-0", {"group_type": "consumer", "state": "Stable", "lag": 0}),
    "members that could not be described leave assignment unknown": ("undescribed:orders-0", {"assigned": None, "lag": 0}),
    "one undescribed member leaves assignment unknown": ("half:orders-0", {"assigned": None}),
    "a refused group is unknown": ("refused:orders-0", {"has_commit": None, "lag": None, "assigned": True}),
    "a hostile group id is a value like any other": (f"{HOSTILE}:orders-0", {"group_id": HOSTILE, "lag": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_group_partition(case: str, positions) -> None:
    resource, expected = CASES[case]
    assert {name: positions[resource][name] for name in expected} == expected


def test_a_figure_that_is_missing_has_its_reason_beside_it(positions) -> None:
    reasons = {
        "g:unread-0": ("offsets", "LEADER_NOT_AVAILABLE"),
        "g:dark-0": ("topic_configs", "TOPIC_AUTHORIZATION_FAILED"),
        "g:hidden-by-error-0": ("committed_offsets", "TOPIC_AUTHORIZATION_FAILED"),
        "refused:orders-0": ("committed_offsets", "GROUP_AUTHORIZATION_FAILED"),
        "undescribed:orders-0": ("members", "GROUP_ID_NOT_FOUND"),
        "half:orders-0": ("members", "1 members could not be described"),
    }
    for resource, (dataset, text) in reasons.items():
        assert text in positions[resource]["errors"][dataset]
    assert positions["g:orders-0"]["errors"] == {}


def test_one_unreadable_partition_does_not_spoil_the_group_but_its_sum_is_marked_as_incomplete(slas) -> None:
    group = slas["g"]
    assert group["partition_count"] == 11
    assert group["unknown_partitions"] == 1
    assert group["lag_known"] == 300  # of orders; tiny has no commit, and of the other topics no member reads
    assert "on 1 of its partitions, first unread-0: LEADER_NOT_AVAILABLE" in group["errors"]["offsets"]


def test_partitions_of_a_topic_that_a_stable_group_left_do_not_count_as_its_lag(slas, positions) -> None:
    assert positions["moved:left-0"]["lag"] == 1000
    assert positions["moved:left-0"]["abandoned"] is True
    assert slas["moved"]["lag_known"] == 0
    assert slas["moved"]["unknown_partitions"] == 0
    assert slas["moved"]["partition_count"] == 2


def test_a_topic_that_a_group_may_have_left_makes_its_lag_unknown_and_says_why(slas, positions) -> None:
    assert {name: positions[f"perhaps:{name}-0"]["abandoned"] for name in ("orders", "left", "table")} == {
        "orders": False,
        "left": None,
        "table": False,  # nothing of it is unread or lost
    }
    assert (slas["perhaps"]["lag_known"], slas["perhaps"]["unknown_partitions"], slas["perhaps"]["partition_count"]) == (0, 1, 3)
    why = "not every member tells which topics it reads"
    assert why in slas["perhaps"]["errors"]["members"]
    assert positions["perhaps:left-0"]["errors"]["members"].startswith(why)


def test_a_group_without_a_commit_has_no_lag_rather_than_a_lag_of_0(slas) -> None:
    assert (slas["never"]["lag_known"], slas["never"]["lag_max"], slas["never"]["partition_count"]) == (None, None, 0)
    assert (slas["unread-queue"]["lag_known"], slas["queue"]["lag_known"], slas["queue"]["group_type"]) == (None, 50, "share")


def test_member_counts_are_unknown_where_members_could_not_be_described(groups) -> None:
    assert {name: groups[name]["member_count"] for name in ("g", "empty", "undescribed", "half")} == {
        "g": 1,
        "empty": 0,
        "undescribed": None,
        "half": None,
    }


def test_the_largest_lag_names_its_partition(slas) -> None:
    assert (slas["empty"]["lag_max"], slas["empty"]["lag_max_partition"]) == (1000, "orders-0")
    policy = slas[HOSTILE]["policy"]
    assert (policy["tier"], policy["sla"], policy["max_lag_records"], policy["max_lag_ms"]) == ("no_loss", "default", 10000, None)


def test_a_partition_of_a_subscribed_topic_that_no_member_has_is_found(groups) -> None:
    found = {name: (groups[name]["unassigned_count"], groups[name]["unassigned_partitions"]) for name in groups if name.startswith("sub-")}
    assert found == {
        "sub-whole": (0, []),
        "sub-gap": (1, ["wide-1"]),
        "sub-regex": (None, None),  # what else the expression matches is not known
        "sub-regex-gap": (2, ["wide-1", "wide-2"]),  # a topic that is read in part is subscribed
        "sub-absent": (0, []),  # a topic that does not exist has no partitions
        "sub-hidden": (None, None),
        "sub-empty": (None, None),
    }
    assert groups["undescribed"]["unassigned_count"] is None


def test_partitions_on_which_a_stopped_group_has_no_commit_are_named(groups) -> None:
    found = {
        name: tuple(groups[name][column] for column in ("commit_count", "uncommitted_count", "uncommitted_partitions"))
        for name in (
            "nightly",
            "nightly-whole",
            "nightly-dark",
            "nightly-both",
            "nightly-unstable",
            "nightly-lost",
            "refused",
            "undescribed",
        )
    }
    assert found == {
        "nightly": (1, 1, ["grown-1"]),  # grown-2 has no record
        "nightly-whole": (2, 0, []),
        "nightly-dark": (1, None, None),
        "nightly-both": (2, 1, ["grown-1"]),
        "nightly-unstable": (1, None, None),  # whether it has a commit on grown-1 was not told
        "nightly-lost": (None, 1, ["grown-0"]),
        "refused": (None, None, None),
        "undescribed": (1, None, None),  # it is not Empty
    }
    assert groups["nightly-dark"]["errors"]["offsets"] == "LEADER_NOT_AVAILABLE: half-dark-1"
    assert groups["nightly-unstable"]["errors"]["committed_offsets"] == "UNSTABLE_OFFSET_COMMIT: the commit on grown-1 could not be read"
