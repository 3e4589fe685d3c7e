"""What a broker hosts: partitions that it leads or should lead, replicas on its disks that nothing asks for, moves between log dirs."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing

_APART_MS = 600_000  # what a broker deletes or moves may take minutes: an earlier snapshot tells more the older it is
_REPLICA = ["broker_id", "path", "topic", "partition", "is_future"]
_LISTED = 20


def with_leaderships(brokers: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds led_partitions, preferred_partitions and preferred_led_elsewhere; NULL when partitions could not be read."""
    partitions = evidence.table("partitions").select("leader", "isr", F.get("replicas", F.lit(0)).alias("preferred"))
    elsewhere = (F.col("leader") >= 0) & (F.col("leader") != F.col("preferred")) & F.array_contains("isr", F.col("preferred"))
    led = partitions.groupBy(F.col("leader").alias("broker_id")).agg(F.count("*").alias("led_partitions"))
    preferred = partitions.groupBy(F.col("preferred").alias("broker_id")).agg(
        F.count("*").alias("preferred_partitions"), F.count_if(elsewhere).alias("preferred_led_elsewhere")
    )
    rows = brokers.join(led, on="broker_id", how="left").join(preferred, on="broker_id", how="left")
    known = F.lit(not missing.failed(evidence, "partitions"))
    counts = ("led_partitions", "preferred_partitions", "preferred_led_elsewhere")
    return rows.withColumns({name: F.when(known, F.coalesce(name, F.lit(0))).cast("int") for name in counts})


def with_odd_replicas(brokers: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds stray_replicas to uncompared_moves (kafka_audit.catalogue.rows); NULL when the broker's log dirs could not be read.

    Compared with the newest earlier snapshot that is at least ten minutes older. Needs log_dirs.
    """
    rows = _compared(_odd(evidence.table("replica_sizes"), evidence.table("partitions")), evidence)
    moving, stray, lag = F.col("is_future"), ~F.col("is_future"), F.col("offset_lag")
    name = F.concat("topic", F.lit("-"), F.col("partition").cast("string"))
    place = F.concat(name, F.lit(" in "), "path")
    lags = F.concat(F.lit(": "), lag.cast("string"), F.lit(" offsets behind, then "), F.col("lag_then").cast("string"))
    stuck = moving & (F.col("lag_then") >= 0) & (lag >= F.col("lag_then"))
    untold = (lag < 0) | (F.col("was_there") & (F.col("lag_then") < 0))
    found = rows.groupBy("broker_id").agg(
        _texts(stray, place).alias("stray_replicas"),
        _texts(stray & F.col("was_there"), place).alias("lasting_stray_replicas"),
        F.count_if(moving).cast("int").alias("moving_replicas"),
        _texts(stuck, F.concat(place, lags)).alias("stuck_moves"),
        F.count_if(moving & (~F.col("was_read") | untold)).cast("int").alias("uncompared_moves"),
    )
    known = F.lit(not missing.failed(evidence, "partitions")) & F.col("log_dirs").isNotNull()
    none = F.array().cast("array<string>")
    lists = ("stray_replicas", "lasting_stray_replicas", "stuck_moves")
    counts = ("moving_replicas", "uncompared_moves")
    return brokers.join(found, on="broker_id", how="left").withColumns(
        {
            **{column: F.when(known, F.coalesce(column, none)) for column in lists},
            **{column: F.when(known, F.coalesce(column, F.lit(0))) for column in counts},
        }
    )


def _texts(wanted: Column, text: Column) -> Column:
    return F.slice(F.array_sort(F.collect_list(F.when(wanted, text))), 1, _LISTED)


def _odd(replicas: DataFrame, partitions: DataFrame) -> DataFrame:
    """Replicas on disk that the assignment of their partition does not name, and those that are being moved to another log dir.

    A partition that metadata does not list may be hidden from the auditor: its replicas are passed over.
    """
    assigned = partitions.select("topic", "partition", "replicas")
    listed = replicas.join(assigned, on=["topic", "partition"], how="inner")
    odd = F.col("is_future") | ~F.array_contains("replicas", F.col("broker_id"))
    return listed.where(odd).select(*_REPLICA, "offset_lag")


def _compared(odd: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds was_read boolean (the broker told its log dirs then), was_there boolean, and lag_then, the offset lag then."""
    apart = (one for one in reversed(evidence.history.snapshots) if one.taken_ms <= evidence.taken_ms - _APART_MS)
    then = next(apart, None)
    if then is None:
        no = F.lit(False)
        return odd.withColumns({"was_read": no, "was_there": no, "lag_then": F.lit(None).cast("bigint")})
    replicas, partitions, dirs = (evidence.tables.read_whole(then.dataset(name)) for name in ("replica_sizes", "partitions", "log_dirs"))
    before = _odd(replicas, partitions).withColumnRenamed("offset_lag", "lag_then").withColumn("there", F.lit(True))
    read = dirs.where(F.col("path").isNotNull()).select("broker_id", F.lit(True).alias("read")).distinct()
    rows = odd.join(before, on=_REPLICA, how="left").join(read, on="broker_id", how="left")
    flags = {"was_there": F.coalesce("there", F.lit(False)), "was_read": F.coalesce("read", F.lit(False))}
    return rows.withColumns(flags).drop("there", "read")
