"""Every record type of the coordinators' topics, and the expression that takes a raw row of any type apart field by field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.offsets_topic import layouts
from spark_jobs.offsets_topic.integers import signed
from spark_jobs.offsets_topic.layout import INT32, STRING, Field, Struct, Type, ddl
from spark_jobs.offsets_topic.program import Program
from spark_jobs.offsets_topic.reader import read


@dataclass(frozen=True, kw_only=True)
class Record:
    """One record type: the int16 that its keys begin with, Kafka's name for it in snake case, and its layouts."""

    type: int
    name: str
    value: Struct
    key: tuple[str, ...] = ("group_id",)
    last_version: int = 0
    flexible_from: int = 0


_MEMBER = ("group_id", "member_id")
_OFFSET = ("group_id", "topic", "partition")

RECORDS = (
    Record(type=0, name="legacy_offset_commit", value=layouts.OFFSET_COMMIT, key=_OFFSET, last_version=4, flexible_from=4),
    Record(type=1, name="offset_commit", value=layouts.OFFSET_COMMIT, key=_OFFSET, last_version=4, flexible_from=4),
    Record(type=2, name="group_metadata", value=layouts.GROUP_METADATA, last_version=4, flexible_from=4),
    Record(type=3, name="consumer_group_metadata", value=layouts.CONSUMER_GROUP_METADATA),
    Record(type=4, name="consumer_group_partition_metadata", value=layouts.CONSUMER_GROUP_PARTITION_METADATA),
    Record(type=5, name="consumer_group_member_metadata", value=layouts.CONSUMER_GROUP_MEMBER_METADATA, key=_MEMBER),
    Record(type=6, name="consumer_group_target_assignment_metadata", value=layouts.TARGET_ASSIGNMENT_METADATA),
    Record(type=7, name="consumer_group_target_assignment_member", value=layouts.TARGET_ASSIGNMENT_MEMBER, key=_MEMBER),
    Record(type=8, name="consumer_group_current_member_assignment", value=layouts.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, key=_MEMBER),
    Record(type=10, name="share_group_member_metadata", value=layouts.SHARE_GROUP_MEMBER_METADATA, key=_MEMBER),
    Record(type=11, name="share_group_metadata", value=layouts.SHARE_GROUP_METADATA),
    Record(type=12, name="share_group_target_assignment_metadata", value=layouts.TARGET_ASSIGNMENT_METADATA),
    Record(type=13, name="share_group_target_assignment_member", value=layouts.TARGET_ASSIGNMENT_MEMBER, key=_MEMBER),
    Record(type=14, name="share_group_current_member_assignment", value=layouts.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, key=_MEMBER),
    Record(type=15, name="share_group_state_partition_metadata", value=layouts.SHARE_GROUP_STATE_PARTITION_METADATA),
    Record(
        type=16,
        name="consumer_group_regular_expression",
        value=layouts.CONSUMER_GROUP_REGULAR_EXPRESSION,
        key=("group_id", "regular_expression"),
    ),
    Record(type=17, name="streams_group_metadata", value=layouts.STREAMS_GROUP_METADATA),
    Record(type=19, name="streams_group_member_metadata", value=layouts.STREAMS_GROUP_MEMBER_METADATA, key=_MEMBER),
    Record(type=20, name="streams_group_target_assignment_metadata", value=layouts.TARGET_ASSIGNMENT_METADATA),
    Record(type=21, name="streams_group_target_assignment_member", value=layouts.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, key=_MEMBER),
    Record(type=22, name="streams_group_current_member_assignment", value=layouts.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, key=_MEMBER),
    Record(type=23, name="streams_group_topology", value=layouts.STREAMS_GROUP_TOPOLOGY),
)
"""Of ``__consumer_offsets``."""

COMMIT_TYPES = (0, 1)
GROUP_RECORDS = tuple(record for record in RECORDS if record.type not in COMMIT_TYPES)

TRANSACTION_RECORDS = (
    Record(type=0, name="transaction", value=layouts.TRANSACTION, key=("transactional_id",), last_version=1, flexible_from=1),
)
"""Of ``__transaction_state``."""

KEY_FIELDS: Mapping[str, Type] = {
    "group_id": STRING,
    "member_id": STRING,
    "regular_expression": STRING,
    "topic": STRING,
    "partition": INT32,
    "transactional_id": STRING,
}

RAW_DDL = "partition int, offset bigint, timestamp timestamp, key binary, value binary"
_CONSUMER = "substring(value, 3, 10) = X'0008636F6E73756D6572' or substring(value, 3, 9) = X'09636F6E73756D6572'"


def taken_apart(raw: DataFrame, records: Sequence[Record] = RECORDS) -> DataFrame:
    """Raw rows (RAW_DDL) of a topic that holds ``records`` -> tables.PLACE, record_name, version, tombstone, their KEY_FIELDS, a
    nullable struct for each record name, ``problem`` (why a row could not be decoded, else NULL), key and value.
    """
    key_fields = {name: kind for name, kind in KEY_FIELDS.items() if any(name in record.key for record in records)}
    typed = raw.selectExpr(
        *("partition as log_partition", "offset as log_offset", "timestamp as append_time", "key", "value"),
        f"if(length(key) >= 2, cast({signed('key', 1, 2)} as smallint), null) as record_type",
        f"if(length(value) >= 2, cast({signed('value', 1, 2)} as smallint), null) as version",
    )
    walked = typed.withColumn("_key", F.expr(read("key", _key_program(records))))
    walked = walked.withColumn("_value", F.expr(read("value", _value_program(records))))
    judged = walked.withColumn("problem", F.expr(_problem(records)))
    whole_key = Struct(tuple(Field(name=name, type=kind) for name, kind in key_fields.items()))
    parsed = judged.withColumn("_key", F.expr(f"if(problem is null, from_json(array_join(_key.out, ''), '{ddl(whole_key)}'), null)"))
    return parsed.select(
        *("log_partition", "log_offset", "append_time", "record_type"),
        F.expr(_case({record.type: f"'{record.name}'" for record in records})).alias("record_name"),
        "version",
        F.col("value").isNull().alias("tombstone"),
        *[F.col(f"_key.{name}") for name in key_fields],
        *[_value(record).alias(record.name) for record in records],
        *("problem", "key", "value"),
    )


def _case(by_type: dict[int, str]) -> str:
    return f"case record_type {' '.join(f'when {kind} then {sql}' for kind, sql in by_type.items())} end"


def _key_program(records: Sequence[Record]) -> str:
    layouts_ = {record.type: Struct(tuple(Field(name=name, type=KEY_FIELDS[name]) for name in record.key)) for record in records}
    return _case({kind: Program(layout, version=0, flexible=False).sql() for kind, layout in layouts_.items()})


def _value_program(records: Sequence[Record]) -> str:
    def program(record: Record, version: int, *, embedded: bool = True) -> str:
        return Program(record.value, version=version, flexible=version >= record.flexible_from, embedded=embedded).sql()

    def versions(record: Record) -> str:
        cases = []
        for version in range(record.last_version + 1):
            sql = program(record, version)
            if record.name == "group_metadata":  # members of other protocols (Kafka Connect, Schema Registry) hold other messages
                sql = f"if({_CONSUMER}, {sql}, {program(record, version, embedded=False)})"
            cases.append(f"when {version} then {sql}")
        return f"case version {' '.join(cases)} end"

    return _case({record.type: versions(record) for record in records})


def _value(record: Record) -> Column:
    sound = (F.col("record_type") == record.type) & F.col("problem").isNull() & F.col("value").isNotNull()
    return F.when(sound, F.expr(f"from_json(array_join(_value.out, ''), '{ddl(record.value)}')"))


def _problem(records: Sequence[Record]) -> str:
    """SQL of why a row is not decoded; the order is that of reading it."""
    last_version = _case({record.type: str(record.last_version) for record in records})
    known = ", ".join(str(record.type) for record in records)
    return f"""case
        when key is null then 'the record has no key'
        when record_type is null then 'the key is shorter than a record type'
        when record_type not in ({known}) then 'unknown record type'
        when _key.pos is null or _key.ip is not null then 'the key is truncated or damaged'
        when _key.pos <> length(key) + 1 then 'bytes are left over after the key'
        when value is null then null
        when version is null then 'the value is shorter than a version'
        when version not between 0 and {last_version} then 'unknown version of the value'
        when _value.pos is null or _value.ip is not null then 'the value is truncated or damaged'
        when _value.pos <> length(value) + 1 then 'bytes are left over after the value' end"""
