"""Arrow tables are built as pyarrow would build them, without pandas."""

import subprocess
import sys
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from kafka_audit.collect.datasets import BROKER_IDS, READ_AT, SYNONYMS
from kafka_audit.collect.tables import column_of, table

MOMENT = datetime(2026, 11, 20, 23, 15, 1, 250, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int16(), [1, None, -3]),
        (pa.int32(), [2**31 - 1, -(2**31)]),
        (pa.int64(), [None, 2**63 - 1]),
        (pa.bool_(), [True, False, None] * 5),
        (pa.string(), ["a", None, "", "ünïcode \u202e=cmd|' /C calc'!A0\n"]),
        (READ_AT, [MOMENT, None, MOMENT]),
        (BROKER_IDS, [(1, 2), None, ()]),
        (SYNONYMS, [[{"name": "n", "value": None, "source": "s"}], [], None]),
        (pa.string(), []),
        (SYNONYMS, []),
    ],
)
def test_a_column_holds_what_pyarrow_itself_would_build(kind, values):
    built = column_of(values, kind)

    built.validate(full=True)
    assert built.equals(pa.array(values, type=kind))


def test_a_value_that_does_not_fit_its_column_is_an_error():
    with pytest.raises(OverflowError):
        column_of([2**31], pa.int32())
    with pytest.raises(TypeError):
        column_of(["text"], pa.int32())


def test_rows_become_a_table_with_the_schema_also_when_there_are_none():
    schema = pa.schema([("topic", pa.string()), ("replicas", BROKER_IDS)])

    assert table(schema, []).num_rows == 0
    assert table(schema, [("t", (1,))]).to_pylist() == [{"topic": "t", "replicas": [1]}]


def test_taking_a_snapshot_imports_neither_pandas_nor_airflow_nor_yaml():
    code = (
        "import sys, pyarrow as pa\n"
        "import kafka_audit.collect.snapshot\n"
        "from kafka_audit.collect.tables import table\n"
        "import pyarrow.parquet as pq, io\n"
        "pq.write_table(table(pa.schema([('a', pa.int32())]), [(1,)]), io.BytesIO())\n"
        "print(sorted({'pandas', 'airflow', 'yaml', 'pyspark', 'great_expectations'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
