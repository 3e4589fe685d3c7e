"""The header of each partition's last batch is read completely, whatever else the brokers answer."""

from fake_brokers import FakeCluster
from fake_records import batch, records_of
from kafka.protocol.consumer.fetch import FetchResponse
from snapshot_taking import failed, fake_cluster, rows, snapshot_taker  # noqa: F401  (fixtures)

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.fetching import read_last_batches
from kafka_audit.cluster.routing import Leaders
from kafka_audit.cluster.topics import list_topics

OFFSET_OUT_OF_RANGE, TOPIC_DENIED = 1, 29
NOT_LEADER = 6


def answer(fake, **by_topic):
    """Answer Fetch with the given bytes or error code for each topic."""
    fake.answers["Fetch"] = lambda _, request: records_of(request, lambda topic, _: by_topic[topic])


def test_the_header_tells_who_wrote_last_and_how(fake, take):
    batches = {
        "plain": batch(99),
        "idempotent": batch(90, 99, producer=(7, 1, 40)),
        "transactional": batch(98, 99, attributes=0x10, producer=(8, 0, 2)),
        "marker": batch(99, attributes=0x30, producer=(8, 0, -1)),
    }
    for name in batches:
        fake.add_topic(name, [1])
    answer(fake, **batches)
    keys = ("base_offset", "last_offset", "producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control", "error")

    assert {row["topic"]: tuple(row[key] for key in keys) for row in rows(take(), "last_batches")} == {
        "plain": (99, 99, -1, -1, -1, False, False, None),
        "idempotent": (90, 99, 7, 1, 40, False, False, None),
        "transactional": (98, 99, 8, 0, 2, True, False, None),
        "marker": (99, 99, 8, 0, -1, True, True, None),
    }


def test_the_request_reads_as_a_consumer_from_the_leader_without_a_session(fake, take):
    fake.add_topic("t", [1])
    fake.add_topic("__consumer_offsets", [1])
    row = rows(take(), "last_batches")[0]
    request = fake.requests("Fetch")[0]

    assert (request.replica_id, request.session_epoch, request.isolation_level, request.max_wait_ms) == (-1, -1, 0, 0)
    assert [(t.topic, [(p.partition, p.fetch_offset) for p in t.partitions]) for t in request.topics] == [("t", [(0, 99)])]
    assert request.API_VERSION == 10  # a newer one lets the leader send the reader to a follower
    assert row["max_timestamp_ms"] == 1700000000000


def test_partitions_are_asked_in_one_request_per_leader_and_empty_ones_not_at_all(fake, take):
    fake.add_topic("t", [1, 2, 3] * 10)
    fake.add_topic("empty", [1])

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for topic in response.topics:
            for partition in topic.partitions:
                partition.offset = 5 if topic.name == "empty" else partition.offset
        return response

    fake.answers["ListOffsets"] = offsets
    result = take()

    assert [(row["topic"], row["partition"]) for row in rows(result, "last_batches")] == [("t", index) for index in range(30)]
    assert fake.asked("Fetch") == {1: 1, 2: 1, 3: 1}


def test_batches_that_do_not_fit_into_an_answer_are_asked_again_until_each_was_served(fake, take):
    sizes = [100_000, 200, 3_000_000, 200, 9_000_000, 9_000_000, 100_000]
    fake.add_topic("t", [1] * len(sizes))

    def limited(_, request):
        """As a broker keeps its limits: the first batch is whole, another one is left out when it does not fit (KIP-74)."""
        room, first = request.max_bytes, True

        def records(_, partition):
            nonlocal room, first
            size = sizes[partition.partition]
            if not first and size > min(room, partition.partition_max_bytes):
                return b""
            room, first = max(0, room - size), False
            return batch(99, size=size)

        return records_of(request, records)

    fake.answers["Fetch"] = limited
    result = take()

    assert [(row["last_offset"], row["error"]) for row in rows(result, "last_batches")] == [(99, None)] * len(sizes)
    assert fake.asked("Fetch")[1] < len(sizes)


def test_an_answer_that_a_quota_emptied_is_asked_again(fake, take):
    fake.add_topic("t", [1])
    answers = iter([FetchResponse(throttle_time_ms=1, error_code=0, session_id=0, responses=[])])
    fake.answers["Fetch"] = lambda broker_id, request: next(answers, None) or fake._Fetch(broker_id, request)

    assert [row["error"] for row in rows(take(), "last_batches")] == [None]


def test_what_cannot_be_read_has_its_reason_and_no_header_and_spoils_nothing_else(fake, take):
    found = {
        "compacted": b"",
        "denied": TOPIC_DENIED,
        "garbage": b"x" * 70,
        "older": batch(50),
        "old": b"\0" * 16 + b"\1" + b"\0" * 20,
        "gone": OFFSET_OUT_OF_RANGE,
        "t": batch(99),
    }
    for name in found:
        fake.add_topic(name, [1])
    answer(fake, **found)
    result = take()
    errors = {row["topic"]: row["error"] for row in rows(result, "last_batches")}

    assert errors == {
        "compacted": "NO_BATCH",
        "denied": "TOPIC_AUTHORIZATION_FAILED",
        "garbage": "INVALID_RESPONSE",
        "older": "INVALID_RESPONSE",
        "old": "OLD_FORMAT",
        "gone": "OFFSET_OUT_OF_RANGE",
        "t": None,
    }
    assert {row["producer_id"] for row in rows(result, "last_batches") if row["error"]} == {None}
    assert {(topic, error) for _, topic, _, _, error in failed(result, "last_batches")} == {pair for pair in errors.items() if pair[1]}
    assert result.manifest["capabilities"]["Fetch"] == "allowed"


def test_where_records_arrived_meanwhile_the_batch_of_the_known_end_is_kept(fake, take):
    fake.add_topic("t", [1])
    answer(fake, t=batch(98, 99, producer=(1, 0, 0)) + batch(100, 105, producer=(2, 0, 0)))

    assert [(row["last_offset"], row["producer_id"]) for row in rows(take(), "last_batches")] == [(99, 1)]


def test_a_partition_whose_leader_moved_is_followed(fake, take):
    fake.add_topic("t", [1])

    def moved(broker_id, request):
        if broker_id == 1:
            fake.topics[0].partitions[0].leader_id = 2
            return records_of(request, lambda *_: NOT_LEADER)
        return fake._Fetch(broker_id, request)

    fake.answers["Fetch"] = moved

    assert [row["error"] for row in rows(take(), "last_batches")] == [None]


def test_a_partition_whose_end_is_not_known_is_not_taken_for_an_empty_one(fake, take):
    fake.add_topic("t", [-1, 1])
    result = take()

    assert [(row["partition"], row["error"]) for row in rows(result, "last_batches")] == [(0, "LEADER_NOT_AVAILABLE"), (1, None)]
    assert failed(result, "last_batches") == [(None, "t", 0, None, "LEADER_NOT_AVAILABLE")]


def test_the_brokers_of_a_large_cluster_share_the_bytes_under_way():
    with FakeCluster(tuple(range(1, 7))) as fake:
        fake.add_topic("t", [1, 2])
        with Cluster(ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap})) as cluster:
            found = read_last_batches(cluster, Leaders(cluster, list_topics(cluster).partitions), {("t", 0): 9, ("t", 1): 9})

        assert [batch.last_offset for batch in found.values()] == [9, 9]
        assert {request.max_bytes for request in fake.requests("Fetch")} == {4 * 1024 * 1024}
