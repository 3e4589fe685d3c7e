"""The request of one run: the fields of each kind of run, and the stricter second check of a DAG's Params inside the run.

The plan of an audit is its request with the ids and folders that every later task uses.
"""

import difflib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from kafka_audit.audit.cluster_file import CLUSTER_PATTERN
from kafka_audit.audit.clusters import CLUSTERS_VARIABLE, cluster_of_dag, cluster_policy
from kafka_audit.audit.formats import DEFAULT_FORMATS, read_formats
from kafka_audit.audit.installation import CONTROLS_VARIABLE, POLICY_VARIABLE, allowed_folder, control_folders
from kafka_audit.errors import ConfigurationError
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id
from kafka_audit.store.mirrors import root_name

DAG_ID = "kafka_reliability_audit"
LONGEST_BEHAVIOUR_HOURS = 24 * 31


ConnectionId = Annotated[str, Field(min_length=1)]


class ClusterRequest(BaseModel):
    """What every run is asked for. Every field has the Param's name; an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cluster: Annotated[str, Field(pattern=CLUSTER_PATTERN)] = "kafka"


class CommitHistoryRequest(ClusterRequest):
    """The Params of a run that reads the offsets topic."""

    kafka_conn_id: ConnectionId = "kafka_default"
    behaviour_hours: Annotated[float, Field(gt=0, le=LONGEST_BEHAVIOUR_HOURS)] = 24


class PolicyRequest(ClusterRequest):
    """The Params of a run that a policy decides about."""

    policy_dir: Annotated[str | None, Field(validate_default=True)] = None
    """The policy that holds for the run: one that may be named, or else the cluster's or the installation's; None for the shipped one."""

    @field_validator("policy_dir")
    @classmethod
    def _policy_is_allowed(cls, value: str | None, info: ValidationInfo) -> str | None:
        own = cluster_policy(str(info.data.get("cluster", "")))
        if value:
            return str(allowed_folder(value, [own] if own else [], POLICY_VARIABLE))
        return str(own) if own else None

    @property
    def policy_folder(self) -> Path | None:
        return Path(self.policy_dir) if self.policy_dir else None


class RollUpRequest(PolicyRequest):
    """The Params of a run that rolls up and deletes."""

    dry_run: bool = False


class OffsetsRequest(PolicyRequest):
    """The Params of a run that takes a snapshot."""

    kafka_conn_id: ConnectionId = "kafka_default"
    topics: Annotated[str, Field(min_length=1)] = "*"
    groups: Annotated[str, Field(min_length=1)] = "*"


class AuditRequest(OffsetsRequest):
    """The Params of an audit."""

    controls_dirs: Annotated[str | None, Field(validate_default=True)] = None
    """The folders of controls beside the shipped ones, separated by commas: those that may be named, or else the installation's."""
    fail_on: Literal["critical", "high", "medium", "low", "info"] = "high"
    fail_on_new: bool = False
    """Whether failures that the baseline (``audit.baseline``) had, too, do not turn the run red."""
    min_coverage: Annotated[float, Field(ge=0, le=1)] = 0.9
    max_age_seconds: Annotated[int, Field(ge=1)] = 3600
    formats: str = ",".join(DEFAULT_FORMATS)
    """The formats of the report, separated by commas; the page and the JSON are written in any case."""

    @field_validator("formats")
    @classmethod
    def _formats_are_known(cls, value: str) -> str:
        return ",".join(read_formats(value))

    @field_validator("controls_dirs")
    @classmethod
    def _controls_are_allowed(cls, value: str | None) -> str | None:
        own = control_folders()
        named = [allowed_folder(name.strip(), own, CONTROLS_VARIABLE) for name in value.split(",")] if value else own
        return ",".join(map(str, named)) or None

    @property
    def report_formats(self) -> tuple[str, ...]:
        return read_formats(self.formats)

    @property
    def controls_folders(self) -> tuple[Path, ...]:
        """The organisation's own control folders, in the order given."""
        return tuple(Path(name) for name in self.controls_dirs.split(",")) if self.controls_dirs else ()


_Request = TypeVar("_Request", bound=ClusterRequest)


def check_request(kind: type[_Request], dag_id: str, params: Mapping[str, Any], conf: Mapping[str, Any] | None) -> _Request:
    """Check a run's Params and the raw configuration it was triggered with; ConfigurationError names every problem.

    Airflow validates the Params it knows and accepts any other key in silence, so a mistyped name would run with the
    default: unknown keys are refused here. Keys that begin with ``airflow/`` are Airflow's own. The cluster and the connection are
    those that this process's settings give the DAG ``dag_id``: Airflow holds a run against the DAG as it was stored, if it does at all.
    """
    one = cluster_of_dag(dag_id)
    fixed = {name: value for name, value in (("cluster", one.name), ("kafka_conn_id", one.kafka_conn_id)) if name in kind.model_fields}
    problems = []
    for name, value in fixed.items():
        for asked in {repr(given[name]): given[name] for given in (params, conf or {}) if name in given}.values():
            if asked != value:
                problems.append(
                    f"{name}: {dag_id} reads the cluster {one.name} by the connection {one.kafka_conn_id} only (given: {asked!r}); "
                    f"{CLUSTERS_VARIABLE} gives another cluster DAGs of its own"
                )
    for key in sorted(set(conf or {}) - set(kind.model_fields)):
        if not key.startswith("airflow/"):
            near = difflib.get_close_matches(key, kind.model_fields, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"the parameters are {', '.join(kind.model_fields)}"
            problems.append(f"{key}: is not a parameter of {dag_id}; {advice}")
    request = None
    try:
        request = kind(**{name: value for name, value in params.items() if name in kind.model_fields} | fixed)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False):
            where = ".".join(str(part) for part in error["loc"])
            problems.append(f"{where}: {error['msg'].removeprefix('Value error, ')} (given: {error['input']!r})")
    if problems or request is None:
        listed = "\n  ".join(problems)
        raise ConfigurationError(f"the run's parameters cannot be used:\n  {listed}\nStart a new run with these corrected")
    return request


class AuditPlan(AuditRequest):
    """A checked request with its ids; small enough to be the XCom that ties the tasks together."""

    root: str
    audit_id: str
    snapshot_id: str
    dag_id: str
    run_id: str

    @property
    def evidence_root(self) -> EvidenceRoot:
        return EvidenceRoot.at(self.root)

    @property
    def audit(self) -> Audit:
        return self.evidence_root.audit(self.cluster, self.audit_id)

    @property
    def snapshot(self) -> Snapshot | None:
        """The sealed snapshot; None while there is none."""
        return self.evidence_root.find_snapshot(self.cluster, self.snapshot_id)

    @property
    def snapshot_dir(self) -> Path:
        return self.evidence_root.snapshot_dir(self.cluster, self.snapshot_id)

    def request(self) -> dict[str, Any]:
        """The request alone, as JSON values, for ``run.json``."""
        return self.model_dump(mode="json", include=set(AuditRequest.model_fields))


def audit_id_of(dag_id: str, run_id: str, run_after: datetime) -> str:
    """The id of the audit that a DAG run makes."""
    return new_id(run_after, f"audit:{dag_id}/{run_id}")


def snapshot_id_of(dag_id: str, run_id: str, run_after: datetime) -> str:
    """The id of the snapshot, or offsets snapshot, that a DAG run takes."""
    return new_id(run_after, f"snapshot:{dag_id}/{run_id}")


def make_plan(request: AuditRequest, *, root: Path, dag_id: str, run_id: str, run_after: datetime) -> AuditPlan:
    """Give a run its ids. The same run always gets the same ids, so that a cleared task finds its own folders again.

    ``run_after`` is the run's own time: unlike its start date, Airflow does not change it when tasks are cleared.
    """
    return AuditPlan(
        **request.model_dump(),
        root=root_name(root),
        audit_id=audit_id_of(dag_id, run_id, run_after),
        snapshot_id=snapshot_id_of(dag_id, run_id, run_after),
        dag_id=dag_id,
        run_id=run_id,
    )
