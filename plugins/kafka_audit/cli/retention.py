"""The commands on stored history: ``kafka-audit history`` and ``kafka-audit retention``."""

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.audit.clusters import cluster_policy
from kafka_audit.audit.installation import POLICY_VARIABLE
from kafka_audit.cli.lag_timeline import lag_timeline
from kafka_audit.cli.options import Cluster, PolicyFolder, Root, printable
from kafka_audit.cli.timeline import text, timeline
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.safe_text import visible
from kafka_audit.store.lag_days import days_in
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import need_local
from kafka_audit.store.retention import delete_expired
from kafka_audit.store.sealed import OFFSETS

DryRun = Annotated[bool, typer.Option("--dry-run", help="Delete nothing; list what would be deleted, what stays, and why.")]


def retention(cluster: Cluster = "kafka", root: Root = Path("audit-root"), policy: PolicyFolder = None, dry_run: DryRun = False) -> None:
    """Delete a cluster's offsets snapshots, rolled-up days and commits that the policy no longer keeps; print why each is deleted or kept.

    Deletes only under a policy that you name; under the shipped policy use --dry-run. Never deletes audits and whole snapshots.
    """
    named = policy or cluster_policy(cluster)
    if named is None and not dry_run:
        raise ConfigurationError(
            f"nobody named a policy, and evidence is not deleted by the shipped one: name yours by --policy or {POLICY_VARIABLE}; "
            "--dry-run says what would go under the shipped one"
        )
    history, today = load_policy(named).history, datetime.now(timezone.utc).date()
    found = EvidenceRoot(path=root.resolve())
    need_local(found.path, "--root: retention (a store deletes by its lifecycle rules)")
    snapshots, days = len(found.sealed_ids(cluster, OFFSETS)), len(days_in(found, cluster))
    if not snapshots and not days and not found.commit_history(cluster).is_dir():
        raise ConfigurationError(
            f"{found.path} holds no offsets snapshot, rolled-up day or commit history of cluster {cluster}: check --root and --cluster"
        )
    kept = f"offsets snapshots {history.offsets.keep_days} days, rolled-up days {history.offsets.rolled_up_keep_days} days"
    typer.echo(f"Policy {printable(str(named or 'shipped'))}: keeps {kept}, commits {history.commits.keep_days} days.")
    typer.echo(f"Cluster {cluster} has {snapshots} offsets snapshots and {days} rolled-up days.")
    decided = delete_expired(found, cluster, history, today, lambda one: typer.echo(printable(str(one))), dry_run=dry_run)
    gone = sum(one.goes for one in decided)
    typer.echo(f"{gone} {'would go' if dry_run else 'deleted'}, {len(decided) - gone} expired or left out stay")


def group_history(
    group: Annotated[str, typer.Argument(help="Group id, exactly as in Kafka.")],
    cluster: Cluster = "kafka",
    root: Root = Path("audit-root"),
    quiet: Annotated[float, typer.Option(min=0, help="Seconds without a commit that count as a pause.")] = 300,
) -> None:
    """Print a group's timeline: from the commit history its generations, members, rewinds, pauses, removed offsets; and its lag history."""
    found, lines, lacking = EvidenceRoot(path=root.resolve()), [], []
    try:
        entries = timeline(found.commit_history(cluster), group, quiet=timedelta(seconds=quiet))
        lines += [text(entry) for entry in entries]
    except ConfigurationError as problem:
        lines.append(f"no timeline of commits: {problem}")
        lacking.append(str(problem))
    try:
        entries, problems = lag_timeline(found, cluster, group)
        lines += [*map(text, entries), *(f"left out: {problem}" for problem in problems)]
    except ConfigurationError as problem:
        lacking.append(str(problem))
    if len(lacking) > 1:
        raise ConfigurationError("; ".join(lacking))
    for line in lines:
        print(visible(line))
