"""From evidence to wide rows: one module for each subject, whose ``build`` gives the columns that kafka_audit.catalogue.rows lists."""

import importlib
from typing import Protocol, cast

from pyspark.sql import DataFrame

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence


class Builder(Protocol):
    """What every subject's module offers."""

    def build(self, evidence: Evidence, policy: Policy) -> DataFrame:
        """One wide row for each resource of the subject."""
        ...


def build(subject: str, evidence: Evidence, policy: Policy) -> DataFrame:
    """The wide rows of a subject, with exactly the columns of ``kafka_audit.catalogue.rows`` in their order."""
    module = cast(Builder, importlib.import_module(f"spark_jobs.subjects.{subject}"))
    return module.build(evidence, policy).select(*SUBJECTS[subject].columns)
