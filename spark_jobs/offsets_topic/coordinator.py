"""Which partition of the offsets topic a group belongs to, as Kafka computes it: Utils.abs(groupId.hashCode()) % partitions."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Java hashes UTF-16 code units; a sequence from 0 to -1 would run backwards, hence the case of its own.
_UNITS = "hex(encode(group_id, 'UTF-16BE'))"
_HASH = f"""case when group_id = '' then 0L else aggregate(sequence(0, cast(length({_UNITS}) / 4 as int) - 1), 0L,
    (h, i) -> (h * 31 + cast(conv(substring({_UNITS}, i * 4 + 1, 4), 16, 10) as bigint)) & 4294967295L) end"""


def with_home_partition(groups: DataFrame, partitions: int | None) -> DataFrame:
    """Add ``home_partition`` (int) to rows with a ``group_id``. Give it distinct groups: it walks each id character by character.

    ``partitions`` is the topic's actual partition count; NULL where it is not known. Kafka's Utils.abs is 0 for Integer.MIN_VALUE.
    """
    if partitions is None:
        return groups.withColumn("home_partition", F.lit(None).cast("int"))
    hashed = groups.withColumn("_hash", F.expr(_HASH))
    positive = F.expr("case when _hash = 2147483648L then 0L when _hash > 2147483648L then 4294967296L - _hash else _hash end")
    return hashed.withColumn("home_partition", (positive % partitions).cast("int")).drop("_hash")
