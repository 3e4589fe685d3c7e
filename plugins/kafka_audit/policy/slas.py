"""``slas.yaml``: how far behind consumer groups may be."""

from typing import Literal

from pydantic import Field, model_validator

from kafka_audit.policy.tiers import Name, Pattern, Strict, refuse_unreachable


class LagSla(Strict):
    """A lag SLA: groups whose id matches the glob may be at most this far behind, in records over all partitions and in seconds on any."""

    pattern: Pattern
    name: Name
    max_lag_records: int = Field(ge=0)
    max_lag_seconds: int | None = Field(default=None, ge=0)


class SlaFile(Strict):
    """The content of ``slas.yaml``; the first pattern that matches a group decides."""

    version: Literal[1]
    groups: list[LagSla] = Field(default_factory=list)

    @model_validator(mode="after")
    def _each_can_decide(self) -> "SlaFile":
        refuse_unreachable("groups", self.groups)
        return self
