"""The dataset of everything that could not be read, and why."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from kafka_audit.cluster.failures import Failure
from kafka_audit.collect.tables import table

NAME = "errors"
SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("api", pa.string()),
        ("broker_id", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("group_id", pa.string()),
        ("error", pa.string()),
        ("message", pa.string()),
    ]
)


class ErrorLog:
    """Collects failures, each under the dataset that lacks something because of it."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, Failure], None] = {}

    def add(self, dataset: str, failure: Failure) -> None:
        """Record that ``dataset`` lacks what the failure is about: nothing named = the whole dataset."""
        self._failures[dataset, failure] = None

    def add_all(self, dataset: str, failures: Iterable[Failure]) -> None:
        """Record several failures of one dataset."""
        for failure in failures:
            self.add(dataset, failure)

    def counts(self) -> dict[str, int]:
        """Number of failures per dataset."""
        return dict(sorted(Counter(dataset for dataset, _ in self._failures).items()))


def collect(log: ErrorLog) -> pa.Table:
    """One row per failure, ordered; topic, partition, group_id and broker_id all null = the whole dataset is missing."""
    rows = [(dataset, f.api, f.broker_id, f.topic, f.partition, f.group_id, f.error, f.message) for dataset, f in log._failures]
    return table(SCHEMA, sorted(rows, key=lambda row: tuple((value is not None, value) for value in row)))
