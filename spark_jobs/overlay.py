"""What the policy lays over the catalogue: a tier's parameters and severities, what it loosened, and waivers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.control import PARAMETERS, Control, Parameter
from kafka_audit.catalogue.rows import Subject
from kafka_audit.findings import Status
from kafka_audit.policy import Policy, glob_to_regex
from kafka_audit.policy.tiers import STRICT_REQUIREMENTS, Tier
from kafka_audit.policy.waivers import in_force


@dataclass(frozen=True, kw_only=True)
class Overlay:
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

        def of_tier(control: Control, name: str, parameter: Parameter) -> Column:
            values = {each: tier.parameters.get(control.code, {}).get(name, parameter.default) for each, tier in self.policy.tiers.items()}
            return self._by_tier(subject, values).cast(parameter.type).alias(name)

        return rows.withColumn(PARAMETERS, F.struct(*[of_tier(*field) for field in fields]))

    def severity(self, subject: Subject, control: Control) -> Column:
        """The severity that the row's tier gives the control."""
        own = {name: tier.severities.get(control.code, control.severity).value for name, tier in self.policy.tiers.items()}
        return self._by_tier(subject, own)

    def loosened(self, subject: Subject, control: Control) -> Column:
        """What the row's tier loosened for this control, like ``max_gap_intervals 5 (strict: 2)``; NULL when nothing."""
        asked = {reference.field for reference in control.decides_on if reference.column == "policy"}
        found = {
            name: ", ".join([*_parameters(tier, control), *_requirements(tier, asked)]) or None for name, tier in self.policy.tiers.items()
        }
        return self._by_tier(subject, found).cast("string")

    @cached_property
    def waiver(self) -> Callable[[DataFrame], DataFrame]:
        """Adds ``waiver``: the id of the first waiver that covers a failure, NULL for any other row."""
        found = F.lit(None).cast("string")
        for waiver in reversed(in_force(self.policy.waivers, self.at)):
            covered = (F.col("code") == waiver.control) & F.col("resource").rlike(glob_to_regex(waiver.resource))
            found = F.when(covered & (F.col("status") == Status.FAIL.value), F.lit(waiver.id)).otherwise(found)
        return lambda rows: rows.withColumn("waiver", found)

    def _by_tier(self, subject: Subject, values: Mapping[str, object]) -> Column:
        default = values[self.policy.default_tier]
        chosen = F.lit(default)
        for name, value in values.items():
            if value != default:
                chosen = F.when(self.tier(subject) == F.lit(name), F.lit(value)).otherwise(chosen)
        return chosen


def tier_of_row(subject: Subject) -> Column:
    """The tier that a row names itself; NULL where its subject has none."""
    if "tier" in subject.columns:
        return F.col("tier")
    policy = subject.columns.get("policy")
    return F.col("policy.tier") if policy is not None and "tier:" in policy.type else F.lit(None).cast("string")


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
