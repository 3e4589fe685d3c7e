"""A snapshot that several processes read in parts: it is whole or absent, and the parts of a living one stay."""

import json
import os
import time
from datetime import timedelta

import pytest
from fake_answers import fetched
from kafka.protocol.admin.transactions import DescribeTransactionsResponse, ListTransactionsResponse
from kafka.protocol.consumer.group import OffsetFetchResponse
from snapshot_taking import SNAPSHOT, START, commits, failed, fake_cluster, rows, snapshot_taker, voters  # noqa: F401  (fixtures)

from kafka_audit.audit.installation import snapshot_retries, snapshot_shards
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.facts import Facts, joined_facts
from kafka_audit.collect.part import WHOLE, parts_of
from kafka_audit.collect.parts import join_parts, missing_parts, read_part
from kafka_audit.collect.scope import Scope
from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.parts import parts_folder
from kafka_audit.store.sweep import OLDEST_SECONDS, sweep

COUNT = 3


@pytest.fixture
def where(tmp_path):
    return {"root": EvidenceRoot(path=tmp_path), "cluster": "split", "snapshot_id": SNAPSHOT}


@pytest.fixture
def read(fake, where):
    ticks = iter(range(10_000))

    def run(part):
        settings = ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap})
        clock = {"now": lambda: START + timedelta(milliseconds=next(ticks)), "second_look_seconds": 0.01}
        read_part(part, settings=settings, scope=Scope(), **where, **clock)

    return run


def join(where):
    return join_parts(COUNT, **where, scope=Scope(), now=lambda: START + timedelta(seconds=60))


def test_every_name_is_of_one_share_and_the_whole_has_all():
    names = [f"topic-{number}" for number in range(1000)] + ["\udc80"]
    for some in (parts_of(8)[:8], parts_of(8)[8:]):
        assert all(sum(part.has(name) for part in some) == 1 for name in names)
        assert all(90 < sum(part.has(name) for name in names) < 170 for part in some)
    assert all(WHOLE.has(name) for name in names)
    assert [part.leads for part in parts_of(2)] == [False, False, True, False]


def test_groups_and_topics_of_all_parts_are_in_the_snapshot_in_order(fake, read, where):
    for number in range(20):
        fake.add_topic(f"topic-{number:02}", [1, 2])
    commits(fake, **{f"group-{number:02}": {(f"topic-{number:02}", 1): 5} for number in range(20)})
    for part in parts_of(COUNT):
        read(part)
    found = join(where)

    assert [row["topic"] for row in rows(found, "topics")] == [f"topic-{number:02}" for number in range(20)]
    assert [row["group_id"] for row in rows(found, "committed_offsets")] == [f"group-{number:02}" for number in range(20)]
    assert [(row["broker_id"], row["answered"]) for row in rows(found, "brokers")] == [(1, True), (2, True), (3, True)]
    assert found.manifest["started_at"] == START.isoformat()
    assert not parts_folder(where["root"], "split", SNAPSHOT).exists()


def test_a_broker_that_left_one_part_unanswered_did_not_answer_and_what_it_keeps_is_an_error(fake, read, where):
    fake.add_topic("orders", [1, 2, 3])
    (first, *rest) = parts_of(COUNT)
    read(first)
    listing = fake.answers["ListGroups"]
    for part in rest:
        fake.answers["ListGroups"] = listing if part != rest[0] else lambda *_: 1 / 0
        read(part)
    found = join(where)

    assert [row["answered"] for row in rows(found, "brokers")] == [False] * 3
    assert {broker for broker, *_ in failed(found, "groups")} == {1, 2, 3}


def test_a_group_that_reads_on_between_the_parts_does_not_lag_by_what_it_has_read(fake, read, where):
    for name in ("orders", "payments"):
        fake.add_topic(name, [1, 2])
    commits(fake, reads_on={("orders", 0): 5, ("payments", 0): 7}, gone={("orders", 1): 9}, moves={("payments", 1): 50})
    for part in parts_of(COUNT)[:COUNT]:
        read(part)
    fake.answers["OffsetFetch"] = lambda _, request: OffsetFetchResponse(
        throttle_time_ms=0,
        groups=[
            fetched(g.group_id, {(t.name, i): 100 for t in g.topics for i in t.partition_indexes}, code=69 if g.group_id == "gone" else 0)
            if g.group_id != "moves"
            else fetched("moves")
            for g in request.groups
        ],
    )
    for part in parts_of(COUNT)[COUNT:]:
        read(part)
    found = join(where)

    read_at = {row["topic"]: row["read_at"] for row in rows(found, "offsets")}
    told = rows(found, "committed_offsets")
    assert [(row["group_id"], row["topic"], row["committed"], row["error"]) for row in told] == [
        ("gone", "orders", None, "GROUP_ID_NOT_FOUND"),
        ("moves", "payments", None, "INVALID_RESPONSE"),
        ("reads_on", "orders", 100, None),
        ("reads_on", "payments", 100, None),
    ]
    assert all(timedelta() < read_at[row["topic"]] - row["read_at"] < timedelta(milliseconds=3) for row in told)
    assert {row["group_id"] for row in rows(found, "errors") if row["dataset"] == "committed_offsets"} == {"gone", "moves"}


def show_transactions(fake, open_on):
    """Broker 1 coordinates transactions that are open in partition 0 of the topics of ``open_on``, by transactional id."""
    listing, details = ListTransactionsResponse.TransactionState, DescribeTransactionsResponse.TransactionState
    fake.answers["ListTransactions"] = lambda broker, _: ListTransactionsResponse(
        throttle_time_ms=0,
        error_code=0,
        unknown_state_filters=[],
        transaction_states=[listing(transactional_id=name, producer_id=7, transaction_state="Ongoing") for name in open_on if broker == 1],
    )
    fake.answers["DescribeTransactions"] = lambda _, request: DescribeTransactionsResponse(
        throttle_time_ms=0,
        transaction_states=[
            details(
                error_code=0,
                transactional_id=name,
                transaction_state="Ongoing",
                transaction_timeout_ms=60_000,
                transaction_start_time_ms=1,
                producer_id=7,
                producer_epoch=0,
                topics=[details.TopicData(topic=topic, partitions=[0]) for topic in open_on[name]],
            )
            for name in request.transactional_ids
        ],
    )


def test_transactions_are_those_that_were_open_when_the_producers_of_their_topics_were_read(fake, read, where):
    first, second, _ = (next(name for name in map("topic-{}".format, range(99)) if part.has(name)) for part in parts_of(COUNT)[COUNT:])
    for name in (first, second):
        fake.add_topic(name, [1, 2])
    for part in parts_of(COUNT)[: COUNT + 1]:
        show_transactions(fake, {"ends": [first, second]})
        read(part)
    for part in parts_of(COUNT)[COUNT + 1 :]:
        show_transactions(fake, {"begins": [first, second]})
        read(part)
    found = join(where)

    told = {row["transactional_id"]: [one["topic"] for one in row["partitions"]] for row in rows(found, "transactions")}
    assert told == {"begins": [second], "ends": [first]}
    assert failed(found, "transactions") == []


def test_a_machine_whose_clock_is_wrong_costs_the_times_of_its_own_part(fake, read, where):
    first, second, _ = (next(name for name in map("topic-{}".format, range(99)) if part.has(name)) for part in parts_of(COUNT)[COUNT:])
    for name in (first, second):
        fake.add_topic(name, [1])

    def dated(broker, request):
        response = fake._ListOffsets(broker, request)
        for partition in (one for topic in response.topics for one in topic.partitions):
            partition.timestamp = 5
        return response

    fake.answers["ListOffsets"] = dated
    for part in parts_of(COUNT):
        apart = timedelta(seconds=90) if part == parts_of(COUNT)[COUNT + 1] else timedelta(0)
        voters(fake, 1, caught_up_ms=round((START + apart).timestamp() * 1000))
        read(part)
    found = join(where)

    told = [row["message"] for row in rows(found, "errors") if row["dataset"] == "offsets.max_timestamp_ms"]
    assert len(told) == 1
    assert "90 s apart" in told[0]
    assert {row["topic"]: row["max_timestamp_ms"] for row in rows(found, "offsets")} == {first: 5, second: None}


def test_without_all_parts_nothing_is_sealed_and_the_error_names_those_that_are_missing(read, where):
    groups, topics = parts_of(COUNT)[:COUNT], parts_of(COUNT)[COUNT:]
    read(groups[0])
    with pytest.raises(CollectionError, match=r"lacks groups-02-of-03, groups-03-of-03"):
        read(topics[0])
    for part in (*groups[1:], *topics[:2]):
        read(part)
    assert missing_parts(COUNT, **where) == [topics[2]]
    with pytest.raises(CollectionError, match=r"lacks topics-03-of-03"):
        join(where)
    assert where["root"].find_snapshot("split", SNAPSHOT) is None


def test_a_part_that_was_changed_is_refused(read, where):
    for part in parts_of(COUNT):
        read(part)
    path = parts_folder(where["root"], "split", SNAPSHOT) / "topics-01-of-03" / "topics.parquet"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(IntegrityError, match=r"clear the tasks that read the cluster"):
        join(where)


@pytest.mark.parametrize(("field", "value"), [("facts", None), ("facts", {"brokers": 7}), ("started_at", "yesterday")])
def test_a_manifest_that_says_nothing_of_a_part_is_refused(read, where, field, value):
    for part in parts_of(COUNT):
        read(part)
    path = parts_folder(where["root"], "split", SNAPSHOT) / "topics-01-of-03" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), field: value}))
    with pytest.raises(IntegrityError, match=r"topics-01-of-03 is not one of a part"):
        join(where)
    assert where["root"].find_snapshot("split", SNAPSHOT) is None


def test_a_part_and_a_snapshot_that_are_there_are_not_read_again(fake, read, where):
    read(parts_of(COUNT)[0])
    asked = len(fake.received)
    read(parts_of(COUNT)[0])
    assert len(fake.received) == asked
    for part in parts_of(COUNT):
        read(part)
    found, asked = join(where), len(fake.received)
    for part in parts_of(COUNT):
        read(part)
    assert join(where).manifest == found.manifest
    assert len(fake.received) == asked
    assert missing_parts(COUNT, **where) == []


def test_a_sweep_leaves_parts_until_nothing_changed_in_them_for_a_day(read, where):
    read(parts_of(COUNT)[0])
    folder = parts_folder(where["root"], "split", SNAPSHOT)
    sweep(where["root"], "split")
    assert missing_parts(COUNT, **where) == list(parts_of(COUNT)[1:])
    old = time.time() - OLDEST_SECONDS - 60
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (old, old))
    sweep(where["root"], "split")
    assert not folder.exists()


@pytest.mark.parametrize(("said", "shards"), [(None, 1), ("", 1), ("1", 1), (" 8 ", 8), ("64", 64)])
def test_the_number_of_shards_is_set_in_the_environment(monkeypatch, said, shards):
    monkeypatch.delenv("KAFKA_AUDIT_SHARDS", raising=False)
    if said is not None:
        monkeypatch.setenv("KAFKA_AUDIT_SHARDS", said)
    assert snapshot_shards() == shards


@pytest.mark.parametrize("said", ["0", "65", "-1", "2.5", "two", "٣", "9" * 5000])
def test_a_number_of_shards_that_cannot_be_used_is_refused(monkeypatch, said):
    monkeypatch.setenv("KAFKA_AUDIT_SHARDS", said)
    with pytest.raises(ConfigurationError, match=r"KAFKA_AUDIT_SHARDS: .* write a whole number from 1 to 64"):
        snapshot_shards()


def test_a_number_of_retries_is_checked_as_well(monkeypatch):
    for said in ("101", "-1", "two"):
        monkeypatch.setenv("KAFKA_AUDIT_SNAPSHOT_RETRIES", said)
        with pytest.raises(ConfigurationError, match=r"KAFKA_AUDIT_SNAPSHOT_RETRIES: .* write a whole number from 0 to 100"):
            snapshot_retries()
    monkeypatch.setenv("KAFKA_AUDIT_SNAPSHOT_RETRIES", "")
    assert snapshot_retries() == 2


def facts(cluster_id, **changes):
    given = {"alive": (), "answering": [1, 2], "versions": {}, "answered": {}, "denied": {}}
    return Facts(cluster_id=cluster_id, **{**given, **changes})


def test_parts_of_several_clusters_are_not_joined():
    with pytest.raises(CollectionError, match=r"several clusters \(a, b\)"):
        joined_facts([facts("a"), facts("b"), facts("a")])


def test_what_every_part_asks_counts_once_and_the_rest_adds_up():
    denied = {"Metadata": {"X_AUTHORIZATION_FAILED": 2}, "DescribeConfigs": {"X_AUTHORIZATION_FAILED": 1}}
    parts = [facts("a", answered={"Metadata": 9, "ListOffsets": 3}, denied=denied, answering=answering) for answering in ([1, 2], [2, 3])]
    joined = joined_facts(parts)
    assert (joined.answered, joined.answering) == ({"Metadata": 9, "ListOffsets": 6}, [2])
    assert joined.denied == {"Metadata": {"X_AUTHORIZATION_FAILED": 2}, "DescribeConfigs": {"X_AUTHORIZATION_FAILED": 2}}
