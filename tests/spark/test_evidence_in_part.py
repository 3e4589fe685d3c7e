"""What was read counts, although something else of the same thing could not be read; and what was read in part is not taken as whole."""

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

STORAGE_ERROR = "KAFKA_STORAGE_ERROR"


def test_a_column_of_offsets_that_could_not_be_read_takes_nothing_from_its_row(rows_of):
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("t").offsets("t", log_start=60, log_end=100, last_stable=100)
    cluster.group("g", assigned=[("t", 0)]).commit("g", "t", 40)
    for column in ("max_timestamp_ms", "headroom_offset", "last_stable"):
        cluster.error(f"offsets.{column}", STORAGE_ERROR, topic="t", partition=0, broker_id=1)
    group, topic, partition = (rows_of(cluster, subject) for subject in ("group_partition", "topic", "partition"))

    assert (group["g:t-0"]["lost"], group["g:t-0"]["lag"]) == (20, 40)
    for row in (group["g:t-0"], topic["t"], partition["t-0"]):
        assert "offsets" not in row["errors"]
    assert STORAGE_ERROR in group["g:t-0"]["errors"]["offsets.headroom_offset"]
    assert STORAGE_ERROR in partition["t-0"]["errors"]["offsets.last_stable"]
    assert topic["t"]["errors"]["offsets.max_timestamp_ms"].startswith("on 1 of its partitions, first 0: KAFKA_STORAGE_ERROR")
    assert topic["t"]["undecided_write_partitions"] == 1


def test_a_topic_tells_that_the_size_of_one_of_its_partitions_is_not_known(rows_of):
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"}).topic("t", replicas=[1], config={"retention.bytes": "1000"})
    cluster.add("partitions", topic="t", partition=1, leader=2, leader_epoch=0, replicas=[2], isr=[2], offline_replicas=[])
    cluster.error("replica_sizes", "CLUSTER_AUTHORIZATION_FAILED", broker_id=2)
    row = rows_of(cluster, "topic")["t"]

    assert row["size_bytes_max"] == 1000
    assert row["errors"]["replica_sizes"].startswith("on 1 of its partitions, first 1: CLUSTER_AUTHORIZATION_FAILED")
