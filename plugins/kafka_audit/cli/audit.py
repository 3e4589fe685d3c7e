"""``kafka-audit audit``."""

from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cli.options import (
    Bootstrap,
    Cluster,
    Connection,
    Controls,
    Groups,
    PolicyFolder,
    Root,
    Topics,
    connection_keys,
    need_java,
    say,
)
from kafka_audit.cli.summary import audit_and_summarise, page
from kafka_audit.findings import Severity
from kafka_audit.policy import load_policy
from kafka_audit.store.signing_key import signing_key


def audit(
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    cluster: Cluster = "kafka",
    root: Root = Path("audit-root"),
    policy: PolicyFolder = None,
    controls: Controls = None,
    topics: Topics = "*",
    groups: Groups = "*",
    fail_on: Annotated[Severity, typer.Option(help="Failing findings of this severity or worse fail the gate.")] = Severity.HIGH,
    min_coverage: Annotated[float, typer.Option(min=0, max=1, help="Smallest share of applicable verdicts that must be assessed.")] = 0.9,
) -> None:
    """Audit a cluster: snapshot, verification, gate and report, run as one Airflow DAG run. Reads only."""
    need_java()
    check_rules(policy, controls or [])
    signing_key()
    params = {"topics": topics, "groups": groups, "fail_on": fail_on.value, "min_coverage": min_coverage}
    outcome = audit_and_summarise(
        connection=connection_keys(bootstrap, connection),
        cluster=cluster,
        root=root.resolve(),
        policy=policy,
        controls=controls or [],
        params=params,
        say=say,
        console=page(),
    )
    raise typer.Exit(outcome.exit_code)


def check_rules(policy: Path | None, controls: list[Path]) -> None:
    """ConfigurationError unless the policy and the controls fit; the run's first task says the same, after Airflow has started."""
    check_policy(load_policy(policy), load_catalogue([shipped_controls(), *controls]))
