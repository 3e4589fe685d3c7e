"""The time of the first unread record is read from the record itself, or reported as unknown."""

import sys

import pytest
from fake_records import batch, records, records_of
from snapshot_taking import commits, failed, fake_cluster, offsets_snapshot_taker, rows, snapshot_taker  # noqa: F401  (fixtures)

from kafka_audit.cluster import first_records

OFFSET_OUT_OF_RANGE, TOPIC_DENIED, NOT_LEADER = 1, 29, 6
TRANSACTIONAL, CONTROL = 0x10, 0x30
KEYS = ("offset", "record_offset", "timestamp_ms", "timestamp_type", "error")


def serve(fake, *batches, **limits):
    """Answer Fetch from a log of (last offset, bytes), as many whole batches as ``at_most``."""

    def log(_, partition):
        found = [data for last, data in batches if last >= partition.fetch_offset]
        return b"".join(found[: limits.get("at_most", len(found))])

    fake.add_topic("t", [1])
    fake.answers["Fetch"] = lambda _, request: records_of(request, log, limits.get("aborted", ()))


def unread(result):
    return [tuple(row[key] for key in KEYS) for row in rows(result, "first_unread")]


def test_the_record_at_the_commit_tells_its_own_time_also_from_the_middle_of_a_batch(fake, take_offsets):
    serve(fake, (59, records([57, 58, 59], timestamps=[7000, 5000, 6000])))
    commits(fake, g={("t", 0): 58})

    assert unread(take_offsets()) == [(58, 58, 5000, "CreateTime", None)]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches_are_read(fake, take_offsets, codec):
    serve(fake, (59, records(range(50, 60), timestamps=list(range(10)), codec=codec, value=b"x" * 100)))
    commits(fake, g={("t", 0): 55})

    assert unread(take_offsets()) == [(55, 55, 5, "CreateTime", None)]


def test_log_append_time_is_the_brokers_and_said_to_be(fake, take_offsets):
    serve(fake, (59, records([58, 59], timestamps=[1, 2], append_time=9000)))
    commits(fake, g={("t", 0): 58})

    assert unread(take_offsets()) == [(58, 58, 9000, "LogAppendTime", None)]


def test_a_time_in_the_future_is_stored_as_it_is(fake, take_offsets):
    serve(fake, (58, records([58], timestamps=[9_999_999_999_999])))
    commits(fake, g={("t", 0): 58})

    assert unread(take_offsets()) == [(58, 58, 9_999_999_999_999, "CreateTime", None)]


def test_holes_and_control_batches_are_passed_over_also_from_one_answer_to_the_next(fake, take_offsets):
    log = [(57, records([50], last=57)), (58, batch(58, attributes=CONTROL)), (60, records([60], timestamps=[600]))]
    serve(fake, *log, at_most=1)
    commits(fake, g={("t", 0): 55})

    assert unread(take_offsets()) == [(55, 60, 600, "CreateTime", None)]
    assert [request.topics[0].partitions[0].fetch_offset for request in fake.requests("Fetch")] == [55, 58, 59]


def test_where_only_markers_follow_there_is_no_record_and_no_error(fake, take_offsets):
    serve(fake, (99, batch(99, attributes=CONTROL)))
    commits(fake, g={("t", 0): 99})

    assert unread(take_offsets()) == [(99, None, None, None, None)]


def in_transaction(producer_id, *offsets):
    return offsets[-1], records(offsets, attributes=TRANSACTIONAL, producer_id=producer_id)


def end_of_transaction(producer_id, offset):
    return offset, batch(offset, attributes=CONTROL, producer=(producer_id, 0, -1))


@pytest.mark.parametrize("at_most", [1, 9])
@pytest.mark.parametrize(
    ("position", "first"),
    [(50, 61), (55, 61), (61, 61), (62, 70), (71, None)],
)
def test_records_of_aborted_transactions_are_passed_over_and_those_of_others_among_them_are_not(
    fake, take_offsets, at_most, position, first
):
    log = [
        in_transaction(7, 50, 51),
        in_transaction(8, 61),
        end_of_transaction(7, 62),
        in_transaction(7, 65),
        end_of_transaction(7, 66),
        in_transaction(7, 70),
        end_of_transaction(7, 71),
        end_of_transaction(8, 72),
        in_transaction(8, 80, 90),
        end_of_transaction(8, 99),
    ]
    serve(fake, *log, at_most=at_most, aborted=[(8, 80, 99), (7, 50, 62), (7, 65, 66)])
    commits(fake, g={("t", 0): position})

    assert [row[:2] for row in unread(take_offsets())] == [(position, first)]


def test_records_of_an_open_transaction_count_because_nobody_knows_how_it_ends(fake, take_offsets):
    serve(fake, in_transaction(7, 50), end_of_transaction(7, 59), in_transaction(7, 60), aborted=[(7, 50, 59)], at_most=1)
    commits(fake, g={("t", 0): 50})

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for partition in response.topics[0].partitions if request.isolation_level else ():
            partition.offset = 60
        return response

    fake.answers["ListOffsets"] = offsets

    assert [row[:2] for row in unread(take_offsets())] == [(50, 60)]
    assert [request.isolation_level for request in fake.requests("Fetch")] == [1, 1, 0]


def test_a_record_that_came_after_the_end_was_read_does_not_count(fake, take_offsets):
    serve(fake, (99, batch(99, attributes=CONTROL)), (100, records([100])))
    commits(fake, g={("t", 0): 99})

    assert unread(take_offsets()) == [(99, None, None, None, None)]


def test_one_row_for_each_position_and_one_request_for_positions_close_together(fake, take_offsets):
    serve(fake, (59, records(range(50, 60), timestamps=list(range(10)))), (99, records(range(60, 100))))
    commits(fake, a={("t", 0): 50}, b={("t", 0): 52}, c={("t", 0): 50}, d={("t", 0): 60}, e={("t", 0): 100})

    assert [row[:3] for row in unread(take_offsets())] == [(50, 50, 0), (52, 52, 2), (60, 60, 1700000000000)]
    assert fake.asked("Fetch") == {1: 1}


def test_a_group_that_lost_records_reads_on_at_the_log_start(fake, take_offsets):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 40})

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for partition, asked in zip(response.topics[0].partitions, request.topics[0].partitions, strict=True):
            partition.offset = 70 if asked.timestamp == -2 else 100
        return response

    fake.answers["ListOffsets"] = offsets

    assert [row[:2] for row in unread(take_offsets())] == [(70, 70)]


def test_what_cannot_be_read_has_its_reason_and_no_time_and_spoils_nothing_else(fake, take_offsets):
    good = records([50, 51], codec=1, value=b"x" * 200)
    damaged = bytearray(good)
    damaged[-1] ^= 1
    unknown_codec = records([50], attributes=7)
    found = {
        "corrupt": bytes(damaged),
        "denied": TOPIC_DENIED,
        "garbage": b"x" * 70,
        "gone": OFFSET_OUT_OF_RANGE,
        "good": good,
        "none": b"",
        "old": b"\0" * 16 + b"\1" + b"\0" * 20,
        "older": records([10]),
        "unknown": unknown_codec,
    }
    for name in found:
        fake.add_topic(name, [1])
    commits(fake, g={(name, 0): 50 for name in found})
    # As a broker keeps KIP-74: only the first partition with a batch is sure to be served.
    fake.answers["Fetch"] = lambda _, request: records_of(request, lambda topic, _: found[topic])
    result = take_offsets()
    errors = {row["topic"]: row["error"] for row in rows(result, "first_unread")}

    assert errors == {
        "corrupt": "CORRUPT_MESSAGE",
        "denied": "TOPIC_AUTHORIZATION_FAILED",
        "garbage": "INVALID_RESPONSE",
        "gone": "OFFSET_OUT_OF_RANGE",
        "good": None,
        "none": "NO_BATCH",
        "old": "OLD_FORMAT",
        "older": "INVALID_RESPONSE",
        "unknown": "UNSUPPORTED_COMPRESSION_TYPE",
    }
    assert {row["timestamp_ms"] for row in rows(result, "first_unread") if row["error"]} == {None}
    assert {(topic, error) for _, topic, _, _, error in failed(result, "first_unread")} == {pair for pair in errors.items() if pair[1]}


def test_a_codec_that_is_not_installed_is_a_reason_and_not_a_guess(fake, take_offsets, monkeypatch):
    serve(fake, (59, records(range(50, 60), codec=3, value=b"x" * 100)))
    commits(fake, g={("t", 0): 55})
    monkeypatch.setitem(sys.modules, "lz4.frame", None)

    assert unread(take_offsets()) == [(55, None, None, None, "UNSUPPORTED_COMPRESSION_TYPE")]


def test_what_lies_behind_a_record_of_eighty_megabytes_has_its_own_reason_and_that_record_has_its_time(fake, take_offsets):
    big = records([50, 51], timestamps=[7000, 8000], codec=4, value=bytes(80 * 1024 * 1024))
    serve(fake, (51, big), (99, records([60], last=99, timestamps=[9000])))
    commits(fake, a={("t", 0): 50}, b={("t", 0): 51}, c={("t", 0): 60})
    result = take_offsets()

    assert unread(result) == [
        (50, 50, 7000, "CreateTime", None),
        (51, None, None, None, "RECORD_BATCH_TOO_LARGE"),
        (60, 60, 9000, "CreateTime", None),
    ]
    assert [(topic, error) for _, topic, _, _, error in failed(result, "first_unread")] == [("t", "RECORD_BATCH_TOO_LARGE")]


def test_whoever_writes_to_a_topic_uses_up_the_time_of_that_topic_only(fake, take_offsets, monkeypatch):
    for topic, partitions in (("a", 8), ("b", 1)):
        fake.add_topic(topic, [1] * partitions)
    fake.answers["Fetch"] = lambda _, request: records_of(request, lambda *_: records([50, 51], codec=4, value=b"x" * 1000))
    commits(fake, g={("a", index): 50 for index in range(8)} | {("b", 0): 50})
    seconds = iter(range(10**9))
    monkeypatch.setattr(first_records, "monotonic", lambda: next(seconds) / 3)
    found = {(row["topic"], row["partition"]): row["error"] for row in rows(take_offsets(), "first_unread")}

    assert (found["a", 0], found["a", 7], found["b", 0]) == (None, "DEADLINE_EXCEEDED", None)


def test_a_batch_without_compression_costs_no_allowance(fake, take_offsets, monkeypatch):
    serve(fake, (51, records([50, 51], timestamps=[7000, 8000])))
    commits(fake, g={("t", 0): 51})
    hours = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(first_records, "monotonic", lambda: float(next(hours)))

    assert unread(take_offsets()) == [(51, 51, 8000, "CreateTime", None)]


def test_looking_into_batches_takes_a_quarter_of_the_time_at_most(fake, take_offsets, monkeypatch):
    serve(fake, (51, records([50, 51], codec=4, value=b"x" * 1000)))
    commits(fake, g={("t", 0): 50})
    hours = iter(range(0, 10**9, 3600))
    monkeypatch.setattr(first_records, "monotonic", lambda: float(next(hours)))

    assert unread(take_offsets()) == [(50, None, None, None, "DEADLINE_EXCEEDED")]


def test_a_log_of_nothing_but_the_ends_of_transactions_is_not_followed_for_ever(fake, take_offsets, monkeypatch):
    monkeypatch.setattr(first_records, "MOST_ANSWERS", 5)
    serve(fake, *((number, batch(number, attributes=CONTROL)) for number in range(50, 100)), at_most=1)
    commits(fake, g={("t", 0): 50})

    assert unread(take_offsets()) == [(50, None, None, None, "DEADLINE_EXCEEDED")]
    assert fake.asked("Fetch") == {1: 5}


def test_a_broker_is_asked_for_one_answer_at_a_time(fake, take_offsets, monkeypatch):
    monkeypatch.setattr("kafka_audit.cluster.fetching._RESPONSE_BYTES", 32 * 1024)  # two partitions to a request
    monkeypatch.setattr("kafka_audit.cluster.fetching._STEPS", ((64 * 1024, 16 * 1024),))
    fake.add_topic("t", [1] * 5)
    commits(fake, g={("t", index): 50 for index in range(5)})
    events = []

    def answer(_, request):
        events.append("asked")
        return records_of(request, lambda *_: records([50]))

    fake.answers["Fetch"] = answer
    settle = first_records._take
    monkeypatch.setattr(first_records, "_take", lambda *given: (events.append("read"), settle(*given))[1])
    take_offsets()

    assert events == ["asked", "read", "read", "asked", "read", "read", "asked", "read"]


def test_bytes_that_a_codec_chokes_on_are_a_reason(fake, take_offsets):
    serve(fake, (59, records([50, 59], attributes=1)))
    commits(fake, g={("t", 0): 55})

    assert unread(take_offsets()) == [(55, None, None, None, "CORRUPT_MESSAGE")]


def test_batches_larger_than_the_first_step_are_asked_for_again(fake, take_offsets):
    sizes = {0: 1_000, 1: 500_000, 2: 5_000_000}
    fake.add_topic("t", [1] * 3)
    commits(fake, a={("t", 0): 50}, b={("t", 1): 50}, c={("t", 2): 50})
    fake.answers["OffsetFetch"] = _all_partitions

    def limited(_, request):
        first = True

        def answer(_, partition):
            nonlocal first
            data = records([50], value=b"x" * sizes[partition.partition])
            fits = first or len(data) <= partition.partition_max_bytes
            first = False
            return data if fits else b""

        return records_of(request, answer)

    fake.answers["Fetch"] = limited

    assert [(row["partition"], row["record_offset"]) for row in rows(take_offsets(), "first_unread")] == [(0, 50), (1, 50), (2, 50)]
    assert fake.asked("Fetch") == {1: 3}


def _all_partitions(_, request):
    from fake_answers import fetched
    from kafka.protocol.consumer.group import OffsetFetchResponse

    by_group = {"a": 0, "b": 1, "c": 2}
    groups = [fetched(g.group_id, {("t", by_group[g.group_id]): 50}) for g in request.groups]
    return OffsetFetchResponse(throttle_time_ms=0, groups=groups)


def test_internal_topics_are_not_read(fake, take_offsets):
    fake.add_topic("__consumer_offsets", [1])
    commits(fake, g={("__consumer_offsets", 0): 50})

    assert unread(take_offsets()) == []
    assert not fake.asked("Fetch")


def test_the_whole_snapshot_has_them_too(fake, take):
    serve(fake, (99, records([50, 99], timestamps=[5, 6])))
    commits(fake, g={("t", 0): 50})

    assert unread(take()) == [(50, 50, 5, "CreateTime", None)]


def test_an_old_batch_after_the_one_that_was_wanted_does_no_harm(fake, take_offsets):
    old = b"\0" * 8 + (20).to_bytes(4, "big") + b"\0" * 4 + b"\1" + b"\0" * 15
    serve(fake, (59, records([58, 59], timestamps=[5000, 6000]) + old))
    commits(fake, g={("t", 0): 58})

    assert unread(take_offsets()) == [(58, 58, 5000, "CreateTime", None)]
