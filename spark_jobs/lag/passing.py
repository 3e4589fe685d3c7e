"""When the log passed a group's position, as the newest samples saw its end."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.lag.in_steps import in_steps
from spark_jobs.lag.samples import is_newer, newest_of, oldest_of


def passing(samples: Column) -> Column:
    """A struct of times at which the log end was read, in epoch milliseconds, all bigint; between two samples it is taken to grow evenly.

    - log_read_ms: in this snapshot; passed_ms: when the end passed the position
    - seen_unread_ms: in the oldest sample of the newest run whose end is past the position; not_past_ms: in the sample before that run
    - seen_record_ms: in the oldest sample of that run which shows that a record was unread. A single offset may be the end of a transaction

    ``samples``: array by age of structs with age, log_end and read_ms. Needs position, and first_is_record (spark_jobs.lag.positions).
    """
    position = F.col("position")
    no_proof = position + F.when(F.col("first_is_record"), F.lit(0)).otherwise(1)

    def times(it: Column) -> Column:
        older, newer = it["older"], it["newer"]
        share = (position - older["log_end"]) / (newer["log_end"] - older["log_end"])
        found = {
            "log_read_ms": newest_of(samples)["read_ms"],
            "seen_unread_ms": newer["read_ms"],
            "seen_record_ms": oldest_of(F.filter(it["past"], lambda one: one["log_end"] > no_proof))["read_ms"],
            "not_past_ms": older["read_ms"],
            "passed_ms": older["read_ms"] + F.round(share * (newer["read_ms"] - older["read_ms"])).cast("bigint"),
        }
        return F.struct(*[fact.alias(name) for name, fact in found.items()])

    return in_steps(
        lambda _: {"read": F.filter(samples, lambda one: one["log_end"].isNotNull() & one["read_ms"].isNotNull() & position.isNotNull())},
        lambda it: {"older": newest_of(F.filter(it["read"], lambda one: one["log_end"] <= position))},
        lambda it: {"past": F.filter(it["read"], lambda one: (one["log_end"] > position) & is_newer(one, it["older"]))},
        lambda it: {"newer": oldest_of(it["past"])},
        lambda it: {"times": times(it)},
    )["times"]
