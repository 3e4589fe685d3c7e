"""What a managed service hides from its customers, as its own documentation says; a part of ``tiers.yaml``."""

from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from kafka_audit.input_files.fields import Name, Strict, repeated

HIDEABLE = (
    *(
        "acls",
        "broker_configs",
        "client_quotas",
        "controller_configs",
        "group_configs",
        "last_batches",
        "log_dirs",
        "producers",
        "quorum",
        "reassignments",
        "replica_sizes",
    ),
    *("topic_configs", "transactions"),
)
"""Datasets that a service may hide; without the others there is nothing to judge."""
REFUSALS = (
    *("CLUSTER_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
    *("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "INVALID_REQUEST", "POLICY_VIOLATION", "UNSUPPORTED_VERSION"),
)
"""Errors by which a service refuses; any other, such as a timeout, is a failure of this reading and hides nothing on purpose."""
_OUT_OF_REACH = ("BROKER_NOT_AVAILABLE", "REQUEST_TIMED_OUT")
_WITH_SETTINGS = ("broker_configs", "topic_configs")


def refusals(dataset: str) -> tuple[str, ...]:
    """The errors by which a service hides this dataset: no way to its controllers is how it hides what they have."""
    return (*REFUSALS, *_OUT_OF_REACH) if dataset == "controller_configs" else REFUSALS


class ManagedService(Strict):
    """The service that runs the cluster. ``hides``: datasets, or single settings as ``broker_configs.<key>``, that it shows to nobody.

    ``documentation``: the address at which the service says so. It decides only about what could not be read: what was read is judged.
    """

    name: Name
    documentation: Annotated[str, StringConstraints(pattern=r"^https?://[^\s\"'<>]+$", max_length=500)]
    hides: list[Annotated[str, StringConstraints(pattern=r"^[a-z_]+(\.[a-z0-9.]+)?$", max_length=200)]] = Field(
        min_length=1, max_length=100
    )

    @field_validator("hides")
    @classmethod
    def _can_be_hidden(cls, value: list[str]) -> list[str]:
        for one in value:
            dataset, dot, _ = one.partition(".")
            if dataset not in HIDEABLE:
                raise ValueError(f"{dataset!r} is not one of {', '.join(HIDEABLE)}: without anything else an audit has nothing to judge")
            if dot and dataset not in _WITH_SETTINGS:
                raise ValueError(f"{one!r}: only {' and '.join(_WITH_SETTINGS)} have settings: write {dataset!r}")
        if twice := repeated(value):
            raise ValueError(f"{twice} appear twice: keep one")
        return value

    @property
    def datasets(self) -> frozenset[str]:
        """The datasets that are hidden as a whole."""
        return frozenset(one for one in self.hides if "." not in one)

    def settings(self, dataset: str) -> frozenset[str]:
        """The settings of a dataset that are hidden."""
        return frozenset(one.removeprefix(f"{dataset}.") for one in self.hides if one.startswith(f"{dataset}."))

    def reason(self, what: str) -> str:
        """Why a result that needs a hidden dataset or setting does not apply."""
        return f"{what} is hidden by the managed service {self.name}: {self.documentation}"
