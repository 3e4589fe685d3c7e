"""How much of the newest minutes, hours and days a group spent outside of an SLA: what burn rates are computed from."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy.burn_rates import MINUTES
from kafka_audit.policy.slas import LagSla
from spark_jobs.engine.tables import table_of
from spark_jobs.lag.quiet import quiet_ms
from spark_jobs.lag.samples import WindowSamples

_MINUTE_MS = 60_000


def newest_ms(last_ms: int) -> dict[str, Column]:
    """Aggregates over rows of spark_jobs.lag.slas.sla_samples: in_ms_<m> and out_ms_<m> bigint for each length <m> of MINUTES.

    They are the time inside and outside of the limits in the ``m`` minutes before ``last_ms``.
    """
    found = {}
    for minutes in MINUTES:
        start = last_ms - minutes * _MINUTE_MS
        part = F.greatest(F.lit(0), F.least(F.col("stands_ms"), F.col("taken_ms") + F.col("stands_ms") - F.lit(start)))
        for kind, holds in (("in", ~F.col("outside")), ("out", F.col("outside"))):
            found[f"{kind}_ms_{minutes}"] = F.sum(F.when(F.coalesce(holds, F.lit(False)), part).otherwise(0))
    return found


def sla_burns(figures: DataFrame, window: WindowSamples, slas: Sequence[LagSla]) -> DataFrame:
    """One row for each group and SLA with a target: group_id, sla string, target_percent double and, bigint, for each <m> of MINUTES

    counted_ms_<m> (the window without quiet hours), in_ms_<m> and out_ms_<m>. What is missing to counted_ms is not known.
    ``figures``: rows of spark_jobs.lag.slas.sla_figures.
    """
    rows = [
        (number, sla.name, sla.availability.target_percent, *(_counted_ms(sla, window.last_ms, minutes) for minutes in MINUTES))
        for number, sla in enumerate(slas)
        if sla.availability is not None
    ]
    counted = [f"counted_ms_{minutes}" for minutes in MINUTES]
    columns = ", ".join(["number int", "name string", "target_percent double", *(f"{name} bigint" for name in counted)])
    asked = F.broadcast(table_of(figures.sparkSession, rows, columns))
    measured = [f"{kind}_ms_{minutes}" for minutes in MINUTES for kind in ("in", "out")]
    found = figures.join(asked, on=F.col("sla") == F.col("number"), how="inner")
    return found.select("group_id", F.col("name").alias("sla"), "target_percent", *counted, *measured)


def _counted_ms(sla: LagSla, last_ms: int, minutes: int) -> int:
    length = minutes * _MINUTE_MS
    return length - sum(min(ends, last_ms) - begins for begins, ends in quiet_ms(sla, last_ms - length, last_ms))
