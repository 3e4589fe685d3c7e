"""``kafka-audit snapshot``."""

import hashlib
import os
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.cli.options import Bootstrap, Cluster, Connection, Groups, PolicyFolder, Root, Topics, connection_keys, say
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.mirrors import where
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT


def snapshot(
    bootstrap: Bootstrap = None,
    connection: Connection = None,
    cluster: Cluster = "kafka",
    root: Root = Path("audit-root"),
    topics: Topics = "*",
    groups: Groups = "*",
    policy: PolicyFolder = None,
    offsets_only: Annotated[
        bool, typer.Option("--offsets-only", help="Read only groups, commits and log ends, for runs every few minutes.")
    ] = False,
) -> None:
    """Take one snapshot of a cluster and print its folder. Reads only; needs neither Airflow nor Spark."""
    now = datetime.now(timezone.utc)
    settings = ConnectionSettings.from_mapping(connection_keys(bootstrap, connection), where=str(connection or "--bootstrap"))
    seed = hashlib.sha256(f"{now.isoformat()}{os.getpid()}".encode()).hexdigest()
    result = take_snapshot(
        kind=OFFSETS if offsets_only else SNAPSHOT,
        settings=settings,
        root=EvidenceRoot(path=root.resolve()),
        cluster=cluster,
        snapshot_id=new_id(now, seed),
        scope=Scope.from_text(topics=topics, groups=groups),
        policy=load_policy(policy),
        now=lambda: datetime.now(timezone.utc),
        progress=say,
    )
    print(where(result.path))
