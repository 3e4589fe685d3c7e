"""What could not be read, and why."""

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa

from kafka_audit.cluster.failures import Failure
from kafka_audit.collect.datasets import ERRORS, Dataset
from kafka_audit.collect.tables import table


class ErrorLog:
    """Collects failures, each under the dataset that lacks something because of it."""

    def __init__(self) -> None:
        self._failures: dict[tuple[str, Failure], None] = {}

    def add(self, dataset: Dataset, failure: Failure) -> None:
        """Record that ``dataset`` lacks what the failure is about: nothing named = the whole dataset."""
        self._failures[dataset.name, failure] = None

    def add_all(self, dataset: Dataset, failures: Iterable[Failure]) -> None:
        """Record several failures of one dataset."""
        for failure in failures:
            self.add(dataset, failure)

    def counts(self) -> dict[str, int]:
        """Number of failures per dataset."""
        return dict(sorted(Counter(dataset for dataset, _ in self._failures).items()))

    def to_table(self) -> pa.Table:
        """The dataset ``errors``: one row per failure, ordered; no topic, partition, group or broker = the whole dataset is missing."""
        rows = [(dataset, f.api, f.broker_id, f.topic, f.partition, f.group_id, f.error, f.message) for dataset, f in self._failures]
        return table(ERRORS.schema, sorted(rows, key=lambda row: tuple((value is not None, value) for value in row)))
