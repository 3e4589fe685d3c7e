"""A reading of offsets that fails costs the columns that it is for, and no others."""

import pytest
from snapshot_taking import commits, failed, fake_cluster, rows, snapshot_taker  # noqa: F401  (fixtures)

LONGEST_MS = 2**63 - 1
UNSUPPORTED_VERSION, STORAGE_ERROR = 35, 56


def refuse_offsets(fake, code, refused):
    """Brokers answer ListOffsets with an error for the times, and the isolation level, of which ``refused`` is true."""

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for topic, asked in zip(response.topics, request.topics, strict=True):
            for partition, wanted in zip(topic.partitions, asked.partitions, strict=True):
                if refused(wanted.timestamp, request.isolation_level):
                    partition.error_code, partition.offset = code, -1
        return response

    fake.answers["ListOffsets"] = offsets


def keep_for(fake, retention_ms):
    def configs(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            result.configs[0].name, result.configs[0].value = "retention.ms", str(retention_ms)
        return response

    fake.answers["DescribeConfigs"] = configs


def test_the_longest_retention_asks_for_no_negative_time(fake, take):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 5})
    keep_for(fake, LONGEST_MS)
    refuse_offsets(fake, UNSUPPORTED_VERSION, lambda at, _: at < -3)  # as brokers do with times that stand for nothing
    result = take()
    (row,) = rows(result, "offsets")

    assert (row["log_start"], row["log_end"], row["headroom_timestamp_ms"], row["error"]) == (0, 100, 0, None)
    assert failed(result, "offsets") == []


@pytest.mark.parametrize(
    ("column", "refused"),
    [
        ("max_timestamp_ms", lambda at, _: at == -3),
        ("headroom_offset", lambda at, _: at >= 0),
        ("last_stable", lambda at, isolation: at == -1 and isolation == 1),
    ],
)
def test_a_failure_beside_start_and_end_is_an_error_of_its_own_column(column, refused, fake, take):
    fake.add_topic("t", [1])
    commits(fake, g={("t", 0): 5})
    keep_for(fake, 400_000)
    refuse_offsets(fake, STORAGE_ERROR, refused)
    result = take()
    (row,) = rows(result, "offsets")

    assert (row["log_start"], row["log_end"], row[column], row["error"]) == (0, 100, None, None)
    assert failed(result, "offsets") == []
    assert failed(result, f"offsets.{column}") == [(1, "t", 0, None, "KAFKA_STORAGE_ERROR")]


@pytest.mark.parametrize("refused", [lambda at, _: at == -2, lambda at, isolation: at == -1 and isolation == 0], ids=["start", "end"])
def test_a_start_or_end_that_cannot_be_read_is_an_error_of_the_row(refused, fake, take):
    fake.add_topic("t", [1])
    refuse_offsets(fake, STORAGE_ERROR, refused)
    result = take()

    assert rows(result, "offsets")[0]["error"] == "KAFKA_STORAGE_ERROR"
    assert failed(result, "offsets") == [(1, "t", 0, None, "KAFKA_STORAGE_ERROR")]


HOUR_MS = 3_600_000


def tier(fake, **settings):
    """Every topic is tiered, with these settings."""

    def configs(broker_id, request):
        response = fake._DescribeConfigs(broker_id, request)
        for result in response.results:
            (one,) = result.configs
            pairs = {"remote.storage.enable": "true", **settings}
            result.configs = [type(one)(**{**one.to_dict(), "name": name, "value": value}) for name, value in pairs.items()]
        return response

    fake.answers["DescribeConfigs"] = configs


def answer_offsets(fake, newest_ms, **by_time):
    """Offsets by the special time that is asked for; a time in milliseconds gets ``due``."""
    asked = []

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for topic, wanted in zip(response.topics, request.topics, strict=True):
            for partition, one in zip(topic.partitions, wanted.partitions, strict=True):
                asked.append(one.timestamp)
                if one.timestamp == -3:
                    partition.timestamp, partition.offset = newest_ms, 99
                elif one.timestamp in (-4, -5) or one.timestamp >= 0:
                    partition.offset = by_time[{-4: "local", -5: "tiered"}.get(one.timestamp, "due")]
        return response

    fake.answers["ListOffsets"] = offsets
    return asked


def test_tiered_partitions_are_asked_how_far_they_are_uploaded_and_since_when_they_had_to_be(fake, take):
    fake.add_topic("t", [1])
    newest = 1_000_000_000_000
    tier(fake, **{"segment.ms": str(HOUR_MS), "local.retention.ms": "-2", "retention.ms": str(2 * HOUR_MS)})
    asked = answer_offsets(fake, newest, local=40, tiered=59, due=70)
    (row,) = rows(take(), "tiered_offsets")

    assert (row["local_start"], row["latest_tiered"], row["due_offset"], row["error"]) == (40, 59, 70, None)
    assert row["due_timestamp_ms"] == newest - HOUR_MS, "older than the segment that is open at the newest record"
    assert {-4, -5, newest - HOUR_MS} <= set(asked)


def test_a_log_that_is_kept_locally_for_ever_has_no_time_at_which_its_upload_is_due(fake, take):
    fake.add_topic("t", [1])
    tier(fake, **{"segment.ms": str(HOUR_MS), "local.retention.ms": "-1"})
    answer_offsets(fake, 1_000_000_000_000, local=0, tiered=-1)
    (row,) = rows(take(), "tiered_offsets")
    assert (row["latest_tiered"], row["due_timestamp_ms"], row["due_offset"]) == (-1, None, None)


def test_nothing_is_due_of_an_empty_log(fake, take):
    fake.add_topic("t", [1])
    tier(fake, **{"segment.ms": str(HOUR_MS), "local.retention.ms": str(HOUR_MS)})

    def offsets(broker_id, request):
        response = fake._ListOffsets(broker_id, request)
        for partition, one in (
            (p, one)
            for t, wanted in zip(response.topics, request.topics, strict=True)
            for p, one in zip(t.partitions, wanted.partitions, strict=True)
        ):
            partition.offset = -1 if one.timestamp in (-3, -5) else 0
        return response

    fake.answers["ListOffsets"] = offsets
    (row,) = rows(take(), "tiered_offsets")
    assert (row["latest_tiered"], row["due_timestamp_ms"], row["due_offset"]) == (-1, None, 0)


def test_nobody_is_asked_about_topics_that_are_not_tiered(fake, take):
    fake.add_topic("t", [1])
    keep_for(fake, HOUR_MS)
    assert (rows(result := take(), "tiered_offsets"), failed(result, "tiered_offsets")) == ([], [])


def test_brokers_that_do_not_know_the_last_tiered_offset_are_an_error(fake, take):
    fake.add_topic("t", [1])
    tier(fake)
    fake.max_versions = {"ListOffsets": 8}
    assert failed(take(), "tiered_offsets") == [(None, None, None, None, "UNSUPPORTED_VERSION")]
