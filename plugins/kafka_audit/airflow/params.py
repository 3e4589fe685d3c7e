"""The Params of each DAG, in the order and sections of its trigger form."""

from collections.abc import Sequence
from typing import Any

from airflow.sdk import Param

from kafka_audit.audit.choices import offered_choices
from kafka_audit.audit.clusters import DagCluster
from kafka_audit.audit.formats import DEFAULT_FORMATS, REPORT_FILES
from kafka_audit.audit.request import LONGEST_BEHAVIOUR_HOURS


def roll_up_params(one: DagCluster) -> dict[str, Param]:
    """The DAG Params for a :class:`~kafka_audit.audit.request.RollUpRequest`."""
    return {
        "cluster": _cluster(one),
        "policy_dir": _folder(
            "Policy folder",
            "Absolute path of a folder with `tiers.yaml` and `slas.yaml`, below one of `KAFKA_AUDIT_FOLDERS`. "
            "Empty: the policy of the cluster or of the installation (`KAFKA_AUDIT_POLICY`), or else the one that ships with the product, "
            "by which nothing is deleted.",
            offered_choices().policies,
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Delete nothing",
            description_md="Only say, in the log of `delete_expired`, what would go, what stays, and why.",
            section="Retention",
        ),
    }


def commit_history_params(one: DagCluster) -> dict[str, Param]:
    """The DAG Params for a :class:`~kafka_audit.audit.request.CommitHistoryRequest`."""
    return {
        "cluster": _cluster(one),
        "kafka_conn_id": _connection(one),
        "behaviour_hours": Param(
            24,
            type="number",
            exclusiveMinimum=0,
            maximum=LONGEST_BEHAVIOUR_HOURS,
            title="Hours described",
            description_md="Length of the window, up to the run, over which the behaviour of groups is described. The records stay longer.",
            section="Behaviour",
        ),
    }


def offsets_params(one: DagCluster) -> dict[str, Param]:
    """The DAG Params for an :class:`~kafka_audit.audit.request.OffsetsRequest`."""
    shared = roll_up_params(one)
    return {
        "cluster": shared["cluster"],
        "kafka_conn_id": _connection(one),
        "topics": _globs("Topics", "topic"),
        "groups": _globs("Consumer groups", "group"),
        "policy_dir": shared["policy_dir"],
    }


def audit_params(one: DagCluster) -> dict[str, Param]:
    """The DAG Params for an :class:`~kafka_audit.audit.request.AuditRequest`."""
    return {
        **offsets_params(one),
        "controls_dirs": _folder(
            "Folders of your own controls",
            "Absolute paths, separated by commas, below `KAFKA_AUDIT_FOLDERS`; the control files there are added to the "
            "shipped ones. Empty: the installation's own (`KAFKA_AUDIT_CONTROLS`), or else none.",
            offered_choices().controls,
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
            description_md="A failing finding of this severity or worse turns the run red. The report has all findings in any case.",
            section="Gate",
        ),
        "fail_on_new": Param(
            False,
            type="boolean",
            title="Fail on new failures only",
            description_md="Only new failures turn the run red. A failure is old if the newest earlier audit of the cluster has it, too; "
            "earlier audits that were red for new failures do not count, so running an audit again makes no failure old. Run one audit "
            "without this first. The report counts the old failures that did not turn the run red.",
            section="Gate",
        ),
        "min_coverage": Param(
            0.9,
            type="number",
            minimum=0,
            maximum=1,
            title="Least coverage",
            description_md="Share (0 to 1) of the applicable results that must be assessed. Below it the audit is INCOMPLETE: not passed.",
            section="Gate",
        ),
        "max_age_seconds": Param(
            3600,
            type="integer",
            minimum=1,
            title="Oldest snapshot (seconds)",
            description_md="If the snapshot is older than this when it is first judged, the audit ends VOID.",
            section="Gate",
        ),
        "formats": Param(
            ",".join(DEFAULT_FORMATS),
            type="string",
            minLength=1,
            title="Formats",
            examples=[",".join(DEFAULT_FORMATS), "html,json", ",".join(REPORT_FILES)],
            description_md=f"Some of {', '.join(f'`{name}`' for name in REPORT_FILES)}, separated by commas. `html` and `json` are written "
            "in any case.",
            section="Report",
        ),
    }


def _folder(title: str, about: str, found: Sequence[str]) -> Param:
    """A field for a path: ``found`` is offered as it is typed, and any other can be typed, which ``enum`` would refuse.

    Airflow shows such ``examples`` without labels, so the description lists them, too.
    """
    lines = [about]
    if found:
        lines += ["", "Found when Airflow last read this DAG:", "", *(f"- `{folder}`" for folder in found)]
    if notes := offered_choices().notes:
        lines += ["", " ".join(notes)]
    offered: dict[str, Any] = {"examples": list(found)} if found else {}
    return Param(None, title=title, description_md="\n".join(lines), type=["null", "string"], section="Policy", **offered)


def _globs(title: str, one: str) -> Param:
    about = f"Glob patterns, separated by commas. A {one} that no pattern matches is not collected, and the report says so."
    return Param("*", title=title, description_md=about, type="string", minLength=1, section="Scope")


def _cluster(one: DagCluster) -> Param:
    return _fixed(
        one.name,
        title="Cluster",
        description_md="Fixed: this DAG reads this cluster only. Its evidence and audits are filed under this name.",
    )


def _connection(one: DagCluster) -> Param:
    return _fixed(
        one.kafka_conn_id,
        title="Kafka connection",
        description_md="Fixed: the Airflow connection of type `kafka` that this DAG reads by; its Extra holds librdkafka keys.",
    )


def _fixed(value: str, *, title: str, description_md: str) -> Param:
    """A list of one in the trigger form, so that a person sees what the run will read; ``const`` would hide it."""
    return Param(value, type="string", enum=[value], title=title, description_md=description_md, section="Cluster")
