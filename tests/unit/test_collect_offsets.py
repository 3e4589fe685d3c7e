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
