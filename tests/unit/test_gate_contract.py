"""The gate and the collectors agree on the datasets of a snapshot."""

import importlib
import pkgutil
import subprocess
import sys

import pyarrow as pa
import pytest

import kafka_audit.collect
from expectations.snapshot_contract import DATASETS, schema_of, schema_problem


def test_the_contract_holds_exactly_the_datasets_that_are_collected():
    modules = [
        importlib.import_module(f"kafka_audit.collect.{module.name}") for module in pkgutil.iter_modules(kafka_audit.collect.__path__)
    ]
    assert sorted(module.NAME for module in modules if hasattr(module, "SCHEMA")) == sorted(DATASETS)


@pytest.mark.parametrize("name", DATASETS)
def test_the_key_of_a_dataset_is_made_of_its_columns(name):
    assert set(DATASETS[name].key) <= set(schema_of(name).names)
    assert set(DATASETS[name].nullable) < {*DATASETS[name].key, "-"}


def test_a_schema_problem_names_every_column():
    expected = pa.schema([("a", pa.int32()), ("b", pa.string()), ("c", pa.string())])
    found = pa.schema([("a", pa.int64()), ("c", pa.string()), ("d", pa.string())])
    assert schema_problem(found, expected) == "column a is int64 where int32 is expected; column b is missing"
    assert schema_problem(expected, expected) == "ok"


def test_importing_the_gate_loads_nothing_heavy():
    code = "import sys, expectations.gate; print(*({'great_expectations', 'pyspark', 'airflow', 'kafka'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
