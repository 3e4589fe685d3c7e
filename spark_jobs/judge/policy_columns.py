"""What the policy lays over the catalogue: a tier's parameters and severities, what it loosened, and waivers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.control import PARAMETERS, Control
from kafka_audit.catalogue.rows import Subject
from kafka_audit.findings import Status
from kafka_audit.policy import Policy, glob_to_regex
from kafka_audit.policy.tiers import STRICT_REQUIREMENTS, Tier
from kafka_audit.policy.waivers import in_force
from spark_jobs.engine.tables import constant

SEVERITIES = "array<struct<severity:string,loosened:string>>"


@dataclass(frozen=True, kw_only=True)
class PolicyColumns:
    """The policy as it is applied to findings at a time: only waivers in force at ``at`` count."""

    policy: Policy
    at: datetime

    def tier(self, subject: Subject) -> Column:
        """The tier of a row; that of the cluster, its brokers and what is only declared is the default tier."""
        return F.coalesce(tier_of_row(subject), F.lit(self.policy.default_tier))

    def with_parameters(self, rows: DataFrame, subject: Subject, controls: Sequence[Control]) -> DataFrame:
        """Adds the parameters of all the controls as one struct, each with the value of the row's tier."""
        fields = [(control, name, parameter) for control in controls for name, parameter in control.parameters.items()]
        if not fields:
            return rows

        kinds = ",".join(f"{name}:{parameter.type}" for _, name, parameter in fields)
        values = {
            tier_name: {
                name: (int if parameter.type == "bigint" else float)(tier.parameters.get(control.code, {}).get(name, parameter.default))
                for control, name, parameter in fields
            }
            for tier_name, tier in self.policy.tiers.items()
        }
        return rows.withColumn(PARAMETERS, self._of_tier(subject, values, f"struct<{kinds}>"))

    def severities(self, subject: Subject, controls: Sequence[Control]) -> Column:
        """array<struct<severity, loosened>>: for each control, by the row's tier, its severity and what the tier loosened.

        ``loosened`` is a text like ``max_gap_intervals 5 (strict: 2)``; NULL when nothing is.
        """
        values = {
            name: [
                {"severity": tier.severities.get(control.code, control.severity).value, "loosened": _loosened(tier, control)}
                for control in controls
            ]
            for name, tier in self.policy.tiers.items()
        }
        return self._of_tier(subject, values, SEVERITIES)

    @cached_property
    def waiver(self) -> Callable[[DataFrame], DataFrame]:
        """Adds ``waiver``: the id of the first waiver that covers a failure, NULL for any other row."""
        found = F.lit(None).cast("string")
        for waiver in reversed(in_force(self.policy.waivers, self.at)):
            covered = (F.col("code") == waiver.control) & F.col("resource").rlike(glob_to_regex(waiver.resource))
            found = F.when(covered & (F.col("status") == Status.FAIL.value), F.lit(waiver.id)).otherwise(found)
        return lambda rows: rows.withColumn("waiver", found)

    def _of_tier(self, subject: Subject, values: Mapping[str, object], kind: str) -> Column:
        """The value of the row's tier; for a name that is none, that of the default tier."""
        known = constant(values, f"map<string,{kind}>")
        return F.coalesce(known[self.tier(subject)], known[self.policy.default_tier])


def tier_of_row(subject: Subject) -> Column:
    """The tier that a row names itself; NULL where its subject has none."""
    if "tier" in subject.columns:
        return F.col("tier")
    policy = subject.columns.get("policy")
    return F.col("policy.tier") if policy is not None and "tier:" in policy.type else F.lit(None).cast("string")


def _loosened(tier: Tier, control: Control) -> str | None:
    asked = {reference.field for reference in control.decides_on if reference.column == "policy"}
    return ", ".join([*_parameters(tier, control), *_requirements(tier, asked)]) or None


def _parameters(tier: Tier, control: Control) -> list[str]:
    given = tier.parameters.get(control.code, {})
    known = control.parameters
    return [
        f"{name} {value} (strict: {known[name].default})" for name, value in given.items() if name in known and known[name].loosened(value)
    ]


def _requirements(tier: Tier, asked: set[str | None]) -> list[str]:
    found = []
    for field, strict in STRICT_REQUIREMENTS.items():
        value: int = getattr(tier, field)
        if field in asked and value != -1 and value < strict:
            found.append(f"{field} {value} (strict: {strict})")
    return found
