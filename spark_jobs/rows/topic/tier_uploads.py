"""How far tiered topics are uploaded to the remote store (KIP-405)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.positions import not_tiered
from spark_jobs.rows import missing

_COLUMNS = {"upload_lag": "bigint", "upload_overdue": "bigint", "upload_overdue_partition": "int", "upload_unread": "string"}


def with_tier_uploads(topics: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds upload_lag, upload_overdue and upload_overdue_partition (kafka_audit.catalogue.rows), and to ``errors`` what was not read."""
    if not evidence.rows("tiered_offsets"):
        return topics.withColumns({name: F.lit(None).cast(kind) for name, kind in _COLUMNS.items()}).drop("upload_unread")
    ends = evidence.table("offsets").select("topic", "partition", "log_start", "log_end")
    rows = evidence.table("tiered_offsets").join(ends, on=["topic", "partition"], how="left")
    rows = rows.withColumns({"lag": not_tiered(F.col("log_end")), "overdue": not_tiered(F.col("due_offset"))})
    whole = F.count_if(F.col("overdue").isNull()) == 0
    found = rows.groupBy("topic").agg(
        F.when(F.count_if(F.col("lag").isNull()) == 0, F.sum("lag")).alias("upload_lag"),
        F.when(whole | (F.sum("overdue") > 0), F.sum("overdue")).alias("upload_overdue"),
        F.max(F.when(F.col("overdue") > 0, F.struct("overdue", "partition")))["partition"].alias("upload_overdue_partition"),
        missing.of_its_partitions(F.col("error"), F.col("partition")).alias("upload_unread"),
    )
    errors = missing.joined(missing.extra(tiered_offsets=F.col("upload_unread")), F.col("errors"))
    return topics.join(found, on="topic", how="left").withColumn("errors", errors).drop("upload_unread")
