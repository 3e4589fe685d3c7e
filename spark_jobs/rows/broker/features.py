"""Feature levels of the cluster (KIP-584)."""

import json

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence

_MAP = "map<string,struct<finalized:int,supported:int>>"
_JUDGED = ("metadata.version", "transaction.version", "group.version")


def feature_levels(evidence: Evidence) -> Column:
    """The column ``features``; NULL when the brokers told no finalized level at all.

    Brokers leave level 0 out of what they answer as finalized, and a feature that they do not know out of all. So once one finalized
    level was told, as metadata.version always is with KRaft, a feature without one stands at 0.
    """
    rows = evidence.small("cluster", "features")
    told = {one["name"]: one for one in (rows[0]["features"] or [] if rows else [])}
    if all(one["finalized_max"] is None for one in told.values()):
        return F.lit(None).cast(_MAP)
    none = {"finalized_max": None, "supported_max": None}
    found = {name: told.get(name, none) for name in sorted({*told, *_JUDGED})}
    levels = {name: {"finalized": one["finalized_max"] or 0, "supported": one["supported_max"] or 0} for name, one in found.items()}
    return F.from_json(F.lit(json.dumps(levels)), _MAP)
