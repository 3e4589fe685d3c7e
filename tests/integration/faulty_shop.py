"""The faulty cluster with a topic of the tests' own, and its first audit: what is found in it, and what repairs it."""

from contextlib import closing
from pathlib import Path

from command_line import kafka_audit, only_audit
from kafka import KafkaAdminClient
from own_control import write_own_control

from kafka_audit.cli.demo import POLICIES
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.state import Folder
from kafka_audit.store.durable_files import sha256_of
from kafka_audit.store.layout import Audit

CLUSTER = "shop"
POLICY = POLICIES / "faulty"
LIKE_AN_OPTION = "-rf"
OF_OUR_TOPIC = {(code, LIKE_AN_OPTION) for code in ("TOP-02", "TOP-04", "TOP-06")}
"""What fails beside the seeded faults: the settings of a topic whose name looks like an option."""
UNKNOWN_OF_OUR_TOPIC = {("TOP-10", LIKE_AN_OPTION)}
"""What cannot be known beside the seed's: broker 3 has no rack."""


def in_first_log_dirs(sandbox: Sandbox) -> dict[tuple[str, int, int], str]:
    """The log dirs that are asked for our topic: those that fail in the seed's story may hold only the seed's own replicas."""
    state = Folder(sandbox.directory).load()
    assert state is not None
    return {(LIKE_AN_OPTION, 0, broker.id): broker.log_dirs[0] for broker in state.brokers}


def first_audit(sandbox: Sandbox, root: Path) -> Audit:
    """Run ``kafka-audit audit`` through Airflow on the faulty cluster with its past; it must end with exit code 3."""
    with closing(KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)) as admin:
        admin.alter_replica_log_dirs(in_first_log_dirs(sandbox))
        weak = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true", "retention.ms": "3600000"}
        admin.create_topics({LIKE_AN_OPTION: {"assignments": {0: [1, 2, 3]}, "configs": weak}})
    own = write_own_control(root.parent, pass_when="config['auto.create.topics.enable'].value is not null")
    make_past(sandbox, "faulty", root=root, cluster=CLUSTER)
    where = ["--bootstrap", sandbox.bootstrap, "--cluster", CLUSTER, "--root", str(root), "--policy", str(POLICY), "--controls", str(own)]
    done = kafka_audit("audit", *where, code=3)
    assert "REP-01" in done.stdout
    assert "Seconds:" in done.stdout
    audit = only_audit(root, CLUSTER)
    sha256 = sha256_of(audit.path / "manifest.json")
    told = " ".join(done.stdout.split())
    assert f"Sealed: audit {audit.path.name}, number 1 of its cluster, manifest sha256 {sha256}" in told
    log = max((root.parent / ".airflow" / "runs").glob("*.log")).read_text(errors="replace")
    assert log.count(sha256) >= 2, "the log of the run is a witness outside of the folder"
    return audit
