"""One reading of a cluster for the eyes: the datasets of an offsets snapshot, kept in memory and written nowhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Rows by dataset, client hosts by (group id, member id), the cluster's id, and when it was begun."""

    datasets: Mapping[str, list[Row]]
    hosts: Mapping[tuple[str, str], str]
    cluster_id: str | None
    taken_at: datetime
