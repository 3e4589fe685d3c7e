"""Which evidence is missing for what: turns the errors of a snapshot into maps of dataset -> reason.

A snapshot's errors have levels. Those that name nothing concern every row (:func:`whole_datasets`); those that name a topic, a partition,
a group or a broker are joined to the rows they concern (:func:`with_item_errors`); what a row's own columns tell is added by :func:`extra`.
"""

import functools
import operator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened

MAP = "map<string,string>"
NO_AUTHORIZER = "SECURITY_DISABLED"
"""What brokers without an authorizer answer to DescribeAcls: an error by its form, and evidence by its meaning."""


def none() -> Column:
    """An empty map: nothing is missing."""
    return F.create_map().cast(MAP)


def extra(**reasons: Column | str | None) -> Column | None:
    """A map of the given datasets whose reason is neither None nor NULL; None when all are None."""
    given = {dataset: reason for dataset, reason in reasons.items() if reason is not None}
    if not given:
        return None
    pairs = [F.struct(F.lit(dataset).alias("key"), F.lit(reason).cast("string").alias("value")) for dataset, reason in given.items()]
    return F.map_from_entries(F.filter(F.array(*pairs), lambda pair: pair["value"].isNotNull())).cast(MAP)


def joined(*maps: Column | None) -> Column:
    """All maps as one; None and NULL maps count as empty, and a later map's reason wins."""
    given = [each for each in maps if each is not None]
    return F.map_concat(*[F.coalesce(each, none()) for each in given]) if given else none()


def first_known(*reasons: Column | str | None) -> Column | None:
    """The first reason that is neither None nor NULL; None when all are None."""
    given = [F.lit(reason) if isinstance(reason, str) else reason for reason in reasons if reason is not None]
    return F.coalesce(*given) if given else None


def whole_datasets(evidence: Evidence) -> Column | None:
    """The datasets that could not be read at all, with the reason, as a constant; None when there are none."""
    parts = [F.lit(part) for pair in evidence.whole_dataset_errors.items() for part in pair]
    return F.create_map(*parts).cast(MAP) if parts else None


def failed(evidence: Evidence, dataset: str) -> bool:
    """Whether a dataset could not be read at all."""
    return dataset in evidence.whole_dataset_errors


def reason_text() -> Column:
    """The errors dataset's columns as one sentence: error, API, broker or controller, and message."""
    node = F.when(F.col("dataset") == "controller_configs", F.lit(" on controller ")).otherwise(F.lit(" on broker "))
    broker = F.coalesce(F.concat(node, F.col("broker_id").cast("string")), F.lit(""))
    where = F.concat(F.col("error"), F.lit(" ("), F.coalesce(F.col("api"), F.lit("no API")), broker, F.lit(")"))
    return F.concat_ws(": ", where, F.nullif(F.col("message"), F.lit("")))


TOPICS, PARTITIONS, GROUPS, GROUP_PARTITIONS = ("topic",), ("topic", "partition"), ("group_id",), ("group_id", "topic", "partition")
_NOT_NAMED = {TOPICS: ("partition", "group_id"), PARTITIONS: ("group_id",), GROUPS: ("partition",), GROUP_PARTITIONS: ()}
"""Levels by the keys that an error names, and which it does not name; one of a group may name a whole topic of it."""


def item_errors(evidence: Evidence, level: tuple[str, ...]) -> DataFrame | None:
    """The keys of the level and ``item_errors`` map<string,string>; None when the snapshot has no error at all."""
    return _item_errors(evidence, *level) if evidence.rows("errors") else None


@shortened
def _item_errors(evidence: Evidence, *level: str) -> DataFrame:
    named = [*(F.col(key).isNotNull() for key in level), *(F.col(key).isNull() for key in _NOT_NAMED[level])]
    entries = F.array_sort(F.collect_set(F.struct("dataset", reason_text().alias("reason"))))
    errors = evidence.table("errors").where(functools.reduce(operator.and_, named))
    return errors.groupBy(*level).agg(F.map_from_entries(entries).alias("item_errors"))


def with_item_errors(rows: DataFrame, evidence: Evidence, *levels: tuple[str, ...]) -> DataFrame:
    """``rows`` with the column ``item_errors``: the maps of all levels, joined on their keys; later levels win."""
    names = []
    for level in levels:
        errors = item_errors(evidence, level)
        if errors is not None:
            names.append("item_errors_" + "_".join(level))
            rows = rows.join(errors.withColumnRenamed("item_errors", names[-1]), on=list(level), how="left")
    return rows.withColumn("item_errors", joined(*map(F.col, names))).drop(*names)


def of_its_partitions(reason: Column, name: Column) -> Column:
    """An aggregate: NULL when no row has a reason, else a text like ``on 3 of its partitions, first 4: ...``."""
    count = F.count(reason)
    first = F.min(F.when(reason.isNotNull(), F.struct(name.alias("name"), reason.alias("reason"))))
    place = F.concat(F.lit("on "), count.cast("string"), F.lit(" of its partitions, first "), first["name"].cast("string"))
    return F.when(count > 0, F.concat(place, F.lit(": "), first["reason"]))
