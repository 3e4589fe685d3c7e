"""What a person asks of one audit run: the DAG's Params, and their second, stricter check inside the run."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from airflow.sdk import Param
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from kafka_audit.errors import ConfigurationError

DAG_ID = "kafka_reliability_audit"
_CLUSTER_PATTERN = r"^[a-z0-9][a-z0-9._-]{0,62}$"


class AuditRequest(BaseModel):
    """The Params of one run, checked. Every field has the Param's name; an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Annotated[str, Field(pattern=_CLUSTER_PATTERN)] = "kafka"
    kafka_conn_id: Annotated[str, Field(min_length=1)] = "kafka_default"
    topics: Annotated[str, Field(min_length=1)] = "*"
    groups: Annotated[str, Field(min_length=1)] = "*"
    policy_dir: str | None = None
    controls_dirs: str | None = None
    fail_on: Literal["critical", "high", "medium", "low", "info"] = "high"
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.9
    max_age_seconds: Annotated[int, Field(ge=1)] = 3600

    @field_validator("policy_dir")
    @classmethod
    def _policy_is_a_folder(cls, value: str | None) -> str | None:
        return _folder(value) if value else None

    @field_validator("controls_dirs")
    @classmethod
    def _controls_are_folders(cls, value: str | None) -> str | None:
        return ",".join(_folder(name.strip()) for name in value.split(",")) if value else None

    @property
    def policy_folder(self) -> Path | None:
        return Path(self.policy_dir) if self.policy_dir else None

    @property
    def controls_folders(self) -> tuple[Path, ...]:
        """The organisation's own control folders, in the order given."""
        return tuple(Path(name) for name in self.controls_dirs.split(",")) if self.controls_dirs else ()


def _folder(name: str) -> str:
    if not Path(name).is_absolute():
        raise ValueError(f"{name!r} is relative; write an absolute path, as it is on the machine that runs the tasks")
    if not Path(name).is_dir():
        raise ValueError(f"there is no folder {name} on the machine that runs the tasks")
    return name


def check_request(params: Mapping[str, Any], conf: Mapping[str, Any] | None) -> AuditRequest:
    """Check a run's Params and the raw configuration it was triggered with; ConfigurationError names every problem.

    Airflow validates the Params it knows and accepts any other key in silence, so a mistyped name would audit with the
    default: unknown keys are refused here. Keys that begin with ``airflow/`` are Airflow's own.
    """
    problems = []
    for key in sorted(set(conf or {}) - set(AuditRequest.model_fields)):
        if not key.startswith("airflow/"):
            near = difflib.get_close_matches(key, AuditRequest.model_fields, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"the parameters are {', '.join(AuditRequest.model_fields)}"
            problems.append(f"{key}: is not a parameter of {DAG_ID}; {advice}")
    request = None
    try:
        request = AuditRequest(**{name: value for name, value in params.items() if name in AuditRequest.model_fields})
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False):
            where = ".".join(str(part) for part in error["loc"])
            problems.append(f"{where}: {error['msg'].removeprefix('Value error, ')} (given: {error['input']!r})")
    if problems or request is None:
        listed = "\n  ".join(problems)
        raise ConfigurationError(f"the run's parameters cannot be used:\n  {listed}\nStart a new run with these corrected")
    return request


def audit_params() -> dict[str, Param]:
    """The DAG's Params, in the order and sections of the trigger form."""
    folder: dict[str, Any] = {"type": ["null", "string"], "section": "Policy"}
    scope: dict[str, Any] = {"type": "string", "minLength": 1, "section": "Scope"}
    return {
        "cluster": Param(
            "kafka",
            type="string",
            pattern=_CLUSTER_PATTERN,
            title="Cluster",
            description_md="The name under which this cluster's evidence and audits are filed: lower-case letters, digits and `. _ -`.",
            section="Cluster",
        ),
        "kafka_conn_id": Param(
            "kafka_default",
            type="string",
            minLength=1,
            title="Kafka connection",
            description_md="Id of an Airflow connection of type `kafka`; its Extra holds librdkafka keys such as `bootstrap.servers`.",
            section="Cluster",
        ),
        "topics": Param(
            "*",
            title="Topics",
            description_md="Glob patterns, separated by commas. A topic that no pattern matches is not collected, and the report says so.",
            **scope,
        ),
        "groups": Param(
            "*",
            title="Consumer groups",
            description_md="Glob patterns, separated by commas. A group that no pattern matches is not collected, and the report says so.",
            **scope,
        ),
        "policy_dir": Param(
            None,
            title="Policy folder",
            description_md="Absolute path of a folder with `tiers.yaml` and `slas.yaml`. Empty: the policy that ships with the product.",
            **folder,
        ),
        "controls_dirs": Param(
            None,
            title="Folders of your own controls",
            description_md="Absolute paths, separated by commas; the control files there are added to the shipped ones. Empty: none.",
            **folder,
        ),
        "fail_on": Param(
            "high",
            type="string",
            enum=["critical", "high", "medium", "low", "info"],
            values_display={
                "critical": "critical",
                "high": "high or worse",
                "medium": "medium or worse",
                "low": "low or worse",
                "info": "any failing finding",
            },
            title="Fail on",
            description_md="The least severity of a failing finding that turns the run red. The report has all findings anyway.",
            section="Gate",
        ),
        "min_coverage": Param(
            0.9,
            type="number",
            minimum=0,
            maximum=1,
            title="Least coverage",
            description_md="Share of the applicable checks that must have been assessed. Below it the audit is incomplete: not passed.",
            section="Gate",
        ),
        "max_age_seconds": Param(
            3600,
            type="integer",
            minimum=1,
            title="Oldest snapshot (seconds)",
            description_md="Evidence older than this when it is first judged makes the audit void.",
            section="Gate",
        ),
    }
