"""The gate and the collectors agree on the datasets of a snapshot."""

import subprocess
import sys

import pyarrow as pa
import pytest

from expectations.snapshot_files import schema_problem
from kafka_audit.collect.datasets import DATASETS, is_known


def test_a_snapshot_has_these_datasets():
    assert sorted(DATASETS) == [
        "acls",
        "broker_configs",
        "brokers",
        "capabilities",
        "client_quotas",
        "cluster",
        "committed_offsets",
        "controller_configs",
        "errors",
        "first_unread",
        "group_configs",
        "groups",
        "last_batches",
        "log_dirs",
        "members",
        "offsets",
        "partitions",
        "producers",
        "quorum",
        "reassignments",
        "replica_sizes",
        "sla_offsets",
        "tiered_offsets",
        "topic_configs",
        "topics",
        "transactions",
    ]


@pytest.mark.parametrize("name", DATASETS)
def test_the_key_of_a_dataset_is_made_of_its_columns(name):
    assert set(DATASETS[name].key) <= set(DATASETS[name].schema.names)
    assert set(DATASETS[name].nullable) < {*DATASETS[name].key, "-"}


def test_a_schema_problem_names_every_column():
    expected = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.string())])
    found = pa.schema([("a", pa.int64()), ("c", pa.string()), ("d", pa.string())])
    assert schema_problem(found, expected) == "column a is int64 where int32 is expected; column b is missing"
    assert schema_problem(expected, expected) == "ok"


def test_the_gate_and_the_schemas_that_it_checks_load_nothing_heavy():
    code = (
        "import sys, expectations.gate\n"
        "from kafka_audit.collect.datasets import DATASETS\n"
        "assert all(dataset.schema for dataset in DATASETS.values())\n"
        "print(*({'great_expectations', 'pyspark', 'airflow', 'kafka'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_an_error_names_a_dataset_or_a_column_of_one():
    assert is_known("offsets") and is_known("offsets.headroom_offset")
    assert not any(map(is_known, ("", ".", "offsets.", "offsets.nothing", "nothing", "nothing.offset", "offsets.error.error")))
