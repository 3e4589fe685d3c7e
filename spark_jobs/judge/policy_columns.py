"""What the policy lays over the catalogue: a tier's parameters and severities, what it loosened, and waivers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.control import PARAMETERS, Control
from kafka_audit.catalogue.rows import Subject
from kafka_audit.findings import Status
from kafka_audit.policy import Policy, glob_to_regex
from kafka_audit.policy.managed_service import refusals
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

    def hidden(self, control: Control) -> Column:
        """Why a row without a verdict is not applicable: the managed service hides what it needs; NULL where anything else is missing."""
        service = self.policy.managed_service
        nothing = F.lit(None).cast("string")
        if service is None:
            return nothing
        hidden = [name for name in control.needs if name in service.datasets]
        others = [F.col("errors")[name] for name in control.needs if name not in service.datasets]
        found = [F.when(_refused(name), F.lit(service.reason(name))) for name in hidden]
        dataset = {"config": "broker_configs" if control.subject == "broker" else "topic_configs", "broker_values": "broker_configs"}
        dataset |= {"dedicated_controllers": "quorum", "elector_values": "controller_configs"}
        for one in control.decides_on:
            if one.column not in dataset:
                continue
            name = dataset[one.column]
            value = F.expr(f"{one.sql}.value" if one.column == "config" else one.sql)
            if one.key in service.settings(name):
                found.append(F.when(value.isNull(), F.lit(service.reason(f"{name}.{one.key}"))))
            elif name in service.datasets:
                found.append(F.when(value.isNull() & _refused(name), F.lit(service.reason(name))))
        return F.when(F.coalesce(nothing, *others).isNull(), F.coalesce(nothing, *found))

    def waiver(self, code: Column) -> Column:
        """The id of the first waiver that covers a failure, NULL for any other row. ``code``: of the control; needs status and resource."""
        covering = [
            F.when((code == waiver.control) & F.col("resource").rlike(glob_to_regex(waiver.pattern)), F.lit(waiver.id))
            for waiver in in_force(self.policy.waivers, self.at)
        ]
        return F.when(F.col("status") == Status.FAIL.value, F.coalesce(F.lit(None).cast("string"), *covering))

    def _of_tier(self, subject: Subject, values: Mapping[str, object], kind: str) -> Column:
        """The value of the row's tier; for a name that is none, that of the default tier."""
        known = constant(values, f"map<string,{kind}>")
        return F.coalesce(known[self.tier(subject)], known[self.policy.default_tier])


def _refused(dataset: str) -> Column:
    """Whether the service refused this dataset to the row."""
    return F.col("errors")[dataset].rlike(rf"^(.* (first|first: ).*: )?({'|'.join(refusals(dataset))})\b")


def tier_of_row(subject: Subject) -> Column:
    """The tier that a row names itself; NULL where its subject has none."""
    if "tier" in subject.columns:
        return F.col("tier")
    policy = subject.columns.get("policy")
    return F.col("policy.tier") if policy is not None and "tier:" in policy.type else F.lit(None).cast("string")


def _loosened(tier: Tier, control: Control) -> str | None:
    known = control.parameters
    given = tier.parameters.get(control.code, {})
    found = [(name, value, known[name].default) for name, value in given.items() if name in known and known[name].loosened(value)]
    asked = {reference.field for reference in control.decides_on if reference.column == "policy"}
    demanded = [(field, getattr(tier, field), strict) for field, strict in STRICT_REQUIREMENTS.items() if field in asked]
    found += [(field, value, strict) for field, value, strict in demanded if value != -1 and value < strict]
    return ", ".join(f"{name} {value} (strict: {strict})" for name, value, strict in found) or None
